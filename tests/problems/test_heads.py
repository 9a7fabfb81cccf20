"""Heads: losses and decoding against plain Python, with encoders that return what the test gives
them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from architectures.tagging.bilstm_crf import BiLSTMCRF
from harness import registry
from harness.errors import DataError
from harness.kinds import (
    Encoder,
    Generator,
    PairEncoder,
    PretrainedEncoder,
    SequenceEncoder,
    SpanScores,
    TextEncoder,
    pool,
)
from harness.problems.base import IGNORED, Batch
from harness.problems.classify import SENTIMENTS, Classify, ClassifyTree, ClassTarget, node_classes, text_vector
from harness.problems.extract import Extract, ExtractJoined, ExtractSpan, SpanTarget, best_spans
from harness.problems.match import Match, MatchJoined, MatchPair, above_twins
from harness.problems.rank import Rank, RankPair, RankTarget
from harness.problems.symbols import Generate, SymbolTarget
from harness.problems.tag import Tag, TagJoined, TagTarget
from harness.ragged import Ragged
from harness.views.subwords import SubwordBatch
from harness.views.words import WordBatch
from tests.support.batches import sentences

INF = math.inf


class Identity(SequenceEncoder):
    """States are the vectors themselves."""

    def __init__(self, size: int, pooling: str = "max"):
        super().__init__()
        self.size, self.pooling = size, pooling

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return vectors


class Given(Encoder):
    """Returns one thing, whatever it is asked; ``size`` when it is a vector per text."""

    def __init__(self, answer: Any, size: int | None = None):
        super().__init__()
        self.answer = answer
        if size is not None:
            self.size = size

    def forward(self, *inputs: Any) -> Any:
        return self.answer


def words(vectors: Tensor, lengths: list[int]) -> WordBatch:
    mask = torch.arange(vectors.shape[1]) < torch.tensor(lengths)[:, None]
    return WordBatch(torch.zeros(mask.shape, dtype=torch.long), mask, torch.tensor(lengths), vectors)


def classes(*labels: str) -> ClassTarget:
    target = ClassTarget()
    target.labels = list(labels)
    return target


def batch(rows: int) -> Batch:
    return Batch({}, None, np.arange(rows), 0)


# pooling

STATES = torch.tensor([[[1.0, -5.0, 3.0, 4.0], [-2.0, -6.0, 5.0, 6.0], [9.0, 9.0, 9.0, 9.0]], [[7.0] * 4] * 3])
"""Two texts of three positions; what lies behind their 2 and 0 real positions is larger than all
else."""


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("max", [1.0, -5.0, 5.0, 6.0]),
        ("mean", [-0.5, -5.5, 4.0, 5.0]),
        ("last", [-2.0, -6.0, 5.0, 6.0]),
        ("ends", [-2.0, -6.0, 3.0, 4.0]),  # left-to-right half of the last word, right-to-left half of the first
    ],
)
def test_pooling_sees_real_positions_only(how, expected):
    """Zeros at padding would win against negative maxima and drag means."""
    mask = torch.tensor([[True, True, False], [False] * 3])
    assert pool(STATES, mask, how)[0].tolist() == expected


@pytest.mark.parametrize("how", ["max", "mean"])
def test_a_text_without_words_is_pooled_to_zeros(how):
    pooled = pool(STATES, torch.tensor([[True, True, False], [False] * 3]), how)
    assert pooled[1].tolist() == [0.0] * 4


def test_an_unknown_pooling_is_named():
    with pytest.raises(ValueError, match=r"'median'.*max, mean, last, ends"):
        pool(STATES, torch.ones(2, 3, dtype=torch.bool), "median")


def test_a_sequence_encoders_own_pooling_makes_the_vector_of_its_text():
    text = words(STATES, [2, 1])
    assert torch.equal(text_vector(Identity(4, "mean"), text), pool(STATES, text.mask, "mean"))


class FirstState(Identity):
    def pooled(self, states, mask):
        return states[:, 0]


def test_an_encoder_with_a_pooling_of_its_own_is_asked_for_it():
    assert torch.equal(text_vector(FirstState(4, "mean"), words(STATES, [2, 1])), STATES[:, 0])


# classes, pairs, ranking


def test_an_encoder_that_scores_the_classes_itself_keeps_its_scores_and_its_loss():
    """A layer on top would be one that the paper does not have."""

    class Scoring(TextEncoder):
        def __init__(self, classes: int):
            super().__init__()

        def forward(self, text: Tensor) -> Tensor:
            return text

        def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
            return scores.sum()

    encoder = Scoring(2)
    head = Classify(encoder, classes("no", "yes"))
    scores = torch.tensor([[1.0, 2.0], [4.0, 3.0]])
    assert not list(head.parameters())
    outputs = head(encoder, {"text": scores})
    assert head.loss(encoder, outputs, torch.tensor([0, 1])).item() == 10.0
    assert head.decode(encoder, outputs, batch(2), None) == ["yes", "no"]


def test_labels_are_smoothed_in_each_rows_loss_where_the_encoder_scores_the_classes_itself():
    """Whoever sums the losses of rows (`reduction`) would record a smoothing that did nothing."""

    class Scoring(TextEncoder):
        def __init__(self, classes: int):
            super().__init__()

    encoder = Scoring(2)
    head = Classify(encoder, classes("no", "yes"))
    head.label_smoothing = 0.2
    scores, labels = torch.tensor([[1.0, 2.0], [4.0, 3.0]]), torch.tensor([0, 1])
    assert head.smooths_above(encoder)
    losses = head.row_losses(encoder, scores, labels)
    torch.testing.assert_close(losses.mean(), head.loss(encoder, scores, labels))
    plain = torch.stack([encoder.objective(scores[i : i + 1], labels[i : i + 1]) for i in range(2)])
    assert torch.equal(head.eval().row_losses(encoder, scores, labels), plain)
    assert not torch.equal(losses, plain)


def test_rows_of_the_softmax_layer_are_rescaled_to_the_norm_that_the_encoder_asks_for():
    encoder = Given(None, size=3)
    encoder.head_max_norm, encoder.head_bias = 2.0, False
    head = Classify(encoder, classes("a", "b"))
    assert head.output.bias is None
    head.output.weight.data = torch.tensor([[3.0, 4.0, 0.0], [0.0, 1.0, 0.0]])
    head.constrain(encoder)
    torch.testing.assert_close(head.output.weight.data, torch.tensor([[1.2, 1.6, 0.0], [0.0, 1.0, 0.0]]))


@pytest.mark.parametrize(
    "make", [lambda encoder: Match(encoder, classes("a", "b")), lambda encoder: Rank(encoder, RankTarget())]
)
def test_twin_texts_are_joined_with_their_difference_and_product(make):
    u, v = torch.tensor([[[1.0, -2.0]]]), torch.tensor([[[3.0, 5.0]]])
    encoder = Identity(2)
    head = make(encoder)
    seen = []
    head.output.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    head(encoder, {"first": words(u, [1]), "second": words(v, [1])})
    assert seen[0].tolist() == [[1.0, -2.0, 3.0, 5.0, 2.0, 7.0, 3.0, -10.0]]


def test_ranking_uses_the_loss_of_an_architecture_that_has_one_and_the_pointwise_loss_otherwise():
    class Listwise(PairEncoder):
        scores = True

        def forward(self, first: Tensor, second: Tensor) -> Tensor:
            return first - second

        def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
            return scores @ groups.float()

    labels, groups = torch.tensor([1, 0]), torch.tensor([2, 3])
    listwise = Listwise()
    head = RankPair(listwise, RankTarget())
    scores = head(listwise, {"first": torch.tensor([5.0, 1.0]), "second": torch.tensor([1.0, 2.0])})
    assert head.decode(listwise, scores, batch(2), None) == [4.0, -1.0]
    assert head.loss(listwise, scores, (labels, groups)).item() == 4 * 2 - 1 * 3

    encoder = Identity(2)
    pointwise = Rank(encoder, RankTarget()).loss(encoder, torch.tensor([0.3, -0.2]), (labels, groups))
    expected = -(math.log(1 / (1 + math.exp(-0.3))) + math.log(1 - 1 / (1 + math.exp(0.2)))) / 2
    assert pointwise.item() == pytest.approx(expected)


def test_a_pair_architectures_vector_is_classified_by_one_layer():
    """Values and gradients: an encoder below a head that lets none through would never learn."""
    vector = torch.tensor([[1.0, 2.0]], requires_grad=True)
    encoder = Given(vector, size=2)
    head = MatchPair(encoder, classes("a", "b", "c"))
    expected = head.output.weight @ torch.tensor([1.0, 2.0]) + head.output.bias
    scores = head(encoder, {"first": None, "second": None})[0]
    torch.testing.assert_close(scores, expected)
    scores[1].backward()
    assert torch.equal(vector.grad[0], head.output.weight[1])


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda encoder: Match(encoder, classes("a", "b")), 8),
        (lambda encoder: Rank(encoder, RankTarget()), 8),
        (lambda encoder: MatchPair(encoder, classes("a", "b")), 2),
        (lambda encoder: MatchJoined(encoder, classes("a", "b")), 2),
    ],
)
def test_what_two_texts_are_joined_to_is_dropped_before_the_layers(make, size):
    class Twin(Given):
        """Ones for each text, or for both."""

        @staticmethod
        def pair_layer(classes: int) -> None:
            return None

    encoder = Twin(torch.ones(1, 2), size=2)
    head, seen = make(encoder), []
    head.dropout = 1.0
    head.output.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    head(encoder, {"first": None, "second": None, "text": None})
    assert torch.equal(seen[0], torch.zeros(1, size))


def test_between_twins_and_their_scores_lies_one_hidden_layer_of_rectified_numbers():
    torch.manual_seed(0)
    layers = above_twins(Identity(2), 3)
    (first, second), joined = (each for each in layers if isinstance(each, nn.Linear)), torch.randn(5, 8)
    hidden = (joined @ first.weight.T + first.bias).clamp(min=0)
    assert hidden.shape == (5, 2) and (hidden == 0).any()
    torch.testing.assert_close(layers(joined), hidden @ second.weight.T + second.bias)


def test_an_encoders_own_layer_for_two_texts_reads_its_states_and_the_texts():
    """Some were pre-trained with a layer of their own, which a new one would throw away."""

    class Own(nn.Module):
        def forward(self, states: Tensor, text: str) -> tuple[Tensor, str]:
            return states, text

    class Paired(Given):
        @staticmethod
        def pair_layer(classes: int) -> nn.Module:
            assert classes == 2
            return Own()

    encoder = Paired(torch.ones(1, 3, 2), size=2)
    head = MatchJoined(encoder, classes("a", "b"))
    states, text = head(encoder, {"text": "both texts"})
    assert isinstance(head.output, Own) and text == "both texts" and not states[states == 0].numel()
    head.dropout = 1.0
    assert not head(encoder, {"text": "both texts"})[0].any()


# trees


def test_node_labels_of_five_classes_go_by_name():
    """The task's labels are sorted by name, the trees' by sentiment."""
    names = sorted(SENTIMENTS)
    found = node_classes(torch.tensor([0, 1, 2, 3, 4, -1]), 5, names)
    assert [names[i] for i in found[:5]] == list(SENTIMENTS)
    assert found[5] == IGNORED


def test_nodes_whose_labels_are_no_classes_of_the_task_are_told():
    """Which class a node of sentiment 3 has nobody knows. A tree without labels teaches by its
    root."""
    with pytest.raises(DataError, match=r"classes are ham, spam.*sentiments from 0 to 4.*negative and positive"):
        node_classes(torch.tensor([3, -1]), 2, ["ham", "spam"])
    assert node_classes(torch.tensor([-1, -1]), 2, ["ham", "spam"]).tolist() == [IGNORED, IGNORED]
    found = node_classes(torch.arange(5), 3, ["negative", "neutral", "positive"])
    assert found.tolist() == [0, 0, 1, 2, 2], "a class for neutral nodes, where there is one"


@pytest.mark.parametrize("label", [5, 7])
def test_a_node_label_that_is_no_sentiment_is_told(label):
    """Trees with one to five stars would lose their best nodes, or end as an index out of range."""
    with pytest.raises(DataError, match=f"the label {label}; expected are sentiments from 0 to 4"):
        node_classes(torch.tensor([-1, 2, label]), 2, ["negative", "positive"])


def test_node_labels_of_two_classes_lie_on_each_side_of_neutral():
    for names in (["negative", "positive"], ["positive", "negative"]):
        found = node_classes(torch.tensor([0, 1, 2, 3, 4, -1]), 2, names).tolist()
        assert found[2] == found[5] == IGNORED
        assert [names[i] for i in (found[0], found[1], found[3], found[4])] == [
            "negative",
            "negative",
            "positive",
            "positive",
        ]


GOLD = [(0, 1), (2, 1), (3, 0), (4, 0)]
"""Nodes and their classes: node 1 is neutral, nodes 2 and 4 are roots with the labels 1 and 0."""


def tree_head(states: Tensor, labels: list[int]) -> tuple[Any, ClassifyTree, Any]:
    """An encoder of two texts, of three nodes and of two, its head, and what it gives."""
    encoder = SimpleNamespace(size=2, head_bias=True, head_max_norm=None, nodes=lambda trees: trees.states)
    head = ClassifyTree(encoder, classes("negative", "positive"))
    trees = SimpleNamespace(states=states, roots=torch.tensor([2, 4]), labels=torch.tensor(labels))
    return encoder, head, {"text": trees}


def test_tree_loss_is_the_mean_over_labelled_nodes_with_the_texts_label_at_the_root():
    """A neutral inner node has no class among two; the root takes the row's label even where its
    own is absent."""
    states = torch.randn(5, 2)
    encoder, head, inputs = tree_head(states, [4, 2, -1, 1, 4])
    outputs = head(encoder, inputs)
    scores = head.output(states).log_softmax(-1)
    losses = -torch.stack([scores[node, label] for node, label in GOLD])
    torch.testing.assert_close(head.loss(encoder, outputs, torch.tensor([1, 0])), losses.mean())
    by_text = torch.stack([losses[:2].sum(), losses[2:].sum()])
    torch.testing.assert_close(head.row_losses(encoder, outputs, torch.tensor([1, 0])), by_text)
    by_root = [["negative", "positive"][i] for i in scores[[2, 4]].argmax(1).tolist()]
    assert head.decode(encoder, outputs, batch(2), None) == by_root
    torch.testing.assert_close(torch.stack(head.evidence(encoder, outputs)), outputs[0][[2, 4]])


def test_labels_of_nodes_are_smoothed_in_training():
    states = torch.randn(5, 2)
    encoder, head, inputs = tree_head(states, [4, 2, -1, 1, 4])
    head.label_smoothing = 0.2
    scores = head.output(states).log_softmax(-1)
    losses = -torch.stack([0.9 * scores[node, label] + 0.1 * scores[node, 1 - label] for node, label in GOLD])
    outputs, target = head(encoder, inputs), torch.tensor([1, 0])
    torch.testing.assert_close(head.loss(encoder, outputs, target), losses.mean())
    by_text = torch.stack([losses[:2].sum(), losses[2:].sum()])
    torch.testing.assert_close(head.row_losses(encoder, outputs, target), by_text)


def test_the_state_of_each_node_is_dropped_before_the_layer():
    encoder, head, inputs = tree_head(torch.randn(5, 2), [4, 2, -1, 1, 4])
    head.dropout = 1.0
    assert torch.equal(head(encoder, inputs)[0], head.output.bias.expand(5, 2))


def test_trees_of_dev_whose_labels_training_never_showed_have_no_loss():
    """A mean over none is no number, and the curve of a training would end there."""
    encoder, head, inputs = tree_head(torch.randn(5, 2), [2, -1, -1, 2, -1])
    head.eval()
    assert head.loss(encoder, head(encoder, inputs), torch.tensor([IGNORED, IGNORED])).item() == 0.0


# tags


def tags(*labels: str) -> TagTarget:
    target = TagTarget()
    target.labels = list(labels)
    return target


def test_softmax_tagging_averages_over_words_and_leaves_padding_out():
    encoder = Identity(3)
    head = Tag(encoder, tags("A", "B"))
    text = words(torch.randn(2, 3, 3), [3, 1])
    outputs = head(encoder, {"text": text})
    gold = torch.tensor([[0, 1, IGNORED], [1, IGNORED, IGNORED]])  # the third word's label was never seen in training
    p = head.output(text.vectors).log_softmax(-1)
    torch.testing.assert_close(head.loss(encoder, outputs, gold), -(p[0, 0, 0] + p[0, 1, 1] + p[1, 0, 1]) / 3)
    best = [["AB"[i] for i in row[:length]] for row, length in zip(p.argmax(-1).tolist(), [3, 1], strict=True)]
    assert head.decode(encoder, outputs, *sentences(3, 1)) == best


class PieceNumbers(PretrainedEncoder):
    """The state of each piece is its position, one-hot."""

    def __init__(self, size: int):
        super().__init__()
        self.size = size

    def forward(self, pieces: SubwordBatch) -> Tensor:
        return torch.eye(self.size)[: pieces.ids.shape[1]].expand(len(pieces.ids), -1, -1)


def pieces(lengths: list[int], firsts: list[list[int]]) -> SubwordBatch:
    """Sequences whose words (or second texts) stand at ``firsts``."""
    width = max(lengths)
    counts = torch.tensor([len(row) for row in firsts])
    positions = torch.tensor([row + [0] * (int(counts.max()) - len(row)) for row in firsts])
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    zeros = torch.zeros(mask.shape, dtype=torch.long)
    return SubwordBatch(
        zeros, mask, zeros, torch.tensor(lengths), positions, torch.arange(positions.shape[1]) < counts[:, None]
    )


def test_the_first_piece_of_a_word_is_tagged():
    """Reading another piece, or all of them, would shift the tags of every word behind a split
    one."""
    encoder = PieceNumbers(6)
    head = TagJoined(encoder, tags("A", "B", "C"))
    text = pieces([6, 4], [[1, 3, 4], [1]])
    emissions, mask = head(encoder, {"text": text})
    assert mask.tolist() == [[True] * 3, [True, False, False]]
    score_of = head.output(torch.eye(6))
    torch.testing.assert_close(emissions[0], score_of[[1, 3, 4]])
    torch.testing.assert_close(emissions[1, 0], score_of[1])
    assert [len(row) for row in head.decode(encoder, (emissions, mask), *sentences(3, 1))] == [3, 1]


def test_words_are_labelled_by_what_the_encoder_makes_of_their_states():
    """Some drop numbers there, in training."""

    class Halved(PieceNumbers):
        def word_states(self, states: Tensor) -> Tensor:
            return states / 2

    encoder = Halved(6)
    head = TagJoined(encoder, tags("A", "B", "C"))
    emissions, _ = head(encoder, {"text": pieces([6], [[1, 3]])})
    torch.testing.assert_close(emissions[0], head.output(torch.eye(6)[[1, 3]] / 2))


# spans

numbers = st.one_of(st.just(-INF), st.integers(-6, 6).map(lambda n: n / 2))


@settings(max_examples=200)
@given(
    st.integers(1, 8).flatmap(lambda n: st.lists(st.tuples(numbers, numbers), min_size=n, max_size=n)),
    st.integers(1, 9),
)
@example([(0.0, 3.0), (5.0, 1.0)], 9)  # the best end stands before the best start
@example([(9.0, 0.0), (0.0, 0.0), (0.0, 9.0)], 2)  # the best start and end are too far apart
def test_best_span_is_that_of_a_double_loop(scores, longest):
    start, end = zip(*scores, strict=True)
    spans = {(b, e): start[b] + end[e] for b in range(len(start)) for e in range(b, min(b + longest, len(end)))}
    first, last, score = best_spans(torch.tensor([start]), torch.tensor([end]), longest)
    found = first.item(), last.item()
    assert score.item() == max(spans.values())
    if score.item() > -INF:
        assert spans[found] == score.item()


def test_best_spans_are_found_row_by_row():
    start = torch.tensor([[0.0, 5.0, 0.0], [7.0, 0.0, -INF]])
    end = torch.tensor([[9.0, 0.0, 2.0], [0.0, 1.0, -INF]])
    first, last, score = best_spans(start, end)
    assert (first.tolist(), last.tolist(), score.tolist()) == ([0, 0], [0, 1], [9.0, 8.0])


def reader(start: list[list[float]], end: list[list[float]], unanswerable: bool, no_answer: list[Any] | None = None):
    """A reader that gives these scores, and its head."""
    scores = SpanScores(torch.tensor(start), torch.tensor(end), None if no_answer is None else torch.tensor(no_answer))
    target = SpanTarget()
    target.unanswerable = unanswerable
    encoder = Given(scores)
    return encoder, ExtractSpan(encoder, target)


INPUTS = {"passage": None, "question": None}


def nll(scores: list[float], gold: int) -> float:
    return math.log(sum(math.exp(s) for s in scores)) - scores[gold]


def test_no_answer_competes_with_the_positions_and_is_the_gold_of_a_row_without_answer():
    """Else a reader could never say that there is none, or would be drawn to position 0."""
    start, end = [[1.0, 2.0], [0.5, -1.0]], [[0.0, 3.0], [1.0, 1.0]]
    encoder, head = reader(start, end, unanswerable=True, no_answer=[0.7, -0.3])
    loss = head.loss(encoder, head(encoder, INPUTS), torch.tensor([[0, 1], [-1, -1]]))
    expected = nll([0.7, 1, 2], 1) + nll([0.7, 0, 3], 2) + nll([-0.3, 0.5, -1], 0) + nll([-0.3, 1, 1], 0)
    assert loss.item() == pytest.approx(expected / 2)


def test_no_answer_may_have_one_score_beside_the_starts_and_another_beside_the_ends():
    """Devlin et al.: S.C stands in the softmax of the starts, E.C in that of the ends, and their
    sum against the best span."""
    start, end = [[1.0, 2.0], [0.5, -1.0]], [[0.0, 3.0], [1.0, 1.0]]
    encoder, head = reader(start, end, unanswerable=True, no_answer=[[5.5, -7.0], [-0.3, 2.0]])
    outputs = head(encoder, INPUTS)
    expected = nll([5.5, 1, 2], 1) + nll([-7.0, 0, 3], 2) + nll([-0.3, 0.5, -1], 0) + nll([2.0, 1, 1], 0)
    assert head.loss(encoder, outputs, torch.tensor([[0, 1], [-1, -1]])).item() == pytest.approx(expected / 2)
    units = Ragged.of([[0, 2]] * 2), Ragged.of([[1, 3]] * 2)
    split = SimpleNamespace(rows=[{"passage": "a b"}] * 2, targets=dict(zip(("starts", "ends"), units, strict=True)))
    assert head.decode(encoder, outputs, batch(2), split) == ["b", ""]


def test_a_reader_without_a_no_answer_score_gets_a_trained_one_where_the_task_needs_it():
    start = [[1.0, 2.0]]
    encoder, head = reader(start, start, unanswerable=True)
    head.no_answer.data.fill_(1.5)
    head.loss(encoder, head(encoder, INPUTS), torch.tensor([[-1, -1]])).backward()
    p = math.exp(1.5) / (math.exp(1.5) + math.exp(1) + math.exp(2))
    assert head.no_answer.grad.item() == pytest.approx(2 * (p - 1))


def test_a_trained_no_answer_score_begins_at_zero_and_is_there_for_none_who_needs_it_not():
    """A parameter that no step trains would be counted and saved."""
    target = SpanTarget()
    for unanswerable in (True, False):
        target.unanswerable = unanswerable
        assert ExtractJoined(PieceNumbers(6), target).no_answer is None, "the encoder gives that score"
        trained = Extract(Identity(3), target).no_answer
        assert trained.tolist() == [0.0] if unanswerable else trained is None


def test_a_score_for_no_answer_is_left_out_where_every_question_has_one():
    encoder, head = reader([[1.0, 2.0]], [[0.0, 3.0]], unanswerable=False, no_answer=[50.0])
    outputs = head(encoder, INPUTS)
    assert outputs.no_answer is None
    assert head.loss(encoder, outputs, torch.tensor([[0, 1]])).item() == pytest.approx(nll([1, 2], 0) + nll([0, 3], 1))


@pytest.mark.parametrize("unanswerable", [False, True])
@pytest.mark.parametrize("cut", [(IGNORED, IGNORED), (7, 8), (2, 2)])
def test_an_answer_behind_the_cut_of_its_passage_adds_nothing(cut, unanswerable):
    """Marked by the target, beyond the last position, or at padding: its gradient would otherwise
    be infinite, or pull to a wrong word."""
    start = [[1.0, 2.0, -INF], [0.5, -1.0, -INF]]
    encoder, head = reader(start, start, unanswerable, no_answer=[0.0, 0.0])
    outputs = head(encoder, INPUTS)
    positions = [0.0, 1.0, 2.0] if unanswerable else [1.0, 2.0]
    loss = head.loss(encoder, outputs, torch.tensor([[0, 1], cut]))
    assert loss.item() == pytest.approx((nll(positions, unanswerable + 0) + nll(positions, unanswerable + 1)) / 2)


def test_answers_are_cut_out_of_the_passage_or_empty_when_no_answer_scores_higher():
    passage = "Anna, who sang."
    starts, ends = Ragged.of([[0, 4, 6, 10, 14]] * 3), Ragged.of([[4, 5, 9, 14, 15]] * 3)
    split = SimpleNamespace(rows=[{"passage": passage}] * 3, targets={"starts": starts, "ends": ends})
    start = [[0.0, 0.0, 4.0, 0.0, 0.0]] * 3
    end = [[9.0, 0.0, 0.0, 2.0, 0.0], *[[0.0, 0.0, 0.0, 2.0, 0.0]] * 2]
    encoder, head = reader(start, end, unanswerable=True, no_answer=[4.4, 2.9, 3.1])
    assert head.decode(encoder, head(encoder, INPUTS), batch(3), split) == ["Anna", "who sang", ""]


def test_the_answer_out_of_a_passage_without_a_piece_is_empty():
    """Blanks, or a character without width: one such row must not end the training of a cell."""
    split = SimpleNamespace(rows=[{"passage": "\u200b"}], targets={"starts": Ragged.of([[]]), "ends": Ragged.of([[]])})
    encoder, head = reader([[0.0]], [[0.0]], unanswerable=False)
    assert head.decode(encoder, head(encoder, INPUTS), batch(1), split) == [""]


def test_what_the_scores_of_a_span_are_made_from_is_dropped_in_training():
    encoder, target = Identity(3), SpanTarget()
    target.unanswerable = False
    head = Extract(encoder, target)
    head.dropout = 1.0
    inputs = {"passage": words(torch.randn(1, 3, 3), [3]), "question": words(torch.randn(1, 2, 3), [2])}
    scores = head(encoder, inputs)
    assert torch.equal(torch.stack([scores.start[0], scores.end[0]], 1), head.output.bias.expand(3, 2))


def test_passage_words_attend_over_the_question_and_padding_is_no_position():
    """u = [h; attended]: without the question half, every question about a passage would get one
    answer."""
    torch.manual_seed(0)
    encoder, target = Identity(3), SpanTarget()
    target.unanswerable = False
    head = Extract(encoder, target)
    passage, question = torch.randn(1, 3, 3), torch.randn(1, 4, 3)
    inputs = {"passage": words(passage, [2]), "question": words(question, [3])}
    scores = head(encoder, inputs)
    attention = head.attention
    for position in range(2):
        h = passage[0, position]
        energies = torch.cat(
            [attention.score(torch.tanh(attention.query(h) + attention.key(s))) for s in question[0, :3]]
        )
        u = torch.cat([h, energies.softmax(0) @ question[0, :3]])
        start, end = head.output(u)
        torch.testing.assert_close(scores.start[0, position], start)
        torch.testing.assert_close(scores.end[0, position], end)
    assert scores.start[0, 2] == scores.end[0, 2] == -INF


def test_in_a_joined_sequence_the_second_texts_pieces_are_the_positions():
    """Counting from the start of the sequence would copy an answer from as many pieces to the right
    as the question has."""
    encoder, target = PieceNumbers(8), SpanTarget()
    target.unanswerable = True
    head = ExtractJoined(encoder, target)
    scores, _ = head(encoder, {"text": pieces([8, 6], [[4, 5, 6], [3, 4]])})
    start, end = head.output(torch.eye(8)).unbind(-1)
    torch.testing.assert_close(scores.start[0], start[[4, 5, 6]])
    torch.testing.assert_close(scores.end[1, :2], end[[3, 4]])
    assert scores.start[1, 2] == -INF
    torch.testing.assert_close(scores.no_answer, torch.stack([start[0], end[0]]).expand(2, 2))


# generation


class Chain(Generator):
    """The next symbol depends on the last one and on the source's first vector: scores (symbols,
    symbols) plus that vector."""

    def __init__(self, table: Tensor, beam: int = 1):
        super().__init__()
        self.table, self.beam = nn.Parameter(table), beam

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        return self.table[prefix] + vectors[:, :1]

    def start(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return vectors[:, 0]

    def step(self, symbols: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return (self.table[symbols] + state).log_softmax(-1), state


START, END, UNKNOWN, A, B = 1, 2, 3, 4, 5


def generated(by_word: bool = True) -> SymbolTarget:
    target = SymbolTarget(reserved=4, by_word=by_word)
    target.symbols = ["ape", "bee"]
    return target


def test_generation_loss_starts_after_the_start_symbol_ends_with_the_end_symbol_and_skips_padding():
    """Rows of 2, 0 and 1 symbols: 3 + 1 + 2 predictions, each from the symbol before it."""
    torch.manual_seed(0)
    encoder = Chain(torch.randn(6, 6))
    head = Generate(encoder, generated())
    source = words(torch.randn(3, 2, 6), [2, 1, 2])
    target = torch.tensor([[A, B], [0, 0], [B, 0]]), torch.tensor([2, 0, 1])
    loss = head.loss(encoder, head(encoder, {"text": source}), target)
    steps = [(0, START, A), (0, A, B), (0, B, END), (1, START, END), (2, START, B), (2, B, END)]
    expected = [
        -F.log_softmax(encoder.table[before] + source.vectors[row, 0], -1)[after] for row, before, after in steps
    ]
    torch.testing.assert_close(loss, torch.stack(expected).mean())


def test_symbols_are_smoothed_in_training_in_the_loss_of_a_batch_and_of_its_rows():
    """Smoothed by 0.3 among six symbols, each has a twentieth, and the right one 0.7 besides."""
    encoder = Chain(torch.randn(6, 6))
    head = Generate(encoder, generated())
    head.label_smoothing = 0.3
    source = words(torch.randn(2, 2, 6), [2, 1])
    target = torch.tensor([[A, B], [0, 0]]), torch.tensor([2, 0])
    outputs = head(encoder, {"text": source})
    steps = [(0, START, A), (0, A, B), (0, B, END), (1, START, END)]
    logs = [(F.log_softmax(encoder.table[before] + source.vectors[row, 0], -1), gold) for row, before, gold in steps]
    losses = torch.stack([-(0.7 * each[gold] + 0.05 * each.sum()) for each, gold in logs])
    torch.testing.assert_close(head.loss(encoder, outputs, target), losses.mean())
    rows = torch.stack([losses[:3].sum(), losses[3]])
    torch.testing.assert_close(head.row_losses(encoder, outputs, target), rows)


@pytest.mark.parametrize("beam", [1, 3])
def test_generation_writes_until_the_end_symbol_and_leaves_reserved_symbols_out(beam):
    table = torch.zeros(6, 6)
    for before, after in ((START, A), (A, UNKNOWN), (UNKNOWN, B), (B, END)):
        table[before, after] = 6.0
    encoder = Chain(table, beam)
    head = Generate(encoder, generated())
    vectors = torch.zeros(2, 1, 6)
    vectors[1, 0, END] = 20.0  # the second source wants nothing said
    outputs = head(encoder, {"text": words(vectors, [1, 1])})
    with torch.no_grad():
        assert head.decode(encoder, outputs, batch(2), None) == ["ape bee", ""]
        assert Generate(encoder, generated(by_word=False)).decode(encoder, outputs, batch(2), None) == ["apebee", ""]


@pytest.mark.parametrize(("longest", "most"), [(0, 60), (59, 60), (75, 76)])
def test_an_answer_may_be_as_long_as_the_longest_of_training(longest, most):
    """With its end behind it: transcripts of sentences have more characters than answers have
    words. Whoever never ends is stopped there."""
    table = torch.zeros(6, 6)
    table[:, B] = 9.0
    encoder, target = Chain(table), generated()
    target.longest = longest
    [found] = Generate(encoder, target).found(encoder, words(torch.zeros(1, 1, 6), [1]))
    assert found == [B] * most


def test_generation_searches_with_the_beam_that_the_architecture_asks_for():
    """Greedy takes ``ape`` (.55) and then splits it in two; ``bee`` is worth .45 in all."""
    p = torch.full((6, 6), 1e-9)
    p[START, [A, B]] = torch.tensor([0.55, 0.45])
    p[A, [END, A, B]] = torch.tensor([0.4, 0.3, 0.3])
    p[B, END] = 1.0
    outputs = words(torch.zeros(1, 1, 6), [1])
    found = {}
    for beam in (1, 2):
        encoder = Chain(p.log(), beam)
        found[beam] = Generate(encoder, generated()).decode(encoder, outputs, batch(1), None)
    assert found == {1: ["ape"], 2: ["bee"]}


def test_an_answer_whose_end_is_cut_adds_nothing():
    """A start without its end would teach the reader to begin answers that it cannot finish."""
    outputs = SpanScores(torch.randn(2, 3), torch.randn(2, 3))
    head = ExtractSpan(None, SimpleNamespace(unanswerable=False))
    both = head.loss(None, outputs, torch.tensor([[0, 1], [2, 5]]))
    one = head.loss(None, SpanScores(outputs.start[:1], outputs.end[:1]), torch.tensor([[0, 1]]))
    assert torch.allclose(both, one / 2)


def test_a_chunk_scheme_forbids_what_breaks_it():
    """With a scheme, no decoded sentence has an inside without its begin, whatever the emissions
    say."""
    target = TagTarget()
    target.labels = ["B-PER", "I-PER", "O"]
    tagger = BiLSTMCRF(4, 3, hidden=2, scheme="BIO")
    emissions = torch.tensor([[[0.0, 9.0, 1.0], [0.0, 9.0, 0.0]]])
    mask = torch.ones(1, 2, dtype=torch.bool)
    decoded = Tag(tagger, target).decode(tagger, (emissions, mask), *sentences(2))
    assert decoded == [["B-PER", "I-PER"]]
    free = BiLSTMCRF(4, 3, hidden=2)
    assert Tag(free, target).decode(free, (emissions, mask), *sentences(2)) == [["I-PER", "I-PER"]]


class OwnScores(TextEncoder):
    def __init__(self, width: int, classes: int):
        super().__init__()


@pytest.mark.parametrize(("task", "fits"), [("sst2", True), ("babi", True), ("snli", False), ("wikiqa", False)])
def test_an_encoder_that_scores_the_classes_itself_is_not_asked_to_compare_texts(task, fits):
    """It has no vector for the layers that join two texts: the cell would crash."""
    reason = OwnScores.reason_to_skip(registry.entry("tasks", task), {})
    assert reason is None if fits else "gives scores of the classes of one text" in reason

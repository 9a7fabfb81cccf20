"""Probabilities of answers, against sums over all that a head could have answered."""

from __future__ import annotations

import math
from itertools import groupby, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from harness.kinds import Encoder, Generator, PairEncoder, SpanScores, Tagger
from harness.layers.crf import LinearChainCRF
from harness.problems.base import Batch
from harness.problems.classify import Classify, ClassifyTree, ClassTarget
from harness.problems.extract import ExtractJoined, ExtractSpan, SpanTarget, WindowScores
from harness.problems.rank import RankPair, RankTarget
from harness.problems.symbols import Generate, SymbolTarget
from harness.problems.tag import Tag, TagTarget
from harness.problems.transcribe import Transcribe
from harness.ragged import Ragged
from harness.views.subwords import Windows
from tests.support.batches import sentences


class Given(Encoder):
    """Returns what it is given; ``size`` when that is a vector for each text."""

    def __init__(self, size: int | None = None):
        super().__init__()
        if size is not None:
            self.size = size

    def forward(self, text: Any) -> Any:
        return text


class Scoring(Given):
    """Scores the classes itself."""

    def __init__(self, classes: int):
        super().__init__()


class WithItsOwnLoss(Scoring):
    """Its scores need be no logarithms of probabilities."""

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return scores.sum()


class VectorWithALoss(Given):
    """A vector, and a loss that nobody asks for where the head has the scores."""

    objective = WithItsOwnLoss.objective


def batch(rows: int) -> Batch:
    return Batch({}, None, np.arange(rows), 0)


def labelled(target: Any, *labels: str) -> Any:
    target.labels = list(labels)
    return target


def shares(scores: list[float]) -> list[float]:
    total = sum(map(math.exp, scores))
    return [math.exp(score) / total for score in scores]


def of_tagger(decoder: str) -> Tag:
    tagger = Tagger()
    tagger.decoder = decoder
    return Tag(tagger, labelled(TagTarget(), "A", "B", "C"))


@pytest.mark.parametrize(
    ("head", "outputs"),
    [
        (Classify(Given(3), labelled(ClassTarget(), "a", "b", "c")), torch.zeros(2, 3)),
        (RankPair(SimpleNamespace(scores=True), RankTarget()), torch.zeros(2)),
        (of_tagger("softmax"), (torch.zeros(2, 1, 3), torch.ones(2, 1, dtype=torch.bool))),
    ],
    ids=["classes", "candidates", "tags"],
)
def test_a_head_that_decodes_in_its_own_way_is_given_all_that_there_is(head, outputs, monkeypatch):
    """A plugin's may cut its answers out of the rows, as that of spans does."""
    seen, decode = [], head.decode
    monkeypatch.setattr(head, "decode", lambda *given: (seen.append(given), decode(*given))[1])
    encoder, (of_two, split) = object(), sentences(1, 1)
    assert len(head.answers(encoder, outputs, of_two, split)) == 2
    assert [id(each) for each in seen[0]] == [id(each) for each in (encoder, outputs, of_two, split)]


# classes

SCORES = [[1.0, -2.0, 0.5], [-1.0, 0.0, 3.0]]
NAMES = ("bad", "fair", "good")


def says_the_softmax(found: list[dict], scores: list[list[float]]) -> bool:
    """True for answers with the shares of all classes and that of the best one."""
    for answer, row in zip(found, scores, strict=True):
        expected = dict(zip(NAMES, shares(row), strict=True))
        assert answer["probabilities"] == pytest.approx(expected)
        assert answer["prediction"] == max(expected, key=expected.get)
        assert answer["probability"] == max(answer["probabilities"].values()) and "scores" not in answer
    return len(found) == len(scores)


@pytest.mark.parametrize("encoder", [Scoring(3), Given(3), VectorWithALoss(3)], ids=["no layer", "layer", "own loss"])
def test_classes_have_the_shares_of_their_softmax_whoever_scores_them(encoder):
    """A reader of answers weighs a system by them. Under a layer of the head the scores are the
    head's, whatever loss the encoder has."""
    head = Classify(encoder, labelled(ClassTarget(), *NAMES))
    outputs = head(encoder, {"text": torch.tensor(SCORES)})
    assert (head.output is None) == isinstance(encoder, Scoring)
    assert says_the_softmax(head.answers(encoder, outputs, batch(2), None), outputs.tolist())


def test_scores_under_a_loss_of_the_architecture_are_told_as_they_are():
    """A softmax of distances or of margins would look sure of what nobody estimated."""
    encoder = WithItsOwnLoss(3)
    head = Classify(encoder, labelled(ClassTarget(), *NAMES))
    found = head.answers(encoder, torch.tensor(SCORES), batch(2), None)
    assert found == [
        {"prediction": best, "scores": dict(zip(NAMES, row, strict=True))}
        for best, row in zip(("bad", "good"), SCORES, strict=True)
    ]


def test_a_tree_has_the_shares_of_its_root():
    head = ClassifyTree(Given(3), labelled(ClassTarget(), *NAMES))
    nodes = torch.tensor([[9.0, 0.0, 0.0], SCORES[0], [0.0, 9.0, 0.0], SCORES[1]])
    outputs = nodes, torch.tensor([1, 3]), torch.zeros(4, dtype=torch.long)
    assert says_the_softmax(head.answers(head, outputs, batch(2), None), SCORES)


# candidates


@pytest.mark.parametrize("pointwise", [True, False])
def test_a_candidate_is_right_with_the_sigmoid_of_its_score_where_the_loss_makes_it_so(pointwise):
    """A loss that compares candidates orders them alone."""

    class Compares(PairEncoder):
        scores = True

        def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
            return scores.sum()

    class Scores(PairEncoder):
        scores = True

    encoder = Scores() if pointwise else Compares()
    found = RankPair(encoder, RankTarget()).answers(encoder, torch.tensor([2.0, -0.5]), batch(2), None)
    assert [answer["prediction"] for answer in found] == [2.0, -0.5]
    expected = [1 / (1 + math.exp(-2.0)), 1 / (1 + math.exp(0.5))] if pointwise else [None, None]
    assert [answer.get("probability") for answer in found] == pytest.approx(expected)


# tags

LABELS = ("A", "B", "C")


@pytest.mark.parametrize("crf", [True, False])
def test_a_tag_has_the_sum_of_all_taggings_that_have_it(crf):
    """Each word's own: of a sentence of three words, and of one of two."""
    torch.manual_seed(0)
    head = of_tagger("crf" if crf else "softmax")
    emissions, mask = 2 * torch.randn(2, 3, 3), torch.tensor([[True] * 3, [True, True, False]])
    if crf:
        for parameter in head.crf.parameters():
            torch.nn.init.normal_(parameter)
    with torch.no_grad():
        found = head.answers(None, (emissions, mask), *sentences(3, 2))
        for row, length in enumerate((3, 2)):
            paths = list(product(range(3), repeat=length))
            weights = [math.exp(weight(head.crf, emissions[row : row + 1, :length], path)) for path in paths]
            assert len(found[row]["prediction"]) == length
            for place, (tag, share) in enumerate(zip(found[row]["prediction"], found[row]["probability"], strict=True)):
                of_tag = [w for w, path in zip(weights, paths, strict=True) if LABELS[path[place]] == tag]
                assert share == pytest.approx(sum(of_tag) / sum(weights), rel=1e-4)


@pytest.mark.parametrize("decoder", ["softmax", "crf"])
def test_a_word_that_was_not_read_has_a_tag_and_no_probability(decoder):
    """A number there would be that of another word; an empty sentence has none at all."""
    emissions, mask = torch.randn(3, 2, 3), torch.tensor([[True, True], [True, False], [True, False]])
    with torch.no_grad():
        long, short, empty = of_tagger(decoder).answers(None, (emissions, mask), *sentences(4, 1, 0))
    assert (len(long["prediction"]), len(long["probability"])) == (4, 2)
    assert (len(short["prediction"]), len(short["probability"])) == (1, 1)
    assert (empty["prediction"], empty["probability"]) == ([], [])


def weight(crf: LinearChainCRF | None, emissions: Tensor, path: tuple[int, ...]) -> float:
    """Score of one tagging of a sentence (1, T, labels)."""
    tags = torch.tensor([path])
    if crf is None:
        return emissions[0, torch.arange(len(path)), tags[0]].sum().item()
    return crf.score(emissions, tags, torch.ones_like(tags, dtype=torch.bool)).item()


# spans


def reader(none: list[float] | None) -> tuple[ExtractSpan, SpanScores]:
    """Scores of three passages of two words: without "none", all are answered."""
    start = torch.tensor([[1.0, 2.5], [0.5, -1.0], [3.0, 0.0]])
    end = torch.tensor([[0.0, 3.0], [1.0, 1.5], [0.5, 4.0]])
    target = SpanTarget()
    target.unanswerable = none is not None
    return ExtractSpan(Given(), target), SpanScores(start, end, None if none is None else torch.tensor(none))


PLACES = SimpleNamespace(
    rows=[{"passage": "x y"}] * 3,
    targets={"starts": Ragged.of([[0, 2]] * 3), "ends": Ragged.of([[1, 3]] * 3)},
)


def test_a_span_has_the_share_of_its_start_times_that_of_its_end():
    head, scores = reader(None)
    found = head.answers(None, scores, batch(3), PLACES)
    assert [answer["prediction"] for answer in found] == ["y", "x y", "x y"]
    expected = [
        shares([1.0, 2.5])[1] * shares([0.0, 3.0])[1],
        shares([0.5, -1.0])[0] * shares([1.0, 1.5])[1],
        shares([3.0, 0.0])[0] * shares([0.5, 4.0])[1],
    ]
    assert [answer["probability"] for answer in found] == pytest.approx(expected)


def test_no_answer_has_its_share_beside_the_starts_times_that_beside_the_ends():
    """It takes its part from the spans, too."""
    head, scores = reader([2.0, 1.8, 3.0])
    found = head.answers(None, scores, batch(3), PLACES)
    assert [answer["prediction"] for answer in found] == ["y", "", "x y"]
    expected = [
        shares([2.0, 1.0, 2.5])[2] * shares([2.0, 0.0, 3.0])[2],
        shares([1.8, 0.5, -1.0])[0] * shares([1.8, 1.0, 1.5])[0],
        shares([3.0, 3.0, 0.0])[1] * shares([3.0, 0.5, 4.0])[2],
    ]
    assert [answer["probability"] for answer in found] == pytest.approx(expected)


STARTS = [[4.0, 0.0], [9.0, 1.0], [20.0, 0.0]]
ENDS = [[3.0, 0.5], [2.0, 3.0], [20.0, 0.0]]
"""Scores of the pieces in two windows of one passage, x y and y z, and in the one of another; y is
judged in the first window alone."""


@pytest.mark.parametrize(
    ("first", "second", "prediction", "window"),
    [
        ((0.5, 1.0), (0.5, -1.0), "x", 0),
        ((0.5, 1.0), (2.0, 1.0), "x", 0),
        ((5.0, 5.0), (3.5, 4.5), "", 1),
        ((3.5, 4.5), (5.0, 5.0), "", 0),
        ((5.0, 5.0), (3.0, 4.0), "x", 0),  # as good as the span: the span is the answer
    ],
)
def test_of_windows_each_answer_has_its_share_in_the_one_that_it_is_taken_from(first, second, prediction, window):
    """The best span of 7, of the first window, against the lowest of two scores of having none."""
    target = SpanTarget()
    target.unanswerable = True
    none = torch.tensor([first, second, (-9.0, -9.0)])
    several, widest = torch.tensor([True, True, False]), torch.tensor([[True, True], [False, True], [True, True]])
    rows, begins, lengths = torch.tensor([[0, 0, 1], [0, 1, 0], [2, 2, 2]])
    outputs = WindowScores(
        SpanScores(torch.tensor(STARTS), torch.tensor(ENDS), none), Windows(rows, begins, lengths, several, widest)
    )
    split = SimpleNamespace(
        rows=[{"passage": "x y z"}, {"passage": "u v"}],
        targets={"starts": Ragged.of([[0, 2, 4], [0, 2]]), "ends": Ragged.of([[1, 3, 5], [1, 3]])},
    )
    answer, other = ExtractJoined(Given(3), target).answers(None, outputs, batch(2), split)
    place = 1 if prediction else 0
    by_start = shares([none[window, 0].item(), *STARTS[window]])[place]
    by_end = shares([none[window, 1].item(), *ENDS[window]])[place]
    assert answer == {"prediction": prediction, "probability": pytest.approx(by_start * by_end)}
    assert other["prediction"] == "u" and other["probability"] == pytest.approx(1)


# what is written symbol by symbol


def written(reserved: int) -> SymbolTarget:
    target = SymbolTarget(reserved=reserved, by_word=False)
    target.symbols = ["a", "b"]
    return target


def test_a_transcript_has_the_sum_of_all_its_paths():
    """Of three frames, of two, and of frames that say nothing. The best path alone is less than
    that."""
    frames = torch.tensor(
        [
            [[0.1, 0.7, 0.2], [0.4, 0.5, 0.1], [0.2, 0.1, 0.7]],
            [[0.2, 0.5, 0.3], [0.1, 0.6, 0.3], [0.0, 0.0, 1.0]],
            [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.9, 0.1, 0.0]],
        ]
    )
    lengths = torch.tensor([3, 2, 3])
    found = Transcribe(Given(3), written(1)).answers(Given(3), (frames.log(), lengths), batch(3), None)
    assert [answer["prediction"] for answer in found] == ["ab", "a", ""]
    for row, length in enumerate(lengths.tolist()):
        expected, best = 0.0, 0.0
        for path in product(range(3), repeat=length):
            if "".join("-ab"[symbol] for symbol, _ in groupby(path) if symbol) == found[row]["prediction"]:
                probability = math.prod(frames[row, frame, symbol].item() for frame, symbol in enumerate(path))
                expected, best = expected + probability, max(best, probability)
        assert found[row]["probability"] == pytest.approx(expected, rel=1e-5)
        assert best < expected or not found[row]["prediction"]


class Chain(Generator):
    """The next symbol depends on the last one alone, by a table of scores."""

    def __init__(self, table: Tensor):
        super().__init__()
        self.table = table

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        return self.table[prefix]

    def start(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return vectors[:, 0]

    def step(self, symbols: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return (self.table[symbols] + state).log_softmax(-1), state


def test_a_text_has_the_product_of_its_symbols_and_of_the_end():
    """Without the end, a text would be as probable as all that begin with it."""
    table = torch.tensor([[0.0, 0.0, 0.5, 0.0, 1.0, 0.2]]).repeat(6, 1)
    table[4, 5], table[5, 2] = 2.0, 3.0
    encoder = Chain(table)
    head, source = Generate(encoder, written(4)), SimpleNamespace(vectors=torch.zeros(1, 1, 6), mask=torch.ones(1, 1))
    [answer] = head.answers(encoder, source, batch(1), None)
    steps = [(1, 4), (4, 5), (5, 2)]
    expected = math.prod(shares(table[before].tolist())[after] for before, after in steps)
    assert answer == {"prediction": "ab", "probability": pytest.approx(expected)}

"""The mechanism of MT-DNN: one transformer under a head for each kind of task, among them an answer
of several steps about two texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.pretrained.mt_dnn import MTDNN, StochasticRelation, texts_of
from harness import registry
from harness.data.companions import Companion, judged
from harness.data.corpus import Corpus
from harness.objectives import MultiTask, Step
from harness.problems.match import MatchJoined
from harness.settings import TrainingSettings
from harness.training.model import Model, build, objective_of
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.known_dropout import Uneven, as_is, uneven
from tests.support.models import small
from tests.support.same import assert_same
from tests.support.toy_corpus import ToyTask, sentences, toy_task

SIZE, CLASSES, STEPS = 4, 3, 3
PAIRS = [("the cat sat", "a dog"), ("dogs", "the cat sat on the mat"), ("on the mat", "cat")]


@pytest.fixture(scope="module")
def pieces() -> SubwordBatch:
    view = Subwords(size=60, max_length=20)
    view.fit([text for pair in PAIRS for text in pair] * 3)
    first, second = (view.encode([pair[n] for pair in PAIRS]) for n in (0, 1))
    return view.collate_pair(first, second, np.arange(len(PAIRS)), cut="longer")


def relation() -> StochasticRelation:
    return small(StochasticRelation, SIZE, CLASSES, STEPS, 0.5, 0.0)


def written_out(
    layer: StochasticRelation,
    first: Tensor,
    second: Tensor,
    kept: list[int],
    dropped: Callable[[Tensor], Tensor] = as_is,
) -> Tensor:
    """Logarithms of mean probabilities (classes,) of two texts' states, over the kept steps."""
    second = dropped(second)
    state = sum(share * h for share, h in zip((second @ layer.begin.weight[0]).softmax(0), second, strict=True))
    w_i, w_h, b_i, b_h = (getattr(layer.update, name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    answers = []
    for _ in range(STEPS):
        asked = layer.read.weight @ dropped(state)
        read = sum(share * p for share, p in zip((dropped(first) @ asked).softmax(0), first, strict=True))
        seen = torch.cat([state, read, (state - read).abs(), state * read])
        answers.append((layer.predict.weight @ dropped(seen) + layer.predict.bias).softmax(0))
        x, h = (w_i @ read + b_i).split(SIZE), (w_h @ dropped(state) + b_h).split(SIZE)
        reset, update = torch.sigmoid(x[0] + h[0]), torch.sigmoid(x[1] + h[1])
        state = (1 - update) * torch.tanh(x[2] + reset * h[2]) + update * dropped(state)
    return (sum(answers[k] for k in kept) / len(kept)).log()


def spans(pieces: SubwordBatch) -> list[tuple[slice, slice]]:
    """The places of both texts of each pair, counted: [CLS] a [SEP] b [SEP]."""
    found = []
    for length, segments in zip(pieces.lengths.tolist(), pieces.segments.tolist(), strict=True):
        start = segments.index(1)
        found.append((slice(1, start - 1), slice(start, length - 1)))
    return found


def states_for(pieces: SubwordBatch) -> Tensor:
    """States with large numbers at [CLS], [SEP] and padding."""
    states = torch.randn(*pieces.ids.shape, SIZE)
    texts = torch.zeros(pieces.ids.shape, dtype=torch.bool)
    for row, (a, b) in enumerate(spans(pieces)):
        texts[row, a] = texts[row, b] = True
    return states.masked_fill(~texts[..., None], 50.0).requires_grad_()


def test_the_pieces_of_both_texts_are_told_apart_without_marks(pieces):
    first, second = texts_of(pieces)
    for row, (a, b) in enumerate(spans(pieces)):
        assert first[row].nonzero().flatten().tolist() == list(range(a.start, a.stop))
        assert second[row].nonzero().flatten().tolist() == list(range(b.start, b.stop))


def test_the_answer_is_the_mean_of_the_probabilities_of_all_steps(pieces):
    """Written out, in values and gradients: a mean of scores, a text in the other's place, the
    state of another step would give other ones."""
    layer, states = relation(), states_for(pieces)

    def expected(given: Tensor) -> Tensor:
        rows = [
            written_out(layer, text[a], text[b], [0, 1, 2]) for text, (a, b) in zip(given, spans(pieces), strict=True)
        ]
        return torch.stack(rows)

    assert_same(layer(states, pieces), expected(states))
    torch.testing.assert_close(layer(states, pieces).exp().sum(1), torch.ones(3))


def test_dropout_acts_where_the_authors_program_has_it(pieces):
    """On what a summary, a comparison, a step and a prediction read, and not on what is read of the
    first text."""
    layer, states = relation(), states_for(pieces)
    layer.dropout = Uneven()
    texts = zip(states, spans(pieces), strict=True)
    expected = [written_out(layer, text[a], text[b], [0, 1, 2], uneven) for text, (a, b) in texts]
    assert_same(layer(states, pieces), torch.stack(expected))


def test_in_training_some_steps_are_left_out_and_never_all(pieces):
    layer, states = relation().train(), states_for(pieces)
    layer.step_dropout = 1.0
    alone = [written_out(layer, states[0][a], states[0][b], [k]) for a, b in spans(pieces)[:1] for k in range(STEPS)]
    found = {min(range(STEPS), key=lambda k: (layer(states, pieces)[0] - alone[k]).abs().sum()) for _ in range(30)}
    assert found == {0, 1, 2}, "one of them, any"
    layer.step_dropout = 0.0
    every = written_out(layer, *(states[0][s] for s in spans(pieces)[0]), [0, 1, 2])
    torch.testing.assert_close(layer(states, pieces)[0], every)


def test_the_ranking_loss_is_over_the_candidates_of_one_question():
    """A softmax over the batch would have the answers of other questions beaten."""
    scores = torch.tensor([1.0, 2.0, -1.0, 0.5, 0.2], requires_grad=True)
    labels, groups = torch.tensor([1, 0, 0, 1, 0]), torch.tensor([0, 0, 1, 0, 1])
    own = scores[[0, 1, 3]].exp()
    expected = -((own[0] / own.sum()).log() + (own[2] / own.sum()).log()) / 2
    found = MTDNN.rank_loss(None, scores, labels, groups)
    torch.testing.assert_close(found, expected)
    for a, b in zip(torch.autograd.grad(found, scores), torch.autograd.grad(expected, scores), strict=True):
        torch.testing.assert_close(a, b)
    alone = MTDNN.rank_loss(None, scores, torch.tensor([1, 0, 0, 0, 0]), groups)
    torch.testing.assert_close(alone, -(own[0] / own.sum()).log())
    assert MTDNN.rank_loss(None, scores, torch.zeros(5), groups).item() == 0.0


def corpus() -> Corpus:
    own = toy_task(train=sentences(16))
    pairs = [{"id": f"p{n}", "first": f"a {n}", "second": f"so {n}", "label": "xyz"[n % 3]} for n in range(12)]
    asked = [
        {"id": f"r{n}", "first": f"what {n // 2}", "second": f"it {n}", "label": str(n % 2), "group": f"{n // 2}"}
        for n in range(12)
    ]
    others = [ToyTask({"train": pairs}, type="match"), ToyTask({"train": asked}, type="rank", main_metric="map")]
    for task, name in zip(others, ("pairs", "asked"), strict=True):
        task.entry = dataclasses.replace(task.entry, id=name)
    known = judged(own, "mini", None)
    members = [Companion(task, "mini", None, None, "joined states", known) for task in others]
    return Corpus(own, "mini", None, Subwords(size=80, max_length=16), "joined states", companions=members)


def model_of(data: Corpus) -> Model:
    torch.manual_seed(0)
    sizes = {"layers": 1, "hidden": 8, "heads": 2, "companions": ["pairs", "asked"]}
    return build(MTDNN, data.problem, sizes, data.view, data.target, 100)


def test_a_batch_of_one_kind_of_task_reaches_the_transformer_and_its_own_head_alone():
    """Heads that moved with each other's batches would forget."""
    data = corpus()
    for stream in ("labelled", "pairs", "asked"):
        model = model_of(data)
        made = objective_of(model, TrainingSettings())
        made.begin({"labelled": data.train, **data.companion_splits})
        assert isinstance(made, MultiTask)
        split = data.train if stream == "labelled" else data.companion_splits[stream]
        made.losses(model, Step({stream: split.collate(np.arange(8))}, 0.0))["loss"].backward()
        heads = {"labelled": model.head, **made.heads}
        reached = {name for name, head in heads.items() if any(p.grad is not None for p in head.parameters())}
        assert reached == {stream}
        assert model.encoder.table.weight.grad.any() and model.encoder.body.layers[0].norms[0].weight.grad.any()
    assert isinstance(made.heads["pairs"], MatchJoined)
    relation = made.heads["pairs"].output
    assert isinstance(relation, StochasticRelation) and relation.steps == 5 and relation.step_dropout == 0.1
    assert relation.dropout.p == 0.1
    assert relation.predict.out_features == 3


def test_other_pretrained_encoders_score_pairs_by_a_linear_layer():
    """They have no layer of their own for two texts."""
    view = Subwords(size=80, max_length=16)
    rows = [{"id": f"{n}", "first": f"a {n}", "second": f"so {n}", "label": "xy"[n % 2]} for n in range(8)]
    data = Corpus(
        ToyTask({"train": rows, "dev": rows, "test": rows}, type="match"), "mini", None, view, "joined states"
    )
    bert = registry.load(registry.entry("architectures", "bert"))
    model = build(bert, data.problem, {"layers": 1, "hidden": 8, "heads": 2}, data.view, data.target, 100).eval()
    batch = data.train.collate(np.arange(4))
    vectors = model.encoder.pooled(model.encoder(batch.inputs["text"]))
    torch.testing.assert_close(model(batch.inputs), vectors @ model.head.output.weight.T + model.head.output.bias)


def test_it_answers_single_texts_pairs_and_candidates_and_no_plain_text():
    types = {type for type in registry.entries("problems") if MTDNN.can_answer(type)}
    assert types == {"classify", "match", "rank"}
    assert MTDNN.learns is None and MTDNN.whole_groups

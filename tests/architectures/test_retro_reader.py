"""The mechanism of Retro-Reader: a first network judges, a second one reads and judges, and both
verdicts decide whether an answer is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.pretrained.bert import BERT
from architectures.pretrained.retro_reader import ReadingAndVerifying, RetroReader
from harness import registry
from harness.objectives import Step, Supervised
from harness.problems import problem
from harness.problems.base import IGNORED
from harness.problems.extract import SpanTarget
from harness.training.model import Model, build
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.known_dropout import Uneven, uneven
from tests.support.models import small
from tests.support.teaching import kept, view_of

QUESTIONS = ["a dog", "the mat", "the cat sat"]
PASSAGES = ["the cat sat on the mat and the dog sat on the cat the mat", "a dog ran", "the mat and the cat"]
SIZES = {"layers": 1, "hidden": 8, "heads": 2}


@pytest.fixture(scope="module")
def view() -> Subwords:
    made = view_of(*QUESTIONS, *PASSAGES, max_length=16)
    made.stride = 4
    return made


@pytest.fixture(scope="module")
def pieces(view: Subwords) -> SubwordBatch:
    """Three questions, of which the first has a passage of several windows."""
    read = view.collate_pair(view.encode(QUESTIONS), view.encode(PASSAGES), np.arange(3), "second")
    assert read.windows is not None and read.windows.rows.tolist().count(0) > 1
    return read


def model_of(view: Subwords, cls: Any = RetroReader, **sizes: Any) -> Model:
    target = SpanTarget()
    target.unanswerable = True
    return small(build, cls, problem("extract"), SIZES | sizes, view, target, 0)


def pooled(encoder: Any, pieces: SubwordBatch) -> Tensor:
    """The states of [CLS] of the first network through its tanh layer, written out."""
    layer = encoder.front.pooler[0]
    return torch.tanh(encoder.front(pieces)[:, 0] @ layer.weight.T + layer.bias)


def step_of(pieces: SubwordBatch, target: Tensor) -> Step:
    return Step({"labelled": SimpleNamespace(inputs={"text": pieces}, target=target)}, 0.0)  # type: ignore[dict-item]


def without_dropout(model: Model) -> Model:
    """The model in training, with nothing left out."""
    for part in model.modules():
        if isinstance(getattr(part, "dropout", None), float):
            part.dropout = 0.0
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    return model.train()


TARGET = torch.tensor([[1, 2], [-1, -1], [IGNORED, IGNORED]])
"""An answer in the first window, none, and one that lies beyond the passage."""


def test_the_loss_is_a_third_of_the_readers_three_and_the_judges_own(view, pieces):
    """Written out, in values and gradients: a verdict about a window is whether it holds the
    answer, and what lies beyond it is not asked."""
    model = without_dropout(model_of(view))
    found = ReadingAndVerifying(model.encoder, model, Supervised()).losses(model, step_of(pieces, TARGET))["loss"]
    ours = torch.autograd.grad(found, list(model.parameters()), allow_unused=True)

    outputs = model.head(model.encoder, {"text": pieces})
    spans = model.head.loss(model.encoder, outputs, TARGET)
    rows, begins = pieces.windows.rows.tolist(), pieces.windows.begins.tolist()  # type: ignore[union-attr]
    states, first = BERT.forward(model.encoder, pieces)[:, 0], pooled(model.encoder, pieces)
    own, sketchy = [], []
    for number, (row, begin) in enumerate(zip(rows, begins, strict=True)):
        if row == 2:
            continue
        nothing = row == 1 or begin > 1
        for layer, state, losses in (
            (model.encoder.verdict, states[number], own),
            (model.encoder.sketch, first[number], sketchy),
        ):
            share = 1 / (1 + torch.exp(-(layer.weight[0] @ state + layer.bias[0])))
            losses.append(-(share if nothing else 1 - share).log())
    expected = (spans + sum(own) / len(own)) / 3 + sum(sketchy) / len(sketchy)
    torch.testing.assert_close(found, expected)
    theirs = torch.autograd.grad(expected, list(model.parameters()), allow_unused=True)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_the_judge_learns_nothing_from_the_spans(view, pieces):
    """It is a network of its own: with the reader's losses alone it has no gradient."""
    model = model_of(view).train()
    model.head.loss(model.encoder, model.head(model.encoder, {"text": pieces}), TARGET).backward()
    assert all(parameter.grad is None for parameter in model.encoder.front.parameters())
    assert all(parameter.grad is None for parameter in model.encoder.sketch.parameters())


@pytest.mark.parametrize("trust", [0.0, 1.0, 3.0])
def test_both_verdicts_decide(view, pieces, trust):
    """Having none is worth the reader's score plus so many times the judge's log-odds; without
    trust the reader decides alone."""
    model = model_of(view, trust=trust)
    outputs = model.head(model.encoder, {"text": pieces})
    alone = model_of(view, trust=0.0)
    reader = alone.head(alone.encoder, {"text": pieces})
    judged = model.encoder.sketch(pooled(model.encoder, pieces))[:, 0]
    sums = outputs.scores.no_answer.sum(1) - reader.scores.no_answer.sum(1)
    torch.testing.assert_close(sums, trust * judged)
    torch.testing.assert_close(outputs.scores.start, reader.scores.start)


def test_both_judge_by_numbers_of_which_some_are_dropped(view, pieces):
    """As the authors' program does before each of these layers: the first network behind its tanh
    layer, the second, which has none, on the state of [CLS]."""
    encoder = model_of(view).encoder
    encoder.dropout = encoder.front.dropout = Uneven()
    states, first = encoder(pieces)[:, 0], pooled(encoder, pieces)
    for found, layer, state in (
        (encoder.intensive, encoder.verdict, states),
        (encoder.sketchy, encoder.sketch, first),
    ):
        torch.testing.assert_close(found, uneven(state) @ layer.weight[0] + layer.bias[0])


def test_in_training_the_reader_is_not_helped_by_the_judge(view, pieces):
    """Its own score would never be learnt."""
    model = model_of(view, trust=100.0)
    helped = model.head(model.encoder, {"text": pieces}).scores.no_answer
    own = without_dropout(model).head(model.encoder, {"text": pieces}).scores.no_answer
    torch.testing.assert_close(helped - own, 50.0 * model.encoder.sketchy[:, None].expand(-1, 2), rtol=1e-4, atol=1e-4)


def test_both_networks_begin_with_bert(view):
    parent, child = model_of(view, cls=BERT), model_of(view).encoder
    before = {name: of.clone() for name, of in child.state_dict().items()}
    with torch.no_grad():
        for of in parent.parameters():
            of.mul_(1.5)
    child.inherit("weights", kept(parent, view), [])
    given = parent.encoder.state_dict()
    for name, own in child.state_dict().items():
        expected = before[name] if name.startswith(("sketch.", "verdict.")) else given[name.removeprefix("front.")]
        assert torch.equal(own, expected), name


def test_it_is_for_spans():
    assert [type for type in registry.entries("problems") if RetroReader.can_answer(type)] == ["extract"]
    assert registry.entry("architectures", "retro_reader").parents == {"weights": "bert@text_mix"}
    assert RetroReader.trained_by is ReadingAndVerifying

"""TwinBERT: an average of states by their own weights, a crossing layer over two kept vectors, and
a teacher's softened labels, each written out, in values and gradients."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from architectures.pretrained.bert import BERT
from architectures.siamese.twinbert import TwinBERT, logits
from harness import registry
from harness.errors import ModelError
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.problems.rank import RankTarget
from harness.training.model import Model, build, objective_of
from harness.views.subwords import Subwords
from tests.support.models import small
from tests.support.plain_text import batch
from tests.support.same import assert_same
from tests.support.teaching import kept

FIRST, SECOND = ["who sat?", "the cats", "who?"], ["the cats sat on the mat", "cat", "who sat on the cats"]
SIZES = {"layers": 1, "hidden": 8, "heads": 2}


@pytest.fixture(scope="module")
def view() -> Subwords:
    made = TwinBERT.reads("text", {"vocabulary": 60, "max_length": 24})
    made.fit([*FIRST, *SECOND])
    return made


def model_of(view: Subwords, **options: Any) -> Model:
    return small(build, TwinBERT, problem("rank"), SIZES | options, view, RankTarget(), 0)


def vector(encoder: TwinBERT, view: Subwords, text: str) -> Tensor:
    """The average of one text's states, which are BERT's of the text alone."""
    states = encoder.states(batch(view, text))[0]
    scores = [encoder.importance.weight[0] @ state for state in states]
    total = sum(score.exp() for score in scores)
    return sum(score.exp() / total * state for score, state in zip(scores, states, strict=True))


def score(encoder: TwinBERT, q: Tensor, k: Tensor, crossing: str) -> Tensor:
    if crossing == "cosine":
        cosine = (q * k).sum() / ((q * q).sum() * (k * k).sum()).sqrt()
        return encoder.score.weight[0, 0] * cosine + encoder.score.bias[0]
    x = torch.stack([torch.where(a > b, a, b) for a, b in zip(q, k, strict=True)])
    crossed = encoder.crossing.weight @ x + encoder.crossing.bias + x
    return encoder.score.weight[0] @ crossed + encoder.score.bias[0]


@pytest.mark.parametrize(("id", "crossing"), [("twinbert", "residual"), ("twinbert_cosine", "cosine")])
def test_a_pair_is_scored_as_written_out(view, id, crossing):
    """In values and gradients: padding in the average, an average of all alike, a sum for the
    largest, or no residual would show."""
    entry = registry.entry("architectures", id)
    assert registry.load(entry) is TwinBERT
    encoder = model_of(view, **entry.hyperparameters).encoder
    found = encoder(batch(view, *FIRST), batch(view, *SECOND))
    for row, (first, second) in enumerate(zip(FIRST, SECOND, strict=True)):
        expected = score(encoder, vector(encoder, view, first), vector(encoder, view, second), crossing)
        assert_same(found[row], expected, rtol=1e-4, atol=1e-5)


def test_without_weights_the_crossing_is_the_larger_of_both(view):
    encoder = model_of(view).encoder
    with torch.no_grad():
        encoder.crossing.weight.zero_()
        encoder.crossing.bias.zero_()
    q, k = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(encoder.cross(q, k), encoder.score(torch.maximum(q, k)).squeeze(1))


def test_kept_vectors_of_candidates_give_the_same_scores(view):
    """Otherwise each question would cost a pass over all candidates."""
    encoder = model_of(view).encoder
    candidates = encoder.text(batch(view, *SECOND))
    for question in FIRST:
        asked = encoder.text(batch(view, question)).expand(len(SECOND), -1)
        whole = encoder(batch(view, *[question] * len(SECOND)), batch(view, *SECOND))
        torch.testing.assert_close(encoder.cross(asked, candidates), whole, rtol=1e-5, atol=1e-6)


def teacher(*probabilities: float) -> Any:
    answers = [{"prediction": 0.0, "probability": each} for each in probabilities]
    return SimpleNamespace(answers=lambda rows: answers[: len(rows)])


def step(view: Subwords, rows: list[int]) -> Step:
    texts = {"first": batch(view, *[FIRST[n] for n in rows]), "second": batch(view, *[SECOND[n] for n in rows])}
    target = torch.tensor([n % 2 for n in rows]), torch.zeros(len(rows), dtype=torch.long)
    return Step({"labelled": Batch(texts, target, torch.tensor(rows).numpy(), 1)}, progress=0.0)


@pytest.mark.parametrize("temperature", [1.0, 2.0, 1e6])
def test_the_teacher_s_logits_are_softened_labels(view, temperature):
    """By hand, row by row: rows of another text, labels in the place of opinions, no temperature.
    At a very high one each label is a half."""
    model = model_of(view, temperature=temperature)
    shares = (0.9, 0.2, 0.6)
    model.encoder.inherit("teacher", teacher(*shares), [{}] * 3)
    objective = objective_of(model, None, None)
    loss = objective.losses(model, step(view, [2, 0]))["loss"]
    wanted = 0
    for row in (2, 0):
        z = math.log(shares[row] / (1 - shares[row]))
        y = 1 / (1 + math.exp(-z / temperature))
        assert temperature < 1e6 or y == pytest.approx(0.5, abs=1e-5)
        own = model.encoder(batch(view, FIRST[row]), batch(view, SECOND[row]))[0]
        wanted = wanted - (y * own.sigmoid().log() + (1 - y) * (1 - own.sigmoid()).log()) / 2
    assert_same(loss, wanted, rtol=1e-4, atol=1e-5)


def test_without_a_teacher_labels_teach(view):
    """And in a kept child, which is given no rows."""
    model = model_of(view)
    model.encoder.inherit("teacher", teacher(0.5, 0.5, 0.5), [])
    assert model.encoder.taught is None
    scores = model.encoder(batch(view, FIRST[0], FIRST[1]), batch(view, SECOND[0], SECOND[1]))
    loss = objective_of(model, None, None).losses(model, step(view, [0, 1]))["loss"]
    assert_same(loss, -((1 - scores[0].sigmoid()).log() + scores[1].sigmoid().log()) / 2, rtol=1e-4, atol=1e-5)


def test_a_sure_teacher_has_a_finite_logit_and_one_without_probabilities_is_refused():
    sure = logits(teacher(0.0, 1.0), [{}, {}])
    torch.testing.assert_close(sure, torch.tensor([-13.8155, 13.8155]), rtol=1e-2, atol=0)
    with pytest.raises(ModelError, match="gives no probability"):
        logits(SimpleNamespace(answers=lambda rows: [{"prediction": 1.0}]), [{}])


def test_it_begins_with_the_lower_layers_of_bert(view):
    """Its own crossing and weights of states begin at random."""
    target = ClassTarget()
    target.labels = ["a", "b"]
    parent = small(build, BERT, problem("classify"), SIZES | {"layers": 2}, view, target, 0)
    child = model_of(view).encoder
    before = {name: of.clone() for name, of in child.state_dict().items()}
    child.inherit("weights", kept(parent, view), [])
    given = parent.encoder.state_dict()
    for name, own in child.state_dict().items():
        new = name.split(".")[0] in ("importance", "crossing", "score")
        assert torch.equal(own, before[name] if new else given[name]), name


def test_its_parents_and_what_it_runs_on():
    entry = registry.entry("architectures", "twinbert")
    assert entry.parents == {"weights": "bert@text_mix", "teacher": "bert"}
    assert TwinBERT.roles("rank") == ("weights", "teacher")
    assert [type for type in registry.entries("problems") if TwinBERT.can_answer(type)] == ["rank"]
    assert TwinBERT(20, Subwords(max_length=8)).importance.bias is None, "a softmax has no use for one"
    with pytest.raises(ValueError, match="crossing='dot' is none of residual, cosine"):
        TwinBERT(20, Subwords(max_length=8), crossing="dot")


def test_alike_texts_score_higher_from_the_start():
    """A factor of the cosine that begins by chance has either sign, and tuning does not turn it."""
    for seed in range(3):
        torch.manual_seed(seed)
        encoder = TwinBERT(20, Subwords(max_length=8), crossing="cosine", **SIZES)
        q = torch.randn(4, encoder.size // 3)
        assert (encoder.cross(q, q) > 0).all() and (encoder.cross(q, -q) < 0).all()

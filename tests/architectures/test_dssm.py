"""The mechanism of DSSM: counted letter trigrams, tanh towers, cosine, and a softmax over one right
and drawn wrong candidates."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.ranking import sampled_negatives, sampled_softmax_loss, worst_negative_hinge_loss
from architectures.siamese.dssm import DSSM, Tower
from harness.views.bag import LetterTrigrams, TrigramBatch
from tests.support.models import small
from tests.support.oracles import cosine
from tests.support.same import assert_same

TEXTS = ["the cat sat", "a cat, a cat!", "sat the cat", "dogs"]


def view() -> LetterTrigrams:
    view = LetterTrigrams()
    view.fit(TEXTS)
    return view


def read(*texts: str) -> TrigramBatch:
    fitted = view()
    return fitted.collate(fitted.encode(texts), np.arange(len(texts)))


def model_of(**options) -> DSSM:
    return small(DSSM, view().width, hidden=5, output=4, **options)


def written_out(tower: Tower, text: str) -> Tensor:
    """The text's vector from the counts of the trigrams of its marked words."""
    trigrams = view().trigrams
    counts = torch.zeros(len(trigrams))
    for word in text.lower().replace(",", " ,").replace("!", " !").split():
        marked = f"#{word}#"
        for start in range(len(marked) - 2):
            counts[trigrams.index(marked[start : start + 3])] += 1
    hidden = torch.tanh(counts @ tower.table.weight + tower.bias)
    for layer in (tower.layers[0], tower.layers[2]):
        hidden = torch.tanh(layer.weight @ hidden + layer.bias)
    return hidden


def test_a_score_is_the_cosine_of_the_texts_tanh_layers_over_trigram_counts():
    """ "a cat, a cat!" holds each trigram twice: tables of presence instead of counts would
    differ."""
    model = model_of()
    found = model(read("the cat sat", "dogs"), read("a cat, a cat!", "a cat, a cat!"))
    for score, question in zip(found, ("the cat sat", "dogs"), strict=True):
        expected = cosine(written_out(model.query, question), written_out(model.query, "a cat, a cat!"))
        assert_same(score, expected)


def test_order_of_words_does_not_count():
    """A text is as near as can be to its own words."""
    model = model_of()
    torch.testing.assert_close(model(read("sat the cat"), read("the cat sat")), torch.ones(1))


def test_a_text_without_a_known_trigram_has_an_ordinary_gradient():
    """At a zero vector the cosine's gradient is without bound: one such text would wreck the
    model."""
    model = model_of()
    model(read("qqqq", "zzz"), read("zzz", "dogs")).sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.abs().max() < 100 for p in model.parameters())


@pytest.mark.parametrize("shared", [True, False])
def test_towers_share_their_weights_or_have_their_own(shared):
    model = model_of(shared=shared)
    first, second = read("the cat sat"), read("the cat sat")
    assert (model.query is model.document) == shared == torch.allclose(model(first, second), torch.ones(1))


def test_weights_start_within_the_limit_of_their_layer():
    """sqrt(6 / (inputs + outputs)), as in the paper; the first layer's bias starts at zero."""
    tower = Tower(400, 50, 20)
    for weights, sizes in ((tower.table.weight, 450), (tower.layers[0].weight, 100), (tower.layers[2].weight, 70)):
        limit = (6 / sizes) ** 0.5
        assert 0.97 * limit < weights.abs().max() <= limit
    assert not tower.bias.any()


# --- the losses over a question's candidates ---

LABELS = torch.tensor([1, 0, 0, 0, 1, 0, 1, 0, 0])
GROUPS = torch.tensor([7, 7, 7, 7, 7, 2, 3, 4, 4])
"""Question 7 has two right and three wrong candidates; 2 and 4 have no right one and 3 has no wrong
one."""
SCORES = torch.tensor([0.9, 0.4, -0.2, 0.7, 0.1, 0.3, 0.5, 0.6, 0.8])


def test_the_loss_compares_a_right_candidate_with_its_questions_wrong_ones():
    """The softmax is over gamma times the cosine. The other right candidate, and candidates of
    other questions, are in no denominator."""
    wrong = (0.4, -0.2, 0.7)
    losses = [-math.log(math.exp(5 * s) / (math.exp(5 * s) + sum(math.exp(5 * w) for w in wrong))) for s in (0.9, 0.1)]
    found = DSSM(3, hidden=2, output=2, gamma=5.0, negatives=4).rank_loss(SCORES, LABELS, GROUPS)
    assert found.item() == pytest.approx(sum(losses) / 2, rel=1e-5)


def test_four_negatives_are_drawn_without_replacement():
    """They are wrong candidates of the same question, and each of these comes up."""
    torch.manual_seed(0)
    scores, labels, groups = torch.arange(20.0), torch.tensor([1] + [0] * 19), torch.tensor([0] * 10 + [1] * 10)
    seen = set()
    for _ in range(30):
        drawn = sampled_negatives(scores, labels, groups, 4)[0].tolist()
        assert len(set(drawn)) == 4 and set(drawn) <= set(range(1, 10))
        seen |= set(drawn)
    assert seen == set(range(1, 10))


def test_fewer_wrong_candidates_than_asked_for_are_all_taken():
    found = sampled_negatives(SCORES, LABELS, GROUPS, 4)
    assert sorted(found[0].tolist()) == sorted([-math.inf, *SCORES[1:4].tolist()])
    assert found[6].tolist() == [-math.inf] * 4
    assert sampled_negatives(SCORES[:2], LABELS[:2], GROUPS[:2], 4).shape == (2, 2)


def test_the_hinge_is_against_the_best_wrong_candidate():
    losses = [max(0.0, 0.3 - 0.9 + 0.7), max(0.0, 0.3 - 0.1 + 0.7)]
    assert worst_negative_hinge_loss(SCORES, LABELS, GROUPS, negatives=4, margin=0.3).item() == pytest.approx(
        sum(losses) / 2
    )


def test_a_right_candidate_beyond_the_margin_gives_no_gradient():
    scores = torch.tensor([0.9, 0.2, 0.1], requires_grad=True)
    worst_negative_hinge_loss(scores, torch.tensor([1, 0, 0]), torch.zeros(3), negatives=2, margin=0.3).backward()
    assert not scores.grad.any()


@pytest.mark.parametrize("rows", [[5, 7, 8], [6], [5, 6]], ids=["no right one", "no wrong one", "apart"])
@pytest.mark.parametrize(
    "loss",
    [lambda *a: sampled_softmax_loss(*a, 4), lambda *a: worst_negative_hinge_loss(*a, 4, 0.3)],
    ids=["softmax", "hinge"],
)
def test_questions_without_a_right_or_a_wrong_candidate_add_nothing(loss, rows):
    """The loss can still be differentiated. Such batches occur: a NaN, or a loss without a graph,
    would end the training."""
    scores = SCORES[rows].clone().requires_grad_()
    found = loss(scores, LABELS[rows], GROUPS[rows])
    found.backward()
    assert found.item() == 0 and scores.grad.tolist() == [0.0] * len(rows)

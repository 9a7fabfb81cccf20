"""The mechanism of aNMM: similarities summed by value, weights that belong to values, and a gate
over the question's words."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from architectures.matching.anmm import AttentionBasedMatching, bin_sums
from harness.views.words import UNKNOWN, WordBatch
from tests.support.batches import mask_of, texts_of
from tests.support.models import small
from tests.support.oracles import cosine
from tests.support.pairs import shipped
from tests.support.same import assert_same

WIDTH, BINS = 4, 7
FIRST, SECOND = (3, 1, 4), (2, 5, 1)
"""Words of each text of three pairs."""


def texts(lengths: tuple[int, ...], seed: int, words: int = 9) -> WordBatch:
    """Random words of a small vocabulary, some of them unknown, with large numbers at padding that
    must not count."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(words, WIDTH, generator=torch.Generator().manual_seed(99))
    mask = mask_of(lengths)
    spellings = torch.randint(1, words, mask.shape, generator=generator) * mask
    ids = torch.where(spellings < 4, UNKNOWN, spellings) * mask  # spellings 1 to 3 were never seen in training
    return texts_of(table[ids], lengths)._replace(ids=ids, spellings=spellings)


model_of = partial(small, AttentionBasedMatching, WIDTH, bins=BINS)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def one_word(model: AttentionBasedMatching, word: int, first: WordBatch, second: WordBatch, row: int) -> float:
    """h_j: the sums of question word ``word`` in its bins, through the weights."""
    sums = [0.0] * BINS
    for m in range(int(second.lengths[row])):
        q, a = first.vectors[row, word], second.vectors[row, m]
        if first.spellings[row, word] == second.spellings[row, m]:
            sums[-1] += 1.0
        elif UNKNOWN not in (first.ids[row, word], second.ids[row, m]):
            similarity = cosine(q, a).item()
            sums[math.floor((similarity + 1) / 2 * (BINS - 1))] += similarity
    sets = [
        sigmoid(sum(w * x for w, x in zip(weights, sums, strict=True))) for weights in model.bin_weights.weight.tolist()
    ]
    if len(sets) == 1:
        return sets[0]
    return sigmoid(sum(r * h for r, h in zip(model.set_weights.weight[0].tolist(), sets, strict=True)))


@pytest.mark.parametrize(("id", "sets"), [("anmm_1", 1), ("anmm_2", 10)])
def test_a_score_is_the_gated_sum_over_question_words_of_their_weighted_bins(id, sets):
    """Counts for sums, weights by position, a gate over padding or over the answer would each show
    here, and aNMM-2 without its second layer."""
    model, first, second = shipped(id, WIDTH, bins=BINS), texts(FIRST, 7), texts(SECOND, 5)
    assert len(model.bin_weights.weight) == sets
    found = model(first, second)
    assert found.shape == (3,)
    for row, length in enumerate(FIRST):
        assert length == 1 or one_word(model, 0, first, second, row) != one_word(model, 1, first, second, row)
        gates = [math.exp((model.gate.weight[0] @ first.vectors[row, j]).item()) for j in range(length)]
        expected = sum(gate * one_word(model, j, first, second, row) for j, gate in enumerate(gates)) / sum(gates)
        assert found[row].item() == pytest.approx(expected, abs=1e-5)


def test_similarities_are_summed_in_the_bin_of_their_value():
    """Exact matches have a bin of their own. Bins of [-1, -0.5), [-0.5, 0), [0, 0.5), [0.5, 1] and
    the exact one; 0.999 is no exact match."""
    similarities = torch.tensor([[[1.0, -0.4, 0.1, 0.3, 0.999], [-1.0, 1.0, 1.0, 0.5, 0.7]]])
    exact = torch.tensor([[[True, False, False, False, False], [False, True, True, False, False]]])
    found = bin_sums(similarities, exact, torch.tensor([[True, True, True, True, True]]), bins=5)
    torch.testing.assert_close(found, torch.tensor([[[0.0, -0.4, 0.4, 0.999, 1.0], [-1.0, 0.0, 0.0, 1.2, 2.0]]]))
    shorter = bin_sums(similarities, exact, torch.tensor([[True, True, False, False, False]]), bins=5)
    torch.testing.assert_close(shorter, torch.tensor([[[0.0, -0.4, 0.0, 0.0, 1.0], [-1.0, 0.0, 0.0, 0.0, 1.0]]]))


def test_the_order_of_the_answer_does_not_count():
    """Weights that belong to positions would tell the orders apart."""
    model, first, second = model_of(), texts((4,), 1), texts((5,), 3)
    order = [4, 2, 0, 3, 1]
    turned = second._replace(
        ids=second.ids[:, order], vectors=second.vectors[:, order], spellings=second.spellings[:, order]
    )
    assert_same(model(first, turned), model(first, second))


def test_two_unknown_words_match_only_when_they_are_spelt_the_same():
    """They have one vector, so their cosine is 1."""
    model = model_of()
    first, second = texts((1,), 1), texts((2,), 1)
    unknown = {
        "ids": torch.full((1, 2), UNKNOWN),
        "vectors": first.vectors[:, :1].expand(1, 2, -1),
        "spellings": torch.tensor([[5, 6]]),
    }
    question = first._replace(ids=unknown["ids"][:, :1], spellings=torch.tensor([[5]]))
    answer = second._replace(**unknown)
    exact = torch.tensor([[[True, False]]])
    assert model.similarities(question, answer, exact).tolist() == [[[1.0, 0.0]]]


def test_gradients_reach_the_similarities_that_are_summed():
    similarities = torch.tensor([[[0.2, -0.7, 0.3]]], requires_grad=True)
    weights = torch.tensor([3.0, 5.0, 7.0])
    (
        bin_sums(similarities, torch.zeros(1, 1, 3).bool(), torch.tensor([[True, True, False]]), bins=3) @ weights
    ).sum().backward()
    assert similarities.grad.tolist() == [[[5.0, 3.0, 0.0]]]


def test_the_loss_is_the_hinge_over_all_pairs_of_a_question():
    scores, labels, groups = torch.tensor([0.9, 0.1, 0.3, 0.7]), torch.tensor([1, 0, 0, 0]), torch.tensor([0, 0, 0, 1])
    assert model_of().rank_loss(scores, labels, groups).item() == pytest.approx((0.2 + 0.4) / 2)


def test_word_vectors_are_fixed_unless_tuning_is_asked_for():
    assert model_of().vectors == "fixed" and model_of(tuned=True).vectors == "tuned"


def test_all_weights_start_between_zero_and_one():
    """As the authors' program draws them: weights of both signs begin with other scores."""
    for weights in shipped("anmm_2", 50, stretch=None).parameters():
        assert weights.min() >= 0 and 0.7 < weights.max() <= 1

"""The mechanism of MV-LSTM: all states interact with all, and only the strongest interactions are
read, wherever they stand."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.matching.mv_lstm import MVLSTM, k_largest
from tests.support.batches import assert_each_alone, random_texts, rows_alone
from tests.support.oracles import cosine
from tests.support.pairs import bilstm, dense, shipped
from tests.support.same import assert_same

WIDTH = 5
FIRST, SECOND = (4, 1, 6), (2, 3, 5)
"""Words of each text of three pairs; the second pair has three interactions, fewer than k."""

texts = partial(random_texts, width=WIDTH)


def model_of(interaction: str, **options) -> MVLSTM:
    return shipped(f"mv_lstm_{interaction}", WIDTH, hidden=4, slices=3, k=4, mlp=6, **options)


def maps_of(interaction: str, layer: nn.Module, u: Tensor, v: Tensor) -> list[Tensor]:
    """The interactions of one pair of states, one for each map."""
    if interaction == "cosine":
        return [cosine(u, v)]
    if interaction == "bilinear":
        return [sum(u[i] * layer.weight[i, j] * v[j] for i in range(len(u)) for j in range(len(v))) + layer.bias[0]]
    joined, weights = torch.cat([u, v]), torch.cat([layer.first.weight, layer.second.weight], dim=1)
    return [
        (u @ m @ v + w @ joined + b).clamp(min=0)
        for m, w, b in zip(layer.weight, weights, layer.first.bias, strict=True)
    ]


def written_out(model: MVLSTM, interaction: str, first: Tensor, second: Tensor) -> Tensor:
    """The vector of one pair: every interaction, sorted, cut after k, and through the hidden
    layer."""
    u, v = (bilstm(model.positions, text) for text in (first, second))
    found = [maps_of(interaction, model.interaction, x, y) for x in u for y in v]
    kept = []
    for values in zip(*found, strict=True):
        largest = sorted(values, reverse=True)[: model.k]
        kept += largest + [torch.zeros(())] * (model.k - len(largest))
    return dense(model.mlp, torch.stack(kept)).clamp(min=0)


@pytest.mark.parametrize("interaction", ["cosine", "bilinear", "tensor"])
def test_a_batch_of_pairs_is_each_pair_written_out_interaction_by_interaction(interaction):
    """A wrong formula, an id with another's formula, one direction, another cell, padding among the
    largest values, or values of one map in the place of another's would show here."""
    model, first, second = model_of(interaction, classes=2), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, model.size)
    assert_each_alone(result, partial(written_out, model, interaction), first, second, rtol=1e-4, atol=1e-5)


def test_a_bilinear_interaction_may_be_negative():
    """The ReLU belongs to the tensor layer alone."""
    layer, state = model_of("bilinear").interaction, torch.eye(8)[:1]
    with torch.no_grad():
        layer.weight.copy_(torch.eye(8))
        layer.bias.fill_(0.5)
    assert layer(2 * state[None], -3 * state[None]).flatten().tolist() == [-5.5]


def test_the_k_largest_of_the_whole_matrix_are_kept():
    """They stand in falling order, wherever they come from."""
    maps = torch.tensor([[[[3.0, -1.0, 7.0], [5.0, 2.0, 9.0]]]])
    real = torch.tensor([[[True, True, True], [True, True, False]]])
    assert k_largest(maps, real, 3).tolist() == [[[7.0, 5.0, 3.0]]]
    assert k_largest(maps.flip(2), real.flip(1), 3).tolist() == [[[7.0, 5.0, 3.0]]]


def test_fewer_interactions_than_k_leave_zeros_and_a_finite_gradient():
    """Two texts of one word have one interaction; -inf in the places of the missing ones would end
    the training."""
    maps = torch.tensor([[[[-2.0, 4.0]]]], requires_grad=True)
    kept = k_largest(maps, torch.tensor([[[True, False]]]), 5)
    kept.square().sum().backward()
    assert kept.tolist() == [[[-2.0, 0.0, 0.0, 0.0, 0.0]]] and maps.grad.flatten().tolist() == [-4.0, 0.0]


def test_ranking_is_trained_by_the_hinge_of_two_candidates():
    """Right and wrong candidates of one question. One wrong candidate for each right one, at the
    margin; a question without wrong ones adds nothing."""
    model = model_of("cosine", margin=0.5)
    scores = model(texts(FIRST, 1), texts(SECOND, 2))
    assert model.scores and scores.shape == (3,)
    labels, groups = torch.tensor([1, 0, 1]), torch.tensor([0, 0, 1])
    torch.testing.assert_close(
        model.rank_loss(torch.tensor([0.7, 0.4, 9.0]), labels, groups), torch.tensor(0.5 - 0.7 + 0.4)
    )
    assert model.rank_loss(torch.tensor([1.0, 0.4, 0.0]), labels, groups) == 0


def test_the_wrong_candidate_is_drawn_anew_each_time():
    """The worst of several would be another loss than the paper's, of a pair drawn at random."""
    scores, labels, groups = torch.tensor([0.5, 0.4, 0.2]), torch.tensor([1, 0, 0]), torch.zeros(3)
    model = model_of("cosine", margin=0.2)
    assert {round(model.rank_loss(scores, labels, groups).item(), 4) for _ in range(30)} == {0.1, 0.0}


def test_a_score_is_linear_in_the_hidden_layer_and_has_no_constant():
    model, first, second = model_of("cosine"), texts(FIRST, 1), texts(SECOND, 2)
    assert model.score.bias is None
    vectors = [dense(model.score, written_out(model, "cosine", *pair))[0] for pair in rows_alone(first, second)]
    assert_same(model(first, second), torch.stack(vectors), rtol=1e-4, atol=1e-5)


def test_cosines_start_apart():
    """With torch's own biases all states would begin nearly alike, and so all cosines close to
    1."""
    recurrence = shipped("mv_lstm_cosine", WIDTH, stretch=None).positions
    assert not any(parameter.any() for name, parameter in recurrence.named_parameters() if "bias" in name)


def test_an_unknown_interaction_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'dot' is none of cosine, bilinear, tensor"):
        MVLSTM(WIDTH, interaction="dot")

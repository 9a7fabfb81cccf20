"""The mechanism of ABCDM: two recurrences side by side, attention that weighs and does not sum, and
eight pooled vectors."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.attention.abcdm import ABCDM, Branch
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution, gru, lstm

WIDTH = 4

texts = partial(random_texts, seed=1, width=WIDTH)
model_of = partial(small, ABCDM, WIDTH, hidden=3, maps=5, windows=(2, 3), dense=12)


def eight(model: ABCDM, vectors: Tensor) -> list[Tensor]:
    """The pooled vectors of one text: of each recurrence and window the mean and the maximum."""
    pooled = []
    for branch, cell in zip(model.branches, (lstm, gru), strict=True):
        (left,), (right,) = branch.recurrence.forwards, branch.recurrence.backwards
        states = torch.cat([cell(left, vectors), cell(right, vectors.flip(0)).flip(0)], dim=1)
        layer = branch.attention.hidden
        scores = torch.stack([torch.tanh(layer.weight @ h + layer.bias) @ branch.attention.context for h in states])
        weights = (scores - scores.max()).exp()
        weighted = [a * h for a, h in zip(weights / weights.sum(), states, strict=True)]
        for filters in branch.convolutions:
            short = max(0, filters.kernel_size[0] - len(weighted))
            maps = torch.stack(convolution(filters, weighted, right=short))
            pooled += [maps.mean(0), maps.amax(0)]
    return pooled


def written_out(model: ABCDM, vectors: Tensor) -> Tensor:
    """The vector of one text."""
    first, second = model.dense[0], model.dense[3]
    joined = torch.cat(eight(model, vectors))
    hidden = (first.weight @ joined + first.bias).clamp(min=0)
    return (second.weight @ hidden + second.bias).clamp(min=0)


def test_a_text_is_eight_pooled_vectors_through_two_dense_layers():
    """Weights that sum the states, one recurrence twice, an activation before pooling, or padding
    in a mean would show here."""
    model, batch = model_of(), texts((7, 4, 2, 1))
    assert len(eight(model, batch.vectors[0])) == 8
    assert_each_alone(model(batch), partial(written_out, model), batch)


def test_attention_weighs_each_state_and_leaves_the_positions_apart():
    """A sum would hand the convolutions one position."""
    model, batch, lengths = model_of(), texts((7,)), []
    for branch in model.branches:
        for layer in branch.convolutions:
            layer.register_forward_hook(lambda module, inputs, output: lengths.append(inputs[0].shape[2]))
    model(batch)
    assert lengths == [7] * 4


def test_filters_start_as_he_et_al_say_and_layers_halve():
    model = ABCDM(100)
    for branch in model.branches:
        assert [layer.weight.shape for layer in branch.convolutions] == [(32, 256, 4), (32, 256, 6)]
        for layer in branch.convolutions:
            limit = (6 / (256 * layer.kernel_size[0])) ** 0.5
            assert 0.99 * limit < layer.weight.abs().max() <= limit and not layer.bias.any()
    assert model.dense[0].weight.shape == (64, 256) and model.dense[3].weight.shape == (32, 64)


def test_dropout_acts_on_features_of_all_words_on_states_and_behind_the_first_layer():
    """Of the words a feature is dropped everywhere in a text, as spatial dropout says."""
    model, seen = small(ABCDM, 40, hidden=30, maps=5, dense=200, dropout=0.5).train(), {}
    model.branches[0].recurrence.register_forward_hook(lambda module, inputs, output: seen.update(words=inputs[0]))
    model.branches[1].dropout.register_forward_hook(lambda module, inputs, output: seen.update(states=output))
    model.dense[2].register_forward_hook(lambda module, inputs, output: seen.update(hidden=(inputs[0], output)))
    model(random_texts([6, 6], 1, 40))
    dropped = seen["words"] == 0
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped)) and 0.3 < dropped.float().mean() < 0.7
    assert 0.4 < (seen["states"] == 0).float().mean() < 0.6
    inputs, output = seen["hidden"]
    assert ((output == 0) & (inputs > 0)).any()
    assert isinstance(model.branches[0], Branch) and model.word_dropout.p == 0.5

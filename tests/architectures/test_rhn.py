"""The mechanism of recurrent highway networks: several highway layers in each time step, of which
the first alone reads the word."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.recurrent.rhn import RecurrentHighway
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.recurrent import assert_vector_comes_from_real_states
from tests.support.same import assert_same

WIDTH, HIDDEN = 3, 4

texts = partial(random_texts, (6, 3, 1), 1, WIDTH)
model_of = partial(small, RecurrentHighway, WIDTH, hidden=HIDDEN, depth=3, spread=0.5)


def written_out(model: RecurrentHighway, vectors: Tensor) -> Tensor:
    """States (n, HIDDEN) of a text by equations 6 to 9 of the paper, with the carry gate 1 - t."""
    w_h, w_t = model.input.weight.split(HIDDEN)
    s, states = torch.zeros(HIDDEN), []
    for x in vectors:
        for number, layer in enumerate(model.layers):
            (r_h, r_t), (b_h, b_t) = layer.weight.split(HIDDEN), layer.bias.split(HIDDEN)
            first = number == 0
            h = torch.tanh((w_h @ x if first else 0) + r_h @ s + b_h)
            t = torch.sigmoid((w_t @ x if first else 0) + r_t @ s + b_t)
            s = h * t + s * (1 - t)
        states.append(s)
    return torch.stack(states)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_batch_is_each_text_written_out_layer_by_layer(depth):
    """The word in every layer, one matrix for all layers, or gates in each other's place would each
    give other states."""
    model, batch = model_of(depth=depth), texts()
    assert len(model.layers) == depth
    assert_each_alone(model(batch.vectors, batch.mask), partial(written_out, model), batch, states=True)


def test_shut_transform_gates_carry_the_state_through_time_and_depth():
    """Of the first word, which alone opens the gates, all is left behind the last."""
    model = model_of()
    with torch.no_grad():
        for number, layer in enumerate(model.layers):
            layer.weight.zero_()
            layer.bias[HIDDEN:].fill_(-200.0)
            layer.bias[:HIDDEN].fill_(0.5 if number == 0 else 9.0)
        model.input.weight.zero_()
        model.input.weight[HIDDEN:, 0] = 400.0
    vectors = torch.randn(1, 7, WIDTH)
    vectors[0, :, 0] = torch.tensor([1.0, 0, 0, 0, 0, 0, 0])
    states = model(vectors, mask_of([7]))[0]
    torch.testing.assert_close(states, torch.full((7, HIDDEN), 0.5).tanh())


def test_gates_start_nearly_closed_and_all_else_within_the_spread():
    model = RecurrentHighway(WIDTH)
    for layer in model.layers:
        assert layer.bias[300:].unique().tolist() == [-2.0]
        assert layer.bias[:300].abs().max() <= 0.04 and 0.03 < layer.weight.abs().max() <= 0.04
    assert 0.03 < model.input.weight.abs().max() <= 0.04
    assert model.input.bias is None, "each layer has one bias"


@pytest.mark.parametrize("pooling", ["last", "mean", "max"])
def test_a_texts_vector_comes_from_its_real_states_alone(pooling):
    assert_vector_comes_from_real_states(model_of(pooling=pooling), written_out, pooling, texts())


def test_dropout_has_one_mask_for_all_words_of_a_text_and_one_for_all_its_states():
    """A mask for each word would let none of the state survive many steps."""
    wide = torch.ones(2, 5, 40)
    model = small(RecurrentHighway, 40, hidden=30, depth=2, input_dropout=0.5, state_dropout=0.25).train()
    seen: dict[str, list[Tensor]] = {"words": [], "states": []}
    model.input.register_forward_hook(lambda layer, inputs, output: seen["words"].append(inputs[0]))
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda layer, inputs: seen["states"].append(inputs[0] == 0))
    model(wide, mask_of([5, 5]))
    (words,), states = seen["words"], torch.stack(seen["states"][1:])
    assert words.unique().tolist() == [0.0, 2.0] and torch.equal(words, words[:, :1].expand_as(words))
    assert not torch.equal(words[0], words[1]) and 0.3 < (words == 0).float().mean() < 0.7
    assert not torch.equal(states[0, 0], states[0, 1]), "each text has its own"
    assert torch.equal(states, states[:1].expand_as(states)) and 0.05 < states.float().mean() < 0.5
    for rates in ({"input_dropout": 0.0}, {"state_dropout": 0.0}):
        model = small(RecurrentHighway, WIDTH, hidden=HIDDEN, depth=2, **rates).train()
        assert not torch.equal(model(texts().vectors, texts().mask), model(texts().vectors, texts().mask)), rates


def test_a_kept_number_of_the_state_is_enlarged_where_a_gate_reads_it_only():
    """What is carried on is whole: dropout on it would fade it away in ten layers."""
    model = small(RecurrentHighway, WIDTH, hidden=HIDDEN, depth=1, input_dropout=0.0, state_dropout=0.9999).train()
    vectors = torch.randn(1, 2, WIDTH)
    states = model(vectors, mask_of([2]))[0]
    w_h, w_t = (vectors[0] @ w.T for w in model.input.weight.split(HIDDEN))
    b_h, b_t = model.layers[0].bias.split(HIDDEN)
    h, t = torch.tanh(w_h + b_h), torch.sigmoid(w_t + b_t)
    first = h[0] * t[0]
    assert_same(states, torch.stack([first, h[1] * t[1] + first * (1 - t[1])]))
    assert F.dropout(torch.ones(4), 0.9999).sum() == 0


def test_a_step_without_a_layer_is_refused_by_name():
    """Torch would tell of an index that is out of range."""
    with pytest.raises(ValueError, match="depth=0: a word passes one highway layer at least"):
        RecurrentHighway(WIDTH, depth=0)

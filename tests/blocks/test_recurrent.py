"""Recurrent stacks against torch's own over packed sequences, with the same weights; dropout
between layers; and the reversal of texts of different lengths."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from architectures.blocks.recurrent import Recurrent, reverse
from tests.support.batches import POISON, mask_of, random_vectors
from tests.support.models import small
from tests.support.same import assert_same

WIDTH, HIDDEN = 3, 4
LENGTHS = [6, 2, 1, 5]
TORCHS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


def torchs(model: Recurrent, cell: str, layers: int, both: bool, bias: bool = True) -> nn.RNNBase:
    """Torch's stack with the weights of the model, which has one layer of torch's per layer and
    direction."""
    stack = TORCHS[cell](WIDTH, HIDDEN, layers, bias=bias, batch_first=True, bidirectional=both)
    weights = {}
    for suffix, directions in (("", model.forwards), ("_reverse", model.backwards)):
        for number, layer in enumerate(directions):
            for name, weight in layer.named_parameters():
                weights[f"{name.removesuffix('_l0')}_l{number}{suffix}"] = weight
    stack.load_state_dict(weights, assign=True)  # the model's own, which gradients reach
    return stack


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("cell", TORCHS)
def test_states_are_those_of_torchs_stack_over_packed_sequences(cell, layers, both):
    """Every recurrent architecture stands on this: another cell, a direction less, a layer that
    reads one direction alone, or padding in a right-to-left state would be in all of them."""
    model = small(Recurrent, cell, WIDTH, HIDDEN, layers, both)
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    packed = pack_padded_sequence(vectors, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(torchs(model, cell, layers, both)(packed)[0], batch_first=True)
    states = model(vectors, mask)
    assert states.shape[-1] == model.size == HIDDEN * (1 + both)
    assert_same(states[mask], expected[mask])


def test_options_reach_every_layer():
    """The Elman network of the source text has no bias, in either direction and in any layer."""
    model = small(Recurrent, "rnn", WIDTH, HIDDEN, 2, True, bias=False)
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    packed = pack_padded_sequence(vectors, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(torchs(model, "rnn", 2, True, bias=False)(packed)[0], batch_first=True)
    assert_same(model(vectors, mask)[mask], expected[mask])
    assert not any(parameter.dim() == 1 for parameter in model.parameters())


@pytest.mark.parametrize("both", [False, True])
def test_dropout_acts_between_layers_and_nowhere_else(both):
    """With all dropped, the upper layer runs over zeros; one layer alone has nothing between."""
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    model = small(Recurrent, "lstm", WIDTH, HIDDEN, 2, both, dropout=1.0).train()
    upper = Recurrent("lstm", model.size, HIDDEN, 1, both)
    upper.forwards[0] = model.forwards[1]
    if both:
        upper.backwards[0] = model.backwards[1]
    nothing = upper(torch.zeros(*mask.shape, model.size), mask)
    assert_same(model(vectors, mask)[mask], nothing[mask])
    assert not torch.allclose(model.eval()(vectors, mask)[mask], nothing[mask])
    single = small(Recurrent, "lstm", WIDTH, HIDDEN, 1, both, dropout=1.0)
    trained = single.train()(vectors, mask)
    assert_same(trained, single.eval()(vectors, mask))


def test_dropout_between_layers_has_its_rate_and_both_directions_read_the_same_rest():
    """A share of the lower states is zero, and what is left is as much larger."""
    model = small(Recurrent, "gru", WIDTH, 40, 2, True, dropout=0.25).train()
    read: list[Tensor] = []
    for layer in (model.forwards[1], model.backwards[1]):
        layer.register_forward_pre_hook(lambda layer, inputs: read.append(inputs[0]))
    below: list[Tensor] = []
    for layer in (model.forwards[0], model.backwards[0]):
        layer.register_forward_hook(lambda layer, inputs, outputs: below.append(outputs[0]))
    mask = mask_of([12, 12])
    model(torch.randn(2, 12, WIDTH), mask)
    lower = torch.cat([below[0], below[1].flip(1)], dim=-1)
    kept = read[0] != 0
    assert 0.70 < kept.float().mean() < 0.80
    for dim in (0, 1, 2):
        assert not (kept.any(dim) == kept.all(dim)).all(), "a lot for each number of each word of each text"
    torch.testing.assert_close(read[0][kept], lower[kept] / 0.75)
    torch.testing.assert_close(read[1].flip(1), read[0])


def test_reversal_turns_the_real_positions_round_and_is_its_own_inverse():
    """Padding stays behind the text, so that the first vector read is the last real one."""
    vectors = torch.tensor([[[1.0], [2.0], [3.0], [POISON]], [[4.0], [POISON], [8.0], [7.0]]])
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    turned = reverse(vectors, mask)
    assert turned.squeeze(-1).tolist() == [[3.0, 2.0, 1.0, POISON], [4.0, POISON, 8.0, 7.0]]
    assert torch.equal(reverse(turned, mask), vectors)


@pytest.mark.parametrize("layers", [0, -1])
def test_no_layer_is_none_of_the_sizes(layers):
    """One was trained in its place, and the record would have told of none."""
    with pytest.raises(ValueError, match=f"layers={layers}: a recurrence has one layer at least"):
        Recurrent("lstm", WIDTH, HIDDEN, layers)

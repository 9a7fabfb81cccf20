"""The mechanism of the bidirectional LSTM: both directions start at a real word, whatever the
padding."""

from __future__ import annotations

import torch
from torch import nn

from architectures.blocks.recurrent import reverse
from architectures.recurrent.bilstm import BidirectionalLSTM
from harness.problems.heads import text_vector
from harness.views.words import WordBatch

LENGTHS = torch.tensor([7, 3, 1, 5])
MASK = torch.arange(7) < LENGTHS[:, None]


def packed_reference(model: BidirectionalLSTM, layers: int, width: int, hidden: int) -> nn.LSTM:
    """torch's own bidirectional LSTM with the weights of the model."""
    reference = nn.LSTM(width, hidden, layers, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for number in range(layers):
            for suffix, stack in (("", model.recurrence.forwards), ("_reverse", model.recurrence.backwards)):
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    getattr(reference, f"{name}_l{number}{suffix}").copy_(getattr(stack[number], f"{name}_l0"))
    return reference


def test_states_are_those_of_a_packed_lstm_of_two_layers():
    torch.manual_seed(0)
    model = BidirectionalLSTM(width=3, hidden=4, layers=2).eval()
    vectors = torch.randn(4, 7, 3)
    packed = nn.utils.rnn.pack_padded_sequence(vectors, LENGTHS, batch_first=True, enforce_sorted=False)
    expected, _ = nn.utils.rnn.pad_packed_sequence(packed_reference(model, 2, 3, 4)(packed)[0], batch_first=True)
    torch.testing.assert_close(model(vectors, MASK)[MASK], expected[MASK])


def test_padding_reaches_neither_direction():
    torch.manual_seed(0)
    model = BidirectionalLSTM(width=3, hidden=4).eval()
    vectors = torch.randn(4, 7, 3)
    noisy = torch.where(MASK[..., None], vectors, 1000.0)
    torch.testing.assert_close(model(noisy, MASK)[MASK], model(vectors, MASK)[MASK])


def test_each_half_of_a_state_reads_its_own_side_of_the_text():
    torch.manual_seed(0)
    model = BidirectionalLSTM(width=3, hidden=4).eval()
    vectors, mask = torch.randn(1, 7, 3), torch.ones(1, 7, dtype=torch.bool)
    changed = vectors.clone()
    changed[0, 3] += 1
    moved = (model(changed, mask) - model(vectors, mask))[0].abs() > 1e-6
    assert moved[:, :4].any(1).tolist() == [False] * 3 + [True] * 4
    assert moved[:, 4:].any(1).tolist() == [True] * 4 + [False] * 3


def test_reversal_turns_the_real_positions_round_and_is_its_own_inverse():
    vectors = torch.tensor([[[1.0], [2.0], [3.0], [9.0]], [[4.0], [9.0], [8.0], [7.0]]])
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    turned = reverse(vectors, mask)
    assert turned.squeeze(-1).tolist() == [[3.0, 2.0, 1.0, 9.0], [4.0, 9.0, 8.0, 7.0]]
    assert torch.equal(reverse(turned, mask), vectors)


def test_a_texts_vector_is_the_mean_of_its_states():
    torch.manual_seed(0)
    model = BidirectionalLSTM(width=3, hidden=4).eval()
    vectors = torch.randn(4, 7, 3)
    pooled = text_vector(model, WordBatch(MASK.long(), MASK, LENGTHS, vectors))
    torch.testing.assert_close(pooled[1], model(vectors, MASK)[1, :3].mean(0))

"""The mechanism of the bidirectional RNN: two recurrences with weights of their own, each starting
at a real word."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.birnn import BidirectionalRNN
from harness.problems.heads import text_vector
from harness.views.words import WordBatch

LENGTHS = torch.tensor([7, 3, 1, 5])
MASK = torch.arange(7) < LENGTHS[:, None]


def model_of(**options) -> BidirectionalRNN:
    torch.manual_seed(0)
    return BidirectionalRNN(width=3, hidden=4, **options).eval()


def one_way(layer: nn.RNN, vectors: Tensor) -> Tensor:
    """States (T, hidden) of h_i = tanh(h_{i-1} U + x_i V) over vectors (T, width)."""
    state, states = torch.zeros(layer.hidden_size), []
    for x in vectors:
        state = torch.tanh(layer.weight_hh_l0 @ state + layer.weight_ih_l0 @ x)
        states.append(state)
    return torch.stack(states)


def written_out(model: BidirectionalRNN, vectors: Tensor) -> Tensor:
    """States (T, 2 * hidden) of one text without padding, layer upon layer."""
    for forwards, backwards in zip(model.recurrence.forwards, model.recurrence.backwards, strict=True):
        vectors = torch.cat([one_way(forwards, vectors), one_way(backwards, vectors.flip(0)).flip(0)], dim=1)
    return vectors


@pytest.mark.parametrize("layers", [1, 2])
def test_states_are_both_recurrences_written_out_and_padding_reaches_neither(layers):
    """Large numbers stand at padding: a right-to-left recurrence that began there would carry them
    into every state."""
    model = model_of(layers=layers)
    vectors = torch.where(MASK[..., None], torch.randn(4, 7, 3), 1000.0)
    found = model(vectors, MASK)
    for row, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(found[row, :length], written_out(model, vectors[row, :length]))


def test_each_half_of_a_state_reads_its_own_side_of_the_text():
    model = model_of()
    vectors, mask = torch.randn(1, 7, 3), torch.ones(1, 7, dtype=torch.bool)
    changed = vectors.clone()
    changed[0, 3] += 1
    moved = (model(changed, mask) - model(vectors, mask))[0].abs() > 1e-6
    assert moved[:, :4].any(1).tolist() == [False] * 3 + [True] * 4
    assert moved[:, 4:].any(1).tolist() == [True] * 4 + [False] * 3


def test_the_directions_share_no_weights_and_have_no_bias():
    """Shared weights would give a palindrome mirrored states; a bias is not part of the
    recurrence."""
    model = model_of()
    assert [p.shape for p in model.parameters()] == [(4, 3), (4, 4)] * 2
    vectors = torch.randn(1, 3, 3)
    palindrome = torch.cat([vectors, vectors.flip(1)], dim=1)
    states = model(palindrome, torch.ones(1, 6, dtype=torch.bool))[0]
    assert not torch.allclose(states[:, :4], states[:, 4:].flip(0), atol=1e-2)


def test_a_texts_vector_is_the_mean_of_its_states_or_the_ends_of_both_directions():
    vectors = torch.randn(4, 7, 3)
    texts = WordBatch(MASK.long(), MASK, LENGTHS, vectors)
    states = written_out(model_of(), vectors[1, :3])
    torch.testing.assert_close(text_vector(model_of(), texts)[1], states.mean(0))
    torch.testing.assert_close(
        text_vector(model_of(pooling="ends"), texts)[1], torch.cat([states[2, :4], states[0, 4:]])
    )

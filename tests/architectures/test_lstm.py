"""The mechanism of the LSTM: three gates round a memory cell, read from left to right."""

from __future__ import annotations

import torch

from architectures.recurrent.lstm import LSTM
from harness.problems.classify import text_vector
from harness.views.words import WordBatch

INPUT, FORGET, CANDIDATE, OUTPUT = range(4)
"""Order of the gates in PyTorch's stacked weights."""


def test_an_open_forget_gate_and_a_closed_input_gate_copy_the_cell_for_ever():
    """The word at the start writes the cell; two hundred others, shut out by the input gate, leave
    it as it is."""
    model = LSTM(width=1, hidden=1).eval()
    layer = model.recurrence.forwards[0]
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.weight_ih_l0[INPUT], layer.bias_ih_l0[INPUT] = 100.0, -50.0
        layer.bias_ih_l0[FORGET], layer.bias_ih_l0[OUTPUT] = 50.0, 50.0
        layer.weight_ih_l0[CANDIDATE], layer.bias_ih_l0[CANDIDATE] = 0.25, 0.25
    vectors = torch.zeros(1, 201, 1)
    vectors[0, 0] = 1.0
    states = model(vectors, torch.ones(1, 201, dtype=torch.bool)).flatten()
    torch.testing.assert_close(states, torch.tensor(0.5).tanh().tanh().expand(201))


def test_states_follow_the_equations_and_each_reads_the_past_alone():
    torch.manual_seed(0)
    model = LSTM(width=3, hidden=4).eval()
    layer = model.recurrence.forwards[0]
    vectors, mask = torch.randn(2, 6, 3), torch.arange(6) < torch.tensor([[6], [4]])
    hidden = cell = torch.zeros(2, 4)
    states = []
    for x in vectors.unbind(1):
        parts = x @ layer.weight_ih_l0.T + layer.bias_ih_l0 + hidden @ layer.weight_hh_l0.T + layer.bias_hh_l0
        write, keep, candidate, show = parts.chunk(4, dim=1)
        cell = keep.sigmoid() * cell + write.sigmoid() * candidate.tanh()
        hidden = show.sigmoid() * cell.tanh()
        states.append(hidden)
    found = model(vectors, mask)
    torch.testing.assert_close(found[mask], torch.stack(states, dim=1)[mask])
    changed = vectors.clone()
    changed[:, 3] += 1
    moved = (model(changed, mask) - found).abs().sum(-1)[0] > 1e-6
    assert moved.tolist() == [False] * 3 + [True] * 3


def test_a_texts_vector_is_its_last_real_state():
    torch.manual_seed(0)
    model = LSTM(width=3, hidden=4).eval()
    vectors, lengths = torch.randn(2, 6, 3), torch.tensor([6, 4])
    mask = torch.arange(6) < lengths[:, None]
    pooled = text_vector(model, WordBatch(mask.long(), mask, lengths, vectors))
    torch.testing.assert_close(pooled[1], model(vectors[1:, :4], mask[1:, :4])[0, -1])

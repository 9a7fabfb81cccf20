"""Attentional encoder-decoders: one decoding step after another against the equations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from architectures.seq2seq.attn_seq2seq import AttentionalSeq2Seq
from architectures.seq2seq.luong_seq2seq import LuongSeq2Seq
from tests.support.word_batches import random_vectors

WIDTH, SYMBOLS, START = 4, 5, 1
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])


def bahdanau(attention: str) -> AttentionalSeq2Seq:
    torch.manual_seed(0)
    encoder_hidden = 3 if attention == "dot" else 5
    return AttentionalSeq2Seq(
        WIDTH, SYMBOLS, encoder_hidden=encoder_hidden, hidden=6, symbol_size=3, attention=attention
    ).eval()


def luong(attention: str) -> LuongSeq2Seq:
    torch.manual_seed(0)
    return LuongSeq2Seq(WIDTH, SYMBOLS, hidden=6, layers=2, symbol_size=3, attention=attention).eval()


def source() -> tuple[Tensor, Tensor]:
    """Vectors so long that attention is far from uniform."""
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    return 2 * vectors, mask


def sum_weighted(weights: list[Tensor], states: Tensor) -> Tensor:
    """Mean of the states (S, E) under the softmax of their scores."""
    weights = torch.softmax(torch.stack(weights), 0)
    return sum(weight * state for weight, state in zip(weights, states, strict=True))


def lstm_cell(x: Tensor, h: Tensor, c: Tensor, weights: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """One LSTM step written out: gates in torch's order input, forget, cell, output."""
    w_x, w_h, b_x, b_h = weights
    i, f, g, o = (w_x @ x + b_x + w_h @ h + b_h).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_previous_state_attends_and_the_context_enters_every_gate(attention):
    """Attending from the new state, or a context beside the state instead of in the gates, gives
    other scores from step 1 on."""
    model = bahdanau(attention)
    vectors, mask = source()
    scores = model(vectors, mask, PREFIX)
    cell = model.decoder
    weights = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    for row, length in enumerate(LENGTHS):
        states = model.encoder(vectors[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool))[0]
        half = states.shape[1] // 2
        h = torch.tanh(model.bridge.weight @ states[0, half:] + model.bridge.bias)
        c = torch.zeros_like(h)
        for step, symbol in enumerate(PREFIX[row]):
            if attention == "additive":
                energies = [model.score.weight[0] @ torch.tanh(model.query(h) + model.key.weight @ s) for s in states]
            else:
                energies = [h @ s for s in states]
            context = sum_weighted(energies, states)
            h, c = lstm_cell(torch.cat([model.vectors_of_symbols.weight[symbol], context]), h, c, weights)
            torch.testing.assert_close(scores[row, step], model.output.weight @ h + model.output.bias)


@pytest.mark.parametrize("attention", ["dot", "general", "concat"])
def test_luong_attends_from_the_current_state_and_feeds_its_answer_back(attention):
    """Attending from the previous state, no input feeding, or scores from the bare state give other
    numbers."""
    model = luong(attention)
    vectors, mask = source()
    scores = model(vectors, mask, PREFIX)

    def layer(lstm: torch.nn.LSTM, number: int) -> tuple[Tensor, ...]:
        return tuple(getattr(lstm, f"{name}_l{number}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))

    for row, length in enumerate(LENGTHS):
        h, c = [torch.zeros(6)] * 2, [torch.zeros(6)] * 2
        memory = []
        for x in vectors[row, :length].flip(0):  # the source backwards
            for number in range(2):
                h[number], c[number] = lstm_cell(
                    x if number == 0 else h[0], h[number], c[number], layer(model.encoder, number)
                )
            memory.append(h[1])
        attentional = torch.zeros(6)
        for step, symbol in enumerate(PREFIX[row]):
            x = torch.cat([model.vectors_of_symbols.weight[symbol], attentional])
            for number in range(2):
                h[number], c[number] = lstm_cell(
                    x if number == 0 else h[0], h[number], c[number], layer(model.decoder, number)
                )
            if attention == "dot":
                energies = [h[1] @ s for s in memory]
            elif attention == "general":
                energies = [h[1] @ model.key.weight @ s for s in memory]
            else:
                energies = [
                    model.score.weight[0] @ torch.tanh(model.joint.weight @ torch.cat([h[1], s])) for s in memory
                ]
            context = sum_weighted(energies, torch.stack(memory))
            attentional = torch.tanh(model.combine.weight @ torch.cat([context, h[1]]))
            torch.testing.assert_close(scores[row, step], model.output.weight @ attentional + model.output.bias)


def test_dot_product_of_states_of_different_sizes_is_refused():
    with pytest.raises(ValueError, match="hidden = 2 \\* encoder_hidden, found 6 and 4"):
        AttentionalSeq2Seq(WIDTH, SYMBOLS, encoder_hidden=4, hidden=6, attention="dot")


@pytest.mark.parametrize("cls", [AttentionalSeq2Seq, LuongSeq2Seq])
def test_an_unknown_attention_is_named(cls):
    with pytest.raises(ValueError, match="attention='cosine'"):
        cls(WIDTH, SYMBOLS, attention="cosine")

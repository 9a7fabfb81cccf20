"""LSTM encoder-decoder: the equations step by step, and what of the source reaches the decoder."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from architectures.seq2seq.seq2seq import Seq2Seq
from tests.support.batches import random_vectors

WIDTH, SYMBOLS, HIDDEN, START = 4, 5, 6, 1
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])

source = partial(random_vectors, LENGTHS, 1, WIDTH)


def model_of(limit: float = 1.0) -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2Seq(WIDTH, SYMBOLS, hidden=HIDDEN, layers=2, symbol_size=3, limit=limit).eval()


def advance(lstm: nn.LSTM, x: Tensor, h: list[Tensor], c: list[Tensor]) -> Tensor:
    """Move the states and cells of all layers by one step, gates in torch's order input, forget,
    cell, output; the top state."""
    for number in range(len(h)):
        w_x, w_h, b_x, b_h = (
            getattr(lstm, f"{name}_l{number}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        i, f, g, o = (w_x @ x + b_x + w_h @ h[number] + b_h).chunk(4)
        c[number] = torch.sigmoid(f) * c[number] + torch.sigmoid(i) * torch.tanh(g)
        x = h[number] = torch.sigmoid(o) * torch.tanh(c[number])
    return x


def test_the_decoder_goes_on_from_the_states_in_which_the_encoder_left_the_reversed_source():
    """A source read forwards, a decoder begun from zeros or from the top layer alone, padding read:
    each gives other scores."""
    model = model_of()
    vectors, mask = source()
    scores = model(vectors, mask, PREFIX)
    for row, length in enumerate(LENGTHS):
        h, c = [torch.zeros(HIDDEN)] * 2, [torch.zeros(HIDDEN)] * 2
        for x in vectors[row, :length].flip(0):
            advance(model.encoder, x, h, c)
        for step, symbol in enumerate(PREFIX[row]):
            top = advance(model.decoder, model.vectors_of_symbols.weight[symbol], h, c)
            torch.testing.assert_close(scores[row, step], model.output.weight @ top + model.output.bias)


def test_all_weights_start_uniform_within_the_papers_bound():
    model = model_of(limit=0.08)
    for name, weight in model.named_parameters():
        assert 0.04 < weight.abs().max() <= 0.08, name

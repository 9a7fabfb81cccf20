"""LSTM encoder-decoder: the equations step by step, and what of the source reaches the decoder."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from architectures.seq2seq.seq2seq import Seq2Seq
from tests.support.batches import random_vectors
from tests.support.models import small
from tests.support.oracles import lstm_step
from tests.support.same import assert_same

WIDTH, SYMBOLS, HIDDEN, START = 4, 5, 6, 1
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])

source = partial(random_vectors, LENGTHS, 1, WIDTH)


model_of = partial(small, Seq2Seq, WIDTH, SYMBOLS, hidden=HIDDEN, layers=2, symbol_size=3, stretch=None)


def advance(lstm: nn.LSTM, x: Tensor, h: list[Tensor], c: list[Tensor]) -> Tensor:
    """The top state, after the states and cells of all layers moved by one step."""
    for number in range(len(h)):
        h[number], c[number] = lstm_step(lstm, x, h[number], c[number], number)
        x = h[number]
    return x


def test_the_decoder_goes_on_from_the_encoders_states():
    """The encoder reads the source from its end. A source read forwards, a decoder begun from zeros
    or from the top layer alone, padding read: each gives other scores."""
    model = model_of(limit=1.0)
    vectors, mask = source()
    scores = model(vectors, mask, PREFIX)
    for row, length in enumerate(LENGTHS):
        h, c = [torch.zeros(HIDDEN)] * 2, [torch.zeros(HIDDEN)] * 2
        for x in vectors[row, :length].flip(0):
            advance(model.encoder, x, h, c)
        for step, symbol in enumerate(PREFIX[row]):
            top = advance(model.decoder, model.vectors_of_symbols.weight[symbol], h, c)
            assert_same(scores[row, step], model.output.weight @ top + model.output.bias)


def test_a_step_goes_on_from_the_step_before():
    """Decoding that forgot its state would write the same symbol for ever."""
    model = model_of(limit=1.0)
    vectors, mask = source()
    scores = model(vectors, mask, PREFIX).log_softmax(-1)
    state = model.start(vectors, mask)
    for place, column in enumerate(PREFIX.unbind(1)):
        found, state = model.step(column, state)
        assert_same(found, scores[:, place])


def test_all_weights_start_uniform_within_the_papers_bound():
    """A Gaussian start of the same size has tails, and one that leaves a layer out is not the
    paper's."""
    model = small(Seq2Seq, 50, 40, hidden=50, layers=2, symbol_size=30, stretch=None, limit=0.08)
    for name, weight in model.named_parameters():
        assert 0.075 < weight.abs().max() <= 0.08, name
        assert abs(weight.std() * 3**0.5 - 0.08) < 0.01 and abs(weight.mean()) < 0.015, name

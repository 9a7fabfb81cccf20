"""CopyNet: one decoding step after another against the equations."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.seq2seq.copynet import CopyNet
from tests.support.batches import random_vectors
from tests.support.models import small
from tests.support.oracles import gru, softmax_mean, weights_of
from tests.support.same import assert_same

WIDTH, SYMBOLS, START, UNKNOWN = 4, 6, 1, 3
LENGTHS = [5, 2, 3]
SOURCE = torch.tensor([[6, 4, 8, 6, 4], [5, 7, 0, 0, 0], [6, 6, 6, 0, 0]])
"""Row 0 has a symbol twice and two words that are no symbols, one of them twice."""
PREFIX = torch.tensor([[START, 6, 4, 8], [START, 7, 5, 3], [START, 6, 4, 0]])


def model_of() -> CopyNet:
    return small(CopyNet, WIDTH, SYMBOLS, encoder_hidden=3, hidden=5, symbol_size=3)


def gru_step(cell: nn.GRUCell, x: Tensor, h: Tensor) -> Tensor:
    """State after one more vector; gates in torch's order reset, update, new."""
    w_x, w_h, b_x, b_h = weights_of(cell)
    (r, z, n), (r_h, z_h, n_h) = (w_x @ x + b_x).chunk(3), (w_h @ h + b_h).chunk(3)
    r, z = torch.sigmoid(r + r_h), torch.sigmoid(z + z_h)
    return (1 - z) * torch.tanh(n + r * n_h) + z * h


def test_a_step_is_one_softmax_over_generating_and_copying():
    """Two softmaxes, the exponential of the sum where equal words' are added, or no selective read
    give other numbers."""
    model = model_of()
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    scores = model(vectors, mask, SOURCE, PREFIX)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(3, 4))
    for row, length in enumerate(LENGTHS):
        text = vectors[row, :length]
        backwards = gru(model.encoder.backwards[0], text.flip(0))
        states = torch.cat([gru(model.encoder.forwards[0], text), backwards.flip(0)], dim=1)
        s = torch.tanh(model.bridge.weight @ backwards[-1] + model.bridge.bias)
        copied = [0.0] * length
        for step, symbol in enumerate(PREFIX[row].tolist()):
            there = [j for j in range(length) if SOURCE[row, j] == symbol]
            mass = sum(copied[j] for j in there)
            read = sum((copied[j] / mass * states[j] for j in there if mass), torch.zeros(6))
            assert not there or step == 0 or mass > 0
            query = model.query.weight @ s + model.query.bias
            energies = [model.score.weight[0] @ torch.tanh(query + model.key.weight @ h) for h in states]
            vector = model.vectors_of_symbols.weight[symbol if symbol < SYMBOLS else UNKNOWN]
            s = gru_step(model.decoder, torch.cat([vector, read, softmax_mean(energies, states)]), s)
            worth = [(w @ s).exp() for w in model.output.weight]
            places = [(torch.tanh(model.copy.weight @ h) @ s).exp() for h in states]
            total = sum(worth) + sum(places)
            copied = [place / total for place in places]
            shares = [share / total for share in worth] + [torch.zeros(())] * 5
            for j in range(length):
                shares[SOURCE[row, j]] = shares[SOURCE[row, j]] + copied[j]
            assert_same(scores[row, step].exp(), torch.stack(shares), atol=1e-6, rtol=1e-5)


def test_a_word_that_stands_twice_is_worth_two_exponentials():
    """With equal scores everywhere, three of eleven chances are the word's that stands thrice (the
    exponential of a sum of zeros would be one)."""
    model = model_of()
    with torch.no_grad():
        model.output.weight.zero_()
        model.copy.weight.zero_()
    p = model(*random_vectors(LENGTHS, 1, WIDTH), SOURCE, PREFIX).exp()
    torch.testing.assert_close(p[2, :, 6], torch.full((4,), 3 / 9))
    torch.testing.assert_close(p[0, :, 4], torch.full((4,), 3 / 11))  # generated once, copied twice


def test_the_selective_read_is_of_the_places_just_copied():
    """Two places with the symbol share by their probabilities; a symbol that is not in the source
    reads zeros."""
    model = model_of()
    state = model.start(*random_vectors(LENGTHS, 1, WIDTH), SOURCE)
    copied = torch.tensor([[0.3, 0.2, 0.1, 0.1, 0.2], [0.5, 0.1, 0, 0, 0], [0.2, 0.2, 0.2, 0, 0]])
    read = model.selective_read(torch.tensor([6, 3, 6]), state._replace(copied=copied))
    states = state.memory.states
    assert_same(read[0], 0.75 * states[0, 0] + 0.25 * states[0, 3])
    assert not read[1].any()
    assert_same(read[2], states[2, :3].mean(0))

"""The mechanism of recurrent language models: a softmax over a state that is carried along."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.rnn_lm import RecurrentLanguageModel
from harness import registry
from harness.running.grid import hyperparameters
from tests.support.foretelling import in_stretches, words
from tests.support.models import small
from tests.support.oracles import gru, lstm, rnn
from tests.support.pairs import inputs_of
from tests.support.same import assert_same

WIDTH, SYMBOLS, HIDDEN = 3, 7, 4
CELLS = {"rnn": (nn.RNN, rnn), "lstm": (nn.LSTM, lstm), "gru": (nn.GRU, gru)}
"""The cell of each name, in torch and written out."""

model_of = partial(small, RecurrentLanguageModel, WIDTH, SYMBOLS, hidden=HIDDEN)


def texts() -> Tensor:
    return torch.randn(3, 9, WIDTH, generator=torch.Generator().manual_seed(1))


def written_out(model: RecurrentLanguageModel, vectors: Tensor, cell: str) -> Tensor:
    """Log-probabilities (n, SYMBOLS) of all words behind each word of a text."""
    for layer in range(model.recurrence.num_layers):
        vectors = CELLS[cell][1](model.recurrence, vectors, layer)
    scores = vectors @ model.output.weight.T + model.output.bias
    return scores - scores.exp().sum(-1, keepdim=True).log()


@pytest.mark.parametrize("ends", [[9], [1, 2, 9], [4, 8, 9]])
@pytest.mark.parametrize(("cell", "layers"), [("rnn", 1), ("lstm", 2), ("gru", 2), ("lstm", 1)])
def test_probabilities_follow_the_equations_in_stretches_of_any_length(cell, layers, ends):
    """A state that is lost, or one layer's carried to another, gives other probabilities behind the
    first stretch."""
    model, vectors = model_of(cell=cell, layers=layers), texts()
    states, _ = in_stretches(model, words(vectors), ends)
    for row, text in enumerate(vectors):
        expected = written_out(model, text, cell)
        for word in (0, 5):
            asked = torch.full(states.shape[:2], word)
            found = model.log_probabilities(states, asked)[row]
            assert_same(found, expected[:, word])


@pytest.mark.parametrize("cell", CELLS)
def test_what_was_read_before_changes_what_comes(cell):
    """A window of one word has no state that could be carried."""
    model, vectors = model_of(cell=cell), texts()
    _, state = in_stretches(model, words(vectors), [9])
    fresh, _ = model(words(vectors), model.start(3))
    carried, _ = model(words(vectors), state)
    assert ((carried - fresh).abs().sum(-1) > 1e-6).all()


def test_a_text_begins_with_a_state_of_zeros():
    model = model_of(cell="lstm", layers=2)
    assert [s.shape for s in model.start(5)] == [(5, 2, HIDDEN)] * 2 and not any(s.any() for s in model.start(5))
    assert model_of(cell="gru").start(2).shape == (2, 1, HIDDEN)


def test_a_softmax_without_weights_is_the_bias_and_without_that_knows_nothing():
    """Its perplexity is then the number of words."""
    model = RecurrentLanguageModel(WIDTH, SYMBOLS, hidden=HIDDEN)
    nn.init.zeros_(model.output.weight)
    states, asked = torch.randn(2, 5, HIDDEN), torch.arange(10).view(2, 5) % SYMBOLS
    expected = model.output.bias.log_softmax(0)[asked]
    torch.testing.assert_close(model.log_probabilities(states, asked), expected)
    nn.init.zeros_(model.output.bias)
    torch.testing.assert_close(model.log_probabilities(states, asked).exp(), torch.full((2, 5), 1 / SYMBOLS))


def test_dropout_acts_on_words_between_layers_and_before_the_softmax_but_not_in_time():
    """With all dropped the layers read zeros, and the softmax too; the state that is carried is
    whole."""
    model, vectors = model_of(cell="gru", layers=2, dropout=1.0).train(), texts()
    dropped, state = model(words(vectors), model.start(3))
    assert not dropped.any()
    for layer in range(2):
        expected = gru(model.recurrence, torch.zeros(9, WIDTH if layer == 0 else HIDDEN), layer)[-1]
        assert_same(state[:, layer], expected.expand(3, -1))
    model.dropout.p = 0.0
    whole, _ = model(words(vectors), model.start(3))
    assert_same(whole[0], gru(model.recurrence, torch.zeros(9, HIDDEN), 1))
    assert model_of(dropout=1.0).recurrence.dropout == 0.0


@pytest.mark.parametrize("cell", CELLS)
def test_dropout_has_a_lot_for_each_number_of_each_word(cell):
    """One for a whole word, or one for all words of a text, would be another regulariser."""
    model = model_of(cell=cell, dropout=0.5).train()
    read, vectors = inputs_of(model.recurrence)[0], torch.ones(2, 30, WIDTH)
    states, _ = model(words(vectors), model.start(2))
    for dropped in (read[0] == 0, states == 0):
        assert 0.3 < dropped.float().mean() < 0.7
        for dim in (0, 1, 2):
            assert not (dropped.any(dim) == dropped.all(dim)).all(), "one lot for all of a dimension"


def test_all_weights_begin_uniform_within_the_spread():
    for spread in (0.1, 0.05):
        weights = torch.cat([p.flatten() for p in RecurrentLanguageModel(30, 50, spread=spread).parameters()])
        assert weights.abs().max() <= spread and weights.std().item() == pytest.approx(spread / 3**0.5, rel=0.02)


def test_each_id_has_the_cell_of_its_name():
    """Three ids of one cell would be three rows with one model."""
    for id, cell in {"rnn_lm": nn.RNN, "rnn_lm_lstm": nn.LSTM, "rnn_lm_gru": nn.GRU}.items():
        entry = registry.entry("architectures", id)
        model = registry.load(entry)(WIDTH, SYMBOLS, **hyperparameters(entry) | {"hidden": HIDDEN})
        assert type(model.recurrence) is cell and model.recurrence.bias, id


def test_an_unknown_cell_is_refused_by_name():
    with pytest.raises(ValueError, match="'qrnn' is none of rnn, lstm, gru"):
        RecurrentLanguageModel(WIDTH, SYMBOLS, cell="qrnn")

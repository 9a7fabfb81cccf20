"""The mechanism of residual recurrent stacks: each layer's states added to what it reads."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.rnn_residual import ResidualRNN
from harness import registry
from harness.running.grid import hyperparameters
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import gru, lstm, rnn
from tests.support.recurrent import assert_vector_comes_from_real_states
from tests.support.same import assert_same

WIDTH, HIDDEN = 3, 4
LAYERS = {"rnn": (nn.RNN, rnn), "lstm": (nn.LSTM, lstm), "gru": (nn.GRU, gru)}
"""The cell of each name, in torch and written out."""

texts = partial(random_texts, (6, 4, 1), 1, WIDTH)
model_of = partial(small, ResidualRNN, WIDTH, hidden=HIDDEN, layers=3)


def written_out(model: ResidualRNN, vectors: Tensor, cell: str = "rnn") -> Tensor:
    """States (n, HIDDEN) of a text: the layer's states, then the layer's input added to each."""
    states = vectors @ model.project.weight.T
    for layer in model.layers:
        below = states
        states = torch.stack([state + x for state, x in zip(LAYERS[cell][1](layer, below), below, strict=True)])
    return states


@pytest.mark.parametrize("cell", LAYERS)
def test_each_layer_adds_its_states_to_what_it_reads(cell):
    """A stack without shortcuts, one around all layers together, or a recurrence that sees the sum
    would each give other states."""
    model, batch = model_of(cell=cell), texts()
    assert len(model.layers) == 3 and all(type(layer) is LAYERS[cell][0] for layer in model.layers)
    assert_each_alone(model(batch.vectors, batch.mask), partial(written_out, model, cell=cell), batch, states=True)


def test_without_weights_in_its_cells_the_stack_is_the_identity():
    """The shortcut has no weight of its own."""
    model = ResidualRNN(HIDDEN, hidden=HIDDEN, layers=5).eval()
    with torch.no_grad():
        for parameter in model.layers.parameters():
            parameter.zero_()
    vectors = torch.randn(2, 6, HIDDEN)
    assert torch.equal(model(vectors, torch.ones(2, 6, dtype=torch.bool)), vectors)


def test_word_vectors_pass_a_matrix_only_where_their_size_differs():
    assert [p.shape for p in ResidualRNN(WIDTH, hidden=HIDDEN, layers=1).parameters()] == [(4, 3), (4, 4), (4, 4)]
    assert [p.shape for p in ResidualRNN(HIDDEN, hidden=HIDDEN, layers=1).parameters()] == [(4, 4), (4, 4)]


@pytest.mark.parametrize("pooling", ["last", "mean", "max"])
def test_a_texts_vector_comes_from_its_real_states_alone(pooling):
    assert_vector_comes_from_real_states(model_of(pooling=pooling), written_out, pooling, texts())


def test_dropout_acts_on_words_and_between_layers_but_not_on_the_shortcut():
    """With all dropped, cells read zeros; where words are whole, the shortcut still carries them to
    the top."""
    model, batch, read = model_of(dropout=1.0).train(), texts(), []
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda layer, inputs: read.append(inputs[0].any().item()))
    assert not model(batch.vectors, batch.mask).any()
    model.project = nn.Identity()
    model.dropout.register_forward_hook(lambda layer, inputs, output: inputs[0] if len(read) == 3 else None)
    words = torch.randn(1, 5, HIDDEN)
    states = model(words, torch.ones(1, 5, dtype=torch.bool))[0]
    assert read == [False] * 3 + [True, False, False]
    assert_same(states, rnn(model.layers[0], words[0]) + words[0])
    model.eval()(words, torch.ones(1, 5, dtype=torch.bool))
    assert read[6:] == [True] * 3


def test_each_id_has_the_cell_of_its_name():
    """Three ids of one cell would be three rows with one model; eq. 4.6 alone carries no bias."""
    for id, cell in {"rnn_residual": nn.RNN, "rnn_residual_lstm": nn.LSTM, "rnn_residual_gru": nn.GRU}.items():
        entry = registry.entry("architectures", id)
        model = registry.load(entry)(WIDTH, **hyperparameters(entry) | {"hidden": HIDDEN})
        assert [type(layer) for layer in model.layers] == [cell] * 4, id
        assert [layer.bias for layer in model.layers] == [cell is not nn.RNN] * 4, id


def test_an_unknown_cell_is_refused_by_name():
    with pytest.raises(ValueError, match="'qrnn' is none of rnn, lstm, gru"):
        ResidualRNN(WIDTH, cell="qrnn")

"""The layers written out in tests/support against torch's: tests of models rest on them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.support import oracles

WIDTH, HIDDEN, WORDS = 3, 4, 6
CELLS = {nn.RNN: oracles.rnn, nn.LSTM: oracles.lstm, nn.GRU: oracles.gru}


def words(count: int = WORDS, width: int = WIDTH) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(1))


def layer_of(kind: type[nn.Module], *arguments, **options) -> nn.Module:
    torch.manual_seed(0)
    layer = kind(*arguments, **options)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", CELLS)
def test_states_of_one_layer_are_torchs(kind, bias):
    layer = layer_of(kind, WIDTH, HIDDEN, bias=bias)
    torch.testing.assert_close(CELLS[kind](layer, words()), layer(words())[0])
    torch.testing.assert_close(CELLS[kind](layer, list(words())), layer(words())[0])


@pytest.mark.parametrize("kind", CELLS)
def test_the_second_layer_of_a_stack_is_torchs(kind):
    layer = layer_of(kind, WIDTH, HIDDEN, num_layers=2)
    states = CELLS[kind](layer, CELLS[kind](layer, words()), number=1)
    torch.testing.assert_close(states, layer(words())[0])


def test_a_conditioned_gru_is_torchs_over_vectors_with_the_context_behind_them():
    layer, context, first = layer_of(nn.GRU, WIDTH + 2, HIDDEN), words(1, 2)[0], words(1, HIDDEN)[0]
    read = torch.cat([words(), context.expand(WORDS, -1)], dim=1)
    torch.testing.assert_close(oracles.conditioned_gru(layer, words(), context, first), layer(read, first[None])[0])


@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_is_torchs(bias):
    layer = layer_of(nn.Linear, WIDTH, HIDDEN, bias=bias)
    torch.testing.assert_close(oracles.linear(layer, words()[0]), layer(words()[0]))


def test_a_step_of_a_cell_is_torchs():
    cell = layer_of(nn.LSTMCell, WIDTH, HIDDEN)
    x, (h, c) = words()[0], words(2, HIDDEN)
    torch.testing.assert_close(oracles.lstm_step(cell, x, h, c), cell(x, (h, c)))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", CELLS)
def test_a_stack_in_both_directions_is_torchs(kind, both, layers):
    """The weights of torch's one module, cut into a module for each layer and direction."""
    torchs = layer_of(kind, WIDTH, HIDDEN, num_layers=layers, bidirectional=both)
    stacks: dict[str, list[nn.Module]] = {"": [], "_reverse": []}
    for direction, stack in list(stacks.items())[: 1 + both]:
        for number in range(layers):
            one = kind(WIDTH if number == 0 else HIDDEN * (1 + both), HIDDEN)
            suffix = f"_l{number}{direction}"
            weights = {name[: -len(suffix)]: w for name, w in torchs.state_dict().items() if name.endswith(suffix)}
            one.load_state_dict({f"{name}_l0": weight for name, weight in weights.items()})
            stack.append(one)
    recurrence = SimpleNamespace(forwards=stacks[""], backwards=stacks["_reverse"])
    torch.testing.assert_close(oracles.recurrent(recurrence, words(), CELLS[kind]), torchs(words())[0])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 1), (2, 0), (0, 3)])
def test_a_convolution_is_torchs_over_the_padded_text(left, right, bias):
    layer = layer_of(nn.Conv1d, WIDTH, HIDDEN, 3, bias=bias)
    expected = layer(F.pad(words().T, (left, right))).T
    torch.testing.assert_close(torch.stack(oracles.convolution(layer, words(), left, right)), expected)


def test_a_text_shorter_than_its_window_has_none():
    assert oracles.convolution(layer_of(nn.Conv1d, WIDTH, HIDDEN, 3), words(2)) == []


@pytest.mark.parametrize("size", [1.0, 500.0])
def test_the_softmax_mean_is_torchs(size):
    """Also of scores whose exponential has no place in single precision."""
    scores = size * words(WORDS, 1)[:, 0]
    torch.testing.assert_close(oracles.softmax_mean(list(scores), words()), scores.softmax(0) @ words())


def test_scores_of_single_features_weigh_feature_by_feature():
    scores = words(WORDS, WIDTH) * 3
    expected = (scores.softmax(0) * words()).sum(0)
    torch.testing.assert_close(oracles.softmax_mean(list(scores), words()), expected)


def test_the_cosine_is_torchs():
    u, v = words(2)
    torch.testing.assert_close(oracles.cosine(u, 9 * v), F.cosine_similarity(u, v, dim=0))


def test_additive_scores_are_those_of_the_layers():
    layers = {
        "query": layer_of(nn.Linear, WIDTH, HIDDEN),
        "key": layer_of(nn.Linear, WIDTH, HIDDEN, bias=False),
        "score": layer_of(nn.Linear, HIDDEN, 1, bias=False),
    }
    query, key = words(2)
    expected = layers["score"](torch.tanh(layers["query"](query) + layers["key"](key)))[0]
    torch.testing.assert_close(oracles.additive(SimpleNamespace(**layers), query, key), expected)


def test_attentive_pooling_is_that_of_matrices():
    x, y, similarity = words(4), words(2), words(WIDTH)
    matches = torch.tanh(x @ similarity @ y.T)
    expected = matches.amax(1).softmax(0) @ x, matches.amax(0).softmax(0) @ y
    torch.testing.assert_close(oracles.attentively_pooled(similarity, x, y), expected)


def test_largest_values_keep_their_order():
    assert oracles.largest_in_order([3.0, 9.0, 1.0, 7.0, 3.0], 3) == [0, 1, 3]
    assert oracles.largest_in_order([2.0, 1.0], 5) == [0, 1]

"""Layers written out in plain loops over single vectors, as references for tests of models.

They read the weights of a model's layers and compute nothing with those layers.
``tests/test_oracles.py`` compares them with torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

Vectors = Sequence[Tensor] | Tensor
"""Vectors of one text: a list of them, or a matrix (n, size)."""


def softmax_mean(scores: Sequence[Tensor], vectors: Vectors) -> Tensor:
    """Mean of the vectors under the softmax of their scores.

    A score may be a number, or a vector with a number for each feature.
    """
    highest = torch.stack(list(scores)).amax(0)  # exp would overflow in single precision from 89 on
    weights = [(score - highest).exp() for score in scores]
    return sum(weight * vector for weight, vector in zip(weights, vectors, strict=True)) / sum(weights)


def cosine(u: Tensor, v: Tensor) -> Tensor:
    """Cosine of the angle between two vectors."""
    return (u * v).sum() / ((u * u).sum() * (v * v).sum()).sqrt()


def additive(attention: nn.Module, query: Tensor, key: Tensor) -> Tensor:
    """Score v . tanh(W q + b + U k) of one key, by the layers ``query``, ``key`` and ``score`` of
    an additive attention."""
    w, u, v = attention.query, attention.key, attention.score
    return v.weight[0] @ torch.tanh(w.weight @ query + w.bias + u.weight @ key)


def attentively_pooled(similarity: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Two-way attentive pooling of the states (n, size) of two texts: a vector of each, in which a
    state weighs as much as its best match in the other text, tanh(x U y)."""
    matches = [[torch.tanh(x @ similarity @ y) for y in second] for x in first]
    return (
        softmax_mean([max(row) for row in matches], first),
        softmax_mean([max(column) for column in zip(*matches, strict=True)], second),
    )


def convolution(layer: nn.Conv1d, vectors: Vectors, left: int = 0, right: int = 0) -> list[Tensor]:
    """W [x_t; ...; x_(t+w-1)] + b of every window of a text with ``left`` zero vectors before it
    and ``right`` behind it."""
    weight = layer.weight
    width, zero = weight.shape[2], torch.zeros(weight.shape[1])
    framed = [zero] * left + list(vectors) + [zero] * right
    sums = [sum(weight[:, :, k] @ framed[start + k] for k in range(width)) for start in range(len(framed) - width + 1)]
    return sums if layer.bias is None else [value + layer.bias for value in sums]


def linear(layer: nn.Linear, vector: Tensor) -> Tensor:
    """A linear layer on one vector."""
    return layer.weight @ vector + (0 if layer.bias is None else layer.bias)


def weights_of(layer: nn.Module, number: int | str = 0) -> tuple[Tensor, Tensor, Tensor | float, Tensor | float]:
    """W_x, W_h, b_x and b_h of a layer of an RNN, LSTM or GRU, or of a single cell; 0 for absent
    biases. A right-to-left layer has a ``number`` such as ``0_reverse``."""
    suffix = "" if isinstance(layer, nn.RNNCellBase) else f"_l{number}"
    names = (f"{name}{suffix}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    w_x, w_h, b_x, b_h = (getattr(layer, name, 0.0) for name in names)
    return w_x, w_h, b_x, b_h


def lstm_step(layer: nn.Module, x: Tensor, h: Tensor, c: Tensor, number: int | str = 0) -> tuple[Tensor, Tensor]:
    """State and memory cell after one more vector; gates in torch's order input, forget, cell,
    output."""
    w_x, w_h, b_x, b_h = weights_of(layer, number)
    i, f, g, o = (w_x @ x + b_x + w_h @ h + b_h).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def lstm(layer: nn.Module, vectors: Vectors, number: int | str = 0) -> Tensor:
    """States (n, hidden) of a one-way LSTM layer over a text."""
    return states_and_cells(layer, vectors, number)[0]


def states_and_cells(layer: nn.Module, vectors: Vectors, number: int | str = 0) -> tuple[Tensor, Tensor]:
    """States and cells (n, hidden) of a one-way LSTM layer over a text."""
    h = c = torch.zeros(layer.hidden_size)
    states, cells = [], []
    for x in vectors:
        h, c = lstm_step(layer, x, h, c, number)
        states.append(h)
        cells.append(c)
    return torch.stack(states), torch.stack(cells)


def both_ways(layers: nn.LSTM, vectors: Vectors) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """The top states (n, size) of a stack of LSTM layers in both directions, and the states and
    cells (size,) with which each layer ends: left to right behind the last word, right to left
    behind the first."""
    states, last, cells = torch.stack(list(vectors)), [], []
    for number in range(layers.num_layers):
        ahead = states_and_cells(layers, states, number)
        back = states_and_cells(layers, states.flip(0), f"{number}_reverse")
        states = torch.cat([ahead[0], back[0].flip(0)], dim=1)
        last.append(torch.cat([ahead[0][-1], back[0][-1]]))
        cells.append(torch.cat([ahead[1][-1], back[1][-1]]))
    return states, last, cells


def gru(layer: nn.Module, vectors: Vectors, number: int = 0) -> Tensor:
    """States (n, hidden) of a one-way GRU layer; its reset gate acts behind the matrix, and its
    update gate z says what to keep."""
    w_x, w_h, b_x, b_h = weights_of(layer, number)
    h = torch.zeros(layer.hidden_size)
    states = []
    for x in vectors:
        (r_x, z_x, n_x), (r_h, z_h, n_h) = (w_x @ x + b_x).chunk(3), (w_h @ h + b_h).chunk(3)
        z = torch.sigmoid(z_x + z_h)
        h = z * h + (1 - z) * torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h)
        states.append(h)
    return torch.stack(states)


def conditioned_gru(layer: nn.GRU, vectors: Vectors, context: Tensor, h: Tensor) -> Tensor:
    """States (n, hidden) of a GRU, going on from a state h, in which reset gate, update gate and
    candidate each see a context by a matrix of its own, which stands behind that of the vectors."""
    w, w_h, b_x, b_h = weights_of(layer)
    size, width = len(h), w.shape[1] - len(context)
    states = []
    for x in vectors:
        sums = [
            (w[g, :width] @ x + w[g, width:] @ context + b_x[g], w_h[g] @ h + b_h[g])
            for g in (slice(gate * size, gate * size + size) for gate in range(3))
        ]
        r, z = (torch.sigmoid(read + kept) for read, kept in sums[:2])
        h = z * h + (1 - z) * torch.tanh(sums[2][0] + r * sums[2][1])
        states.append(h)
    return torch.stack(states)


def rnn(layer: nn.Module, vectors: Vectors, number: int = 0) -> Tensor:
    """States (n, hidden) of a one-way Elman layer: h_t = tanh(W_x x_t + W_h h_(t-1) + b)."""
    w_x, w_h, b_x, b_h = weights_of(layer, number)
    h = torch.zeros(layer.hidden_size)
    states = []
    for x in vectors:
        h = torch.tanh(w_x @ x + b_x + w_h @ h + b_h)
        states.append(h)
    return torch.stack(states)


def recurrent(recurrence: nn.Module, vectors: Vectors, cell: Callable[[nn.Module, Vectors], Tensor] = lstm) -> Tensor:
    """States (n, size) of a stack of one-way layers ``forwards``, joined with those of
    ``backwards`` where there are any, which read the text from its end.

    The ``cell`` is that of the paper, whatever the layers are.
    """
    states = torch.stack(list(vectors))
    for number, forwards in enumerate(recurrence.forwards):
        directions = [cell(forwards, states)]
        if recurrence.backwards:
            directions.append(cell(recurrence.backwards[number], states.flip(0)).flip(0))
        states = torch.cat(directions, dim=1)
    return states


def largest_in_order(values: Sequence[float], k: int) -> list[int]:
    """Places of the ``k`` largest values, from left to right; of equal values the first."""
    return sorted(sorted(range(len(values)), key=lambda place: -values[place])[:k])

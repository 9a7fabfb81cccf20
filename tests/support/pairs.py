"""References and models for tests of architectures that read pairs of texts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from harness import registry
from tests.support.models import small
from tests.support.oracles import Vectors, weights_of


def shipped(id: str, *arguments: Any, stretch: float | None = 3.0, **sizes: Any) -> Any:
    """The model that a registered id stands for, small (:func:`tests.support.models.small`).

    What the id fixes in its decorator comes from there, and ``sizes`` replace the rest. A test
    that builds the class by itself does not see an id that is wired to another variant.
    """
    entry = registry.entry("architectures", id)
    return small(registry.load(entry), *arguments, stretch=stretch, **(entry.hyperparameters | sizes))


def dense(layer: nn.Linear, vector: Tensor) -> Tensor:
    """W x + b of one vector."""
    return layer.weight @ vector + (0 if layer.bias is None else layer.bias)


def bilstm(recurrence: nn.Module, vectors: Vectors) -> Tensor:
    """States (n, 2 * hidden) of torch's own bidirectional LSTM, with the weights of ``recurrence``.

    A recurrence of another cell, of one direction or of several layers is an error.
    """
    return _both_ways(nn.LSTM, recurrence, vectors)


def bigru(recurrence: nn.Module, vectors: Vectors) -> Tensor:
    """States (n, 2 * hidden) of torch's own bidirectional GRU, as :func:`bilstm`."""
    return _both_ways(nn.GRU, recurrence, vectors)


def lstm(recurrence: nn.Module, vectors: Vectors) -> Tensor:
    """States (n, hidden) of torch's own LSTM, in one direction; a second one is an error."""
    (_,), () = recurrence.forwards, recurrence.backwards
    return _of_torch(nn.LSTM, recurrence, vectors)


def _both_ways(cell: type[nn.LSTM] | type[nn.GRU], recurrence: nn.Module, vectors: Vectors) -> Tensor:
    (_,), (_,) = recurrence.forwards, recurrence.backwards
    return _of_torch(cell, recurrence, vectors)


def _of_torch(cell: type[nn.LSTM] | type[nn.GRU], recurrence: nn.Module, vectors: Vectors) -> Tensor:
    """States of torch's own layer, by the weights themselves: gradients reach them."""
    layers = [*recurrence.forwards, *recurrence.backwards]
    weights = [weight for layer in layers for weight in weights_of(layer) if isinstance(weight, Tensor)]
    zeros = torch.zeros(len(layers), 1, layers[0].hidden_size)
    # with biases, one layer, no dropout, not training, in two directions, not batch first
    told = (weights, len(weights) > 2 * len(layers), 1, 0.0, False, len(layers) == 2, False)
    text = torch.stack(list(vectors))[:, None]
    return (torch.lstm(text, (zeros, zeros), *told) if cell is nn.LSTM else torch.gru(text, zeros, *told))[0][:, 0]


def share_of_zeros(seen: list[Tensor]) -> float:
    """Share of the numbers that are zero."""
    return (torch.cat([tensor.flatten() for tensor in seen]) == 0).float().mean().item()


def dropped(given: list[Tensor], read: list[Tensor]) -> float:
    """Share of the given numbers, other than zeros, that are zero when they are read."""
    one, other = (torch.cat([tensor.flatten() for tensor in tensors]) for tensors in (given, read))
    return (other[one != 0] == 0).float().mean().item()


def inputs_of(*layers: nn.Module) -> list[list[Tensor]]:
    """Lists, one for each layer, to which each of its calls will add the first thing it reads."""
    lists: list[list[Tensor]] = [[] for _ in layers]
    for layer, seen in zip(layers, lists, strict=True):
        layer.register_forward_pre_hook(lambda _, inputs, seen=seen: seen.append(inputs[0]))
    return lists

"""References and models for tests of architectures that read pairs of texts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from harness import registry
from tests.support.models import small
from tests.support.oracles import Vectors


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
    (layer,), () = recurrence.forwards, recurrence.backwards
    oracle = nn.LSTM(layer.input_size, layer.hidden_size)
    oracle.load_state_dict(layer.state_dict())
    return oracle(torch.stack(list(vectors)))[0]


def _both_ways(cell: type[nn.LSTM] | type[nn.GRU], recurrence: nn.Module, vectors: Vectors) -> Tensor:
    (forwards,), (backwards,) = recurrence.forwards, recurrence.backwards
    oracle = cell(forwards.input_size, forwards.hidden_size, bidirectional=True)
    backward = {f"{name}_reverse": weight for name, weight in backwards.state_dict().items()}
    oracle.load_state_dict(forwards.state_dict() | backward)
    return oracle(torch.stack(list(vectors)))[0]


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

"""The check that the gradient of a model is the slope of its loss.

A state, gate or softmax that is cut off from what it was computed from answers as before, and
learns something else. Automatic differentiation cannot see it; moving the parameters can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from lightning_utilities.core.apply_func import apply_to_collection
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from harness.contract.base import Broken

STEP = 1e-4
"""Length of the longest move of a parameter."""
SHARE = 1e-8
"""Change of the loss, as a share of it, that all moves together are to make: far above the rounding
of 64-bit numbers, and so small that a kink (of a ReLU, a maximum, a rank) seldom lies within."""
TOLERANCE = 1e-4
"""Largest difference between the change of the loss and the one that the gradient foretells, as a
share of the changes by single parameters."""
TRIES = 3
"""Directions that are tried: a kink lies in the way of one of them, a cut in that of all."""


@contextmanager
def double_precision() -> Iterator[None]:
    """64-bit numbers for all that is made in the block: a slope is a small difference."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Narrow(TorchDispatchMode):
    """A block in which ``made`` names the first operation that makes 32-bit numbers."""

    made = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.made and isinstance(result, Tensor) and result.dtype == torch.float32:
            self.made = str(func.overloadpacket.__name__)
        return result


def narrowed(losses: Callable[[], object]) -> str:
    """A note for a pass in which numbers of 32 bits are made, or that fails over them; empty for
    another one."""
    with _Narrow() as narrow:
        try:
            losses()
        except RuntimeError as error:
            if "dtype" not in str(error) and "scalar type" not in str(error):
                return ""
    told = "in this check all numbers have 64 bits, and some are made with 32"
    return f"{told} ({narrow.made}): write .to(states.dtype) in the place of .float()" if narrow.made else ""


def in_double(batch: Any) -> Any:
    """A batch, of whatever named tuples and dicts, with 64-bit fractions."""
    return apply_to_collection(batch, Tensor, lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)


@dataclass
class Move:
    """A parameter, its direction, the length of a step along it, and the change of the loss that
    the gradient foretells for the step."""

    name: str
    parameter: nn.Parameter
    direction: Tensor
    step: float
    foretold: float


class Slopes:
    """A loss as a function of named parameters.

    ``losses`` makes a pass, and ``name`` is that of the loss among what it returns. Each pass draws
    the same random numbers and begins with the ``modules``' buffers as they were, so that passes
    differ by the parameters alone.
    """

    def __init__(
        self,
        losses: Callable[[], dict[str, Tensor]],
        name: str,
        parameters: dict[str, nn.Parameter],
        modules: list[nn.Module],
    ):
        self.losses, self.name, self.parameters = losses, name, parameters
        tables = [part for module in modules for part in module.modules() if isinstance(part, nn.Embedding)]
        self.padding = {id(table.weight): table.padding_idx for table in tables}
        self.buffers = [(buffer, buffer.clone()) for module in modules for buffer in module.buffers()]

    def require_gradient(self) -> None:
        """Raise :class:`Broken`, with the parameters' names, where a gradient is not the slope."""
        loss = self._value()
        gradients, share = self._gradients(loss), SHARE * max(1.0, abs(loss.item())) / max(1, len(self.parameters))
        for seed in range(TRIES):
            moves = self._moves(gradients, share, seed)
            difference = self._difference(moves, share)
            if difference <= TOLERANCE:
                return
        names = [move.name for move in moves if self._difference([move], share) > 100 * TOLERANCE]
        raise Broken(
            f"the loss changes otherwise than the gradient says ({difference:.2g} of the change), by"
            f" {', '.join(names) or 'all parameters together'}: is a value detached, or computed from a copy?"
        )

    def _value(self) -> Tensor:
        with torch.no_grad():
            for buffer, before in self.buffers:
                buffer.copy_(before)
        torch.default_generator.manual_seed(1)
        return self.losses()[self.name]

    def _gradients(self, loss: Tensor) -> dict[str, Tensor]:
        """The gradient by each parameter, which is zero for one that does not learn."""
        found = {name: torch.zeros_like(parameter) for name, parameter in self.parameters.items()}
        learning = {name: parameter for name, parameter in self.parameters.items() if parameter.requires_grad}
        if loss.requires_grad and learning:
            gradients = torch.autograd.grad(loss, list(learning.values()), allow_unused=True)
            reached = {
                name: gradient for name, gradient in zip(learning, gradients, strict=True) if gradient is not None
            }
            found |= {name: gradient.to_dense().detach() for name, gradient in reached.items()}
        return found

    def _moves(self, gradients: dict[str, Tensor], share: float, seed: int) -> list[Move]:
        """A move for each parameter along its gradient and a random direction. Each changes the
        loss by about ``share``, up and down by turns, so that all together hardly change it."""
        generator = torch.Generator().manual_seed(seed)
        moves = []
        for number, (name, parameter) in enumerate(self.parameters.items()):
            direction = torch.randn(parameter.shape, generator=generator)
            if (row := self.padding.get(id(parameter))) is not None:
                direction[row] = 0  # which is never trained, whatever the loss says
            direction = _unit(direction) + _unit(gradients[name])
            slope = float((gradients[name] * direction).sum())
            step = (-1) ** number * min(STEP, share / max(abs(slope), 1e-300))
            step *= 0.5 + float(torch.rand((), generator=generator))  # or gradients all twice as large would cancel
            moves.append(Move(name, parameter, direction, step, step * slope))
        return moves

    def _difference(self, moves: list[Move], share: float) -> float:
        """Distance of the change of the loss, when the parameters move together, from the foretold
        one, as a part of the changes that each was to make."""
        sides = [self._moved(moves, side) for side in (1.0, -1.0)]
        change = (sides[0] - sides[1]) / 2
        return abs(change - sum(move.foretold for move in moves)) / (share * len(moves))

    def _moved(self, moves: list[Move], side: float) -> float:
        before = [move.parameter.detach().clone() for move in moves]
        with torch.no_grad():
            for move in moves:
                move.parameter.add_(move.direction, alpha=side * move.step)
        value = self._value().item()  # with gradients: some losses are computed from one
        with torch.no_grad():
            for move, old in zip(moves, before, strict=True):
                move.parameter.copy_(old)
        return value


def _unit(tensor: Tensor) -> Tensor:
    return tensor / tensor.norm().clamp_min(1e-300)

"""Look-up tables of which a batch reads few rows, declared by ``nn.EmbeddingBag(...,
sparse=True)``: only these rows are updated.

Their gradients are sparse tensors, so that a step takes as long as its batch needs, however many
rows the table has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from harness.settings import TrainingSettings

STEP_ON_ROWS = ("sgd", "adagrad", "adam")
"""Optimisers that take sparse gradients. The first two do exactly what they do with whole
gradients; for Adam see :class:`LazyAdam`."""


class LazyAdam(torch.optim.Adam):
    """Adam that leaves the rows of a sparse gradient's table as they are, moments included, at
    steps that did not read them.

    So does ``torch.optim.SparseAdam``, which cannot train other parameters beside them. Dense
    gradients: Adam as usual.
    """

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step; with a sparse gradient, ``weight_decay`` and ``amsgrad`` are not looked at."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None and table.grad.is_sparse:
                    self._move_rows(table, **group)
                    table.grad = None
        super().step()
        return loss

    def _move_rows(self, table: nn.Parameter, lr: float, betas: tuple[float, float], eps: float, **_: Any) -> None:
        state = self.state[table]
        if not state:
            state |= {
                "step": torch.zeros(()),
                "exp_avg": torch.zeros_like(table),
                "exp_avg_sq": torch.zeros_like(table),
            }
        state["step"] += 1
        assert table.grad is not None
        coalesced = table.grad.coalesce()
        rows, gradient = coalesced.indices()[0], coalesced.values()
        mean, square, step = state["exp_avg"][rows], state["exp_avg_sq"][rows], state["step"].item()
        mean.lerp_(gradient, 1 - betas[0])
        square.lerp_(gradient * gradient, 1 - betas[1])
        state["exp_avg"][rows], state["exp_avg_sq"][rows] = mean, square
        spread = (square / (1 - betas[1] ** step)).sqrt_().add_(eps)
        table[rows] -= lr / (1 - betas[0] ** step) * mean / spread


def takes_rows(settings: TrainingSettings) -> bool:
    """True if the optimiser of these settings takes sparse gradients: weight decay, momentum and a
    moving average move every row at every step."""
    moving = settings.weight_decay or settings.momentum or settings.averaging
    return settings.optimizer in STEP_ON_ROWS and not moving


def make_dense(model: nn.Module) -> None:
    """Let all tables have whole gradients."""
    layers: Iterable[Any] = model.modules()
    for layer in layers:
        if getattr(layer, "sparse", False):
            layer.sparse = False


def clip_gradients(parameters: Iterable[nn.Parameter], most: float) -> Tensor:
    """Scale the gradients so that their joint norm is at most ``most``, and return what it was.

    As ``torch.nn.utils.clip_grad_norm_``, which knows no norm of a sparse gradient.
    """
    trained = [(p, p.grad) for p in parameters if p.grad is not None]
    if not any(gradient.is_sparse for _, gradient in trained):
        return torch.nn.utils.clip_grad_norm_([p for p, _ in trained], most)
    values: list[Tensor] = []
    for parameter, gradient in trained:
        if gradient.is_sparse:
            parameter.grad = gradient = gradient.coalesce()  # a row that is read twice has one gradient
        values.append(gradient.values() if gradient.is_sparse else gradient)
    norm = torch.nn.utils.get_total_norm(values)
    for each in values:
        each.mul_((most / (norm + 1e-6)).clamp(max=1.0))
    return norm

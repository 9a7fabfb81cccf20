"""Ways to train an architecture that is another one."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from harness import registry
from harness.kinds.base import Architecture
from harness.objectives import Objective
from harness.registry import TaskEntry
from harness.views.base import View


class Regime(Architecture):
    """A way of training that wraps another architecture (hyperparameter ``wraps``) and changes its
    loss: by an objective of its own (``trained_by``), or by overriding :meth:`loss`.

    It fits the tasks that the wrapped one fits, unless :meth:`unfit` says more.
    """

    gives = "predictions"
    wraps: str
    trained_by: ClassVar[type[Objective] | None] = None

    @classmethod
    def reason_to_skip(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        if reason := registry.load(wrapped).reason_to_skip(task, wrapped.hyperparameters):
            return f"wraps {wrapped.id}: {reason}"
        return cls.unfit(task, hyperparameters)

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return None

    @classmethod
    def reader(cls, hyperparameters: dict[str, Any]) -> tuple[type[Architecture], dict[str, Any]] | None:
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        return registry.load(wrapped).reader(dict(wrapped.hyperparameters))

    def apply(self, model: nn.Module, view: View) -> None:
        """Prepare a fresh model that reads ``view``."""
        self.prepare(model, torch.tensor(view.vocabulary.row_counts(), dtype=torch.float) if view.embeds else None)  # type: ignore[attr-defined]

    def prepare(self, model: nn.Module, counts: Tensor | None) -> None:
        """Change the model before training; ``counts`` are the training frequencies of its word
        table's rows."""

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """Training loss of a batch."""
        raise NotImplementedError

"""Ways to train an architecture that is another one."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from harness import registry
from harness.kinds.base import Architecture
from harness.kinds.encoders import Encoder
from harness.objectives import Objective
from harness.registry import ArchitectureEntry, TaskEntry
from harness.views.base import View


class Regime(Architecture):
    """A way of training that wraps another architecture (hyperparameter ``wraps``) and changes its
    loss: by an objective of its own (``trained_by``), or by overriding :meth:`loss`.

    It fits the tasks that the wrapped one fits, unless :meth:`unfit` says more; none where that is
    no :class:`~harness.kinds.Encoder`, or a regime itself.
    """

    gives = "predictions"
    wraps: str
    trained_by: ClassVar[type[Objective] | None] = None

    @classmethod
    def reason_to_skip(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        wrapped = cls._wrapped(hyperparameters)
        encoder = registry.load(wrapped)
        if issubclass(encoder, Regime):
            return f"wraps {wrapped.id}, which is itself a way of training: name an encoder"
        if not issubclass(encoder, Encoder):
            return f"wraps {wrapped.id}, which is not trained by gradients: name an encoder"
        if reason := encoder.reason_to_skip(task, wrapped.hyperparameters):
            return f"wraps {wrapped.id}: {reason}"
        return cls.unfit(task, hyperparameters)

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return None

    @classmethod
    def reader(cls, hyperparameters: dict[str, Any]) -> tuple[type[Architecture], dict[str, Any]] | None:
        wrapped = cls._wrapped(hyperparameters)
        encoder = registry.load(wrapped)
        # Asked before reason_to_skip, and so of what cannot be wrapped, too.
        return encoder.reader(dict(wrapped.hyperparameters)) if issubclass(encoder, Encoder) else None

    @staticmethod
    def _wrapped(hyperparameters: dict[str, Any]) -> ArchitectureEntry:
        """The architecture of the name in ``wraps``. An override may say None there, and to the
        registry that is a name that nothing has."""
        return registry.entry("architectures", str(hyperparameters["wraps"]))

    def apply(self, model: nn.Module, view: View) -> None:
        """Prepare a fresh model that reads ``view``."""
        self.prepare(model, torch.tensor(view.vocabulary.row_counts(), dtype=torch.float) if view.embeds else None)  # type: ignore[attr-defined]

    def prepare(self, model: nn.Module, counts: Tensor | None) -> None:
        """Change the model before training; ``counts`` are the training frequencies of its word
        table's rows."""

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """Training loss of a batch."""
        raise NotImplementedError

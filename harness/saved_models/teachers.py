"""Kept models as teachers: what they think of texts while another one learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from harness.errors import ModelError
from harness.objectives import collected_losses
from harness.saved_models.base import KeptModel
from harness.saved_models.model import TrainedModel
from harness.task import Row
from harness.training.model import scored_vectors

Answer = TypeVar("Answer")


class Teacher:
    """A kept model that is asked in training, and does not change: no dropout acts in it, nothing
    of it is trained, no gradient goes through its answers, and terms that its layers add to a loss
    are none of the student's.

    It is no module: an encoder or objective that holds one neither counts nor keeps its weights,
    and a copy of the student has the same teacher.
    """

    def __init__(self, parent: Any):
        if parent.model is None:
            raise ModelError(f"{parent.description.part.architecture} has no states: it is not trained by gradients")
        self.model = parent.model.requires_grad_(False).eval()

    def __deepcopy__(self, memo: dict[int, Any]) -> Teacher:
        return self

    def asked(self, question: Callable[[Any], Answer], device: torch.device) -> Answer:
        """The answer of a question, a function of the whole model, which is moved to the device
        first."""
        with torch.no_grad(), collected_losses():
            return question(self.model.to(device))


def text_vectors(parent: KeptModel, rows: Sequence[Row]) -> Tensor | None:
    """Vectors (rows, size) from which the last layer of a kept model scores its classes; None for a
    model that has none, such as one without gradient training, or that scores every node of a tree.
    """
    if not isinstance(parent, TrainedModel) or getattr(parent.model.head, "output", None) is None:
        return None
    if type(parent.model.encoder).output_form() == "node states":
        return None
    device = next(parent.model.parameters()).device
    return torch.stack(scored_vectors(parent.model, parent.split(rows), parent.training.batch_size, device))

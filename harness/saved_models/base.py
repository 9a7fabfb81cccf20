"""The base of kept models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.kinds import Estimator
from harness.problems import problem
from harness.problems.base import Answer
from harness.saved_models.folder import Description
from harness.task import Row
from harness.training.model import Model
from harness.views.base import View


class KeptModel:
    """A model that answers rows of a task's type; what it is stands in ``description``, and in
    ``model`` and ``view`` if it was trained by gradients, in ``estimator`` if not."""

    model: Model | None = None
    estimator: Estimator | None = None
    view: View | None = None

    def __init__(self, description: Description):
        self.description = description
        self.problem = problem(description.type)

    def answers(self, rows: Sequence[Row]) -> list[Answer]:
        """The prediction of each row with its probabilities, where the model gives some. Rows have
        an ``id`` and the columns of ``description.inputs``."""
        raise NotImplementedError

    def word_vectors(self) -> Mapping[str, np.ndarray] | None:
        """The vector of each word that the model knows; None for a model without any."""
        raise NotImplementedError

    def tokenizer(self) -> str | None:
        """The tokenizer that the model learnt, as the library tokenizers writes one; None for a
        model that learnt none."""
        return None

    def check(self, row: Row) -> None:
        """Raise the error that :meth:`answers` would raise for a row that cannot be read."""
        self.answers([row])

    def write(self, folder: Path) -> None:
        """Write the model in the place of what is in ``folder``; ``OSError`` where the disk
        refuses, ``TypeError`` for a state that cannot be kept."""
        raise NotImplementedError

"""Problems: one class for each task type, found like architectures and tasks.

A file here, or a plugin file, registers a subclass of :class:`~harness.problems.base.Problem` with
``@register_problem(id, ...)``. All that the harness knows of a type is in that class and in the
literals of its decorator, which a listing reads without importing torch.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from harness import registry

if TYPE_CHECKING:
    from harness.problems.base import Problem


def problem(type: str) -> Problem:
    """The problem of a task type; :class:`~harness.errors.UnknownName` for a type nobody
    registered."""
    return _built(registry.entry("problems", type))


@functools.cache
def _built(entry: registry.ProblemEntry) -> Problem:
    return registry.load(entry)(entry)

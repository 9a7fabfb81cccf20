"""The protocols: under which rules a cell is trained. Rows of the leaderboard are compared only
within one version of one."""

from __future__ import annotations

import dataclasses
from typing import Any

from harness import registry
from harness.errors import Named
from harness.registry import ArchitectureEntry, TaskEntry
from harness.settings import Budget, TrainingSettings

PROTOCOLS = Named(
    "protocol",
    smoke="one short pass, to see that everything runs; scores mean nothing",
    equal="the same inputs, vectors, dropout, optimiser, rates, batches and passes for all architectures of a task",
    paper="the architecture's own recipe",
)

VERSIONS = {"smoke": 1, "equal": 2, "paper": 1}
"""Raised when a protocol's rules change; results/CHANGELOG.md says what did."""

EQUAL = TrainingSettings(
    lr=(0.002, 0.001, 0.0005),
    patience=3,
    clip=5.0,
    vector_dims=100,
    lr_schedule="linear",
    shared_words=True,
    unknown_rate=0.3,
)
"""Each learning rate is tried on dev by a pilot (:data:`harness.settings.PILOT_SHARE`); the
best trains the cell. Passes, batches and the smallest number of steps are the budget's, dropout is
the task's."""

SMOKE = TrainingSettings(lr=0.002, epochs=1, batch_size=32, patience=1, clip=5.0, vector_dims=50)


def training(protocol: str, architecture: ArchitectureEntry, task: TaskEntry, budget: Budget) -> TrainingSettings:
    """Training settings of a cell; :class:`~harness.errors.UnknownName` for an unknown protocol."""
    equal = dataclasses.replace(
        EQUAL,
        epochs=budget.passes,
        batch_size=budget.batch_size,
        min_steps=budget.min_steps,
        dropout=task.dropout,
    )
    return Named("protocol", smoke=SMOKE, equal=equal, paper=architecture.recipe_on(task.type))[protocol]


def view_settings(protocol: str, task: TaskEntry, words: bool) -> dict[str, Any]:
    """Settings of views by which a protocol has all encoders of a task read alike; ``words`` for
    views of words."""
    if protocol != "equal":
        return {}
    of_words = {"min_count": 1, **registry.entry("problems", task.type).equal_view}
    return {**(of_words if words else {}), **task.equal_view}


def has_own_dropout(protocol: str) -> bool:
    """True where encoders keep the dropouts of their papers."""
    return protocol != "equal"

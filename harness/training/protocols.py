"""The protocols: under which rules a cell is trained. Rows of the leaderboard are compared only
within one."""

from __future__ import annotations

import dataclasses

from harness.errors import Named
from harness.registry import ArchitectureEntry, TaskEntry
from harness.settings import TrainingSettings

PROTOCOLS = Named(
    "protocol",
    smoke="one short pass, to see that everything runs; scores mean nothing",
    equal="the same vectors, optimiser, rates, batch size, passes and early stopping for all architectures of a task",
    paper="the architecture's own recipe",
)

EQUAL = TrainingSettings(lr=(0.002, 0.0005), batch_size=32, patience=3, clip=5.0, vector_dims=100)
"""Each learning rate is tried on dev after a short pilot
(:data:`harness.training.fit.PILOT_EXAMPLES`); the best trains the cell."""

SMOKE = dataclasses.replace(EQUAL, lr=0.002, epochs=1, patience=1, vector_dims=50)


def training(protocol: str, architecture: ArchitectureEntry, task: TaskEntry) -> TrainingSettings:
    """Training settings of a cell; :class:`~harness.errors.UnknownName` for an unknown protocol."""
    settings = {
        "smoke": SMOKE,
        "equal": dataclasses.replace(EQUAL, epochs=task.epochs),
        "paper": architecture.recipe,
    }
    PROTOCOLS[protocol]
    return settings[protocol]

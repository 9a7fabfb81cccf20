"""The protocols: under which rules a cell is trained. Two rows of the leaderboard are compared only
within one."""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.registry import Entry, Recipe

PROTOCOLS = {
    "smoke": "one short pass, to see that everything runs; scores mean nothing",
    "equal": (
        "the same vectors, optimiser, learning rates, batch size, passes and early stopping for every architecture of a"
        " task"
    ),
    "paper": "the architecture's own recipe",
}

EQUAL = {
    "optimizer": "adam",
    "learning_rates": [0.002, 0.0005],
    "batch_size": 32,
    "patience": 3,
    "weight_decay": 0.0,
    "momentum": 0.0,
    "clip": 5.0,
    "lr_schedule": "constant",
    "decay": 0.0,
    "warmup_steps": 0,
    "vector_dims": 100,
}
"""Each learning rate is tried on dev after a short pilot (:data:`harness.training.fit.PILOT_EXAMPLES`);
the best trains the cell."""

SMOKE = EQUAL | {"learning_rates": [0.002], "batch_size": 32, "epochs": 1, "patience": 1, "vector_dims": 50}


def training(protocol: str, architecture: Entry, task: Entry) -> dict[str, Any]:
    """Training settings of a cell; ``ValueError`` for an unknown protocol."""
    if protocol == "smoke":
        return dict(SMOKE)
    if protocol == "equal":
        return EQUAL | {"epochs": task.epochs}
    if protocol == "paper":
        recipe = dataclasses.asdict(architecture.options.get("recipe", Recipe()))
        return {"learning_rates": [recipe.pop("lr")]} | recipe
    raise ValueError(f"protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")

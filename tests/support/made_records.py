"""Records made by hand, for tests of what is shown of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.records import Cell, Record, Store
from harness.records.outcomes import Outcomes


def record(
    architecture: str = "dan", task: str = "sst2", score: dict[str, float] | float | None = None, **fields: Any
) -> Record:
    """A record; ``score`` is its test score (accuracy, when it is a bare number)."""
    cell = Cell(
        architecture,
        fields.pop("architecture_version", 1),
        task,
        1,
        fields.pop("tier", "local"),
        fields.pop("protocol", "equal"),
        fields.pop("hyperparameters", {"hidden": 100}),
        fields.pop("seed", 0),
    )
    scores = {} if score is None else {"test": score if isinstance(score, dict) else {"accuracy": score}}
    known = {"status": "ok", "scores": scores, "counts": {"train": 1000}, "command": "archbench run", "sees": []}
    made = Record(**cell.to_dict() | known | fields, key=cell.key)
    made.key = made.cell.key  # of what ``fields`` say of the cell, too
    return made


def judged(
    store: Store, right: str, *, metric: str = "accuracy", clusters: list[int] | None = None, **fields: Any
) -> Record:
    """A record with outcomes, written to ``store``: ``right`` holds 1 or 0 for each test unit, and
    its score is their mean."""
    made = record(score={metric: right.count("1") / len(right)}, data={"test": "t" * 64}, **fields)
    units = [f"unit-{i}" for i in range(len(right))]
    made.predictions = store.save_predictions(made, units, ["yes" if r == "1" else "no" for r in right])
    numerators = np.array(list(right), dtype=float)
    slices = {"length in words": [("up to 5", len(right), float(numerators.mean()))]}
    outcomes = Outcomes(metric, units, numerators, np.ones(len(right)), slices, clusters=clusters)
    store.save_outcomes(made, made.predictions, units, outcomes)
    store.write(made)
    return made

"""How each unit of the test split came out: what intervals, paired tests and error analyses are computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Outcomes:
    """Every main metric is a ratio of sums over units: score = sum(numerators) / sum(denominators).

    A unit is an example, or a question of a ranking task. Accuracy has 1 or 0 over 1, span F1 twice the right spans over predicted
    plus actual ones, word error rate the errors over the words. ``slices`` holds, by property of the examples ("length in words",
    "unknown words", "class", "entity type", "question word", "skill"), what each part of them scored: (part, units, score).
    ``confusion`` counts examples by actual (rows) and predicted (columns) class, where there are classes.
    """

    metric: str
    units: list[str]
    numerators: np.ndarray
    denominators: np.ndarray
    slices: dict[str, list[tuple[str, int, float | None]]]
    confusion: tuple[list[str], list[list[int]]] | None = None

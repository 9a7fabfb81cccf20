"""A linear support vector machine above features, and the numbers in which it can be kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import LinearSVC


def learnt(machine: LinearSVC) -> dict[str, np.ndarray]:
    """All that a fitted machine needs to answer: its classes, coefficients (machines, features) and
    intercepts (machines,); of two classes one machine serves both."""
    return {"classes": machine.classes_, "coefficients": machine.coef_, "intercepts": machine.intercept_}


def restored(state: dict[str, Any]) -> LinearSVC:
    """The machine of :func:`learnt`, to answer and not to be trained again."""
    machine = LinearSVC()
    machine.classes_, machine.coef_, machine.intercept_ = (
        state[name] for name in ("classes", "coefficients", "intercepts")
    )
    return machine

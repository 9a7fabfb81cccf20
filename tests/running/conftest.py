"""What several test files of running share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.records import Cell


@pytest.fixture
def child_of(make_cell: Callable[..., Cell]) -> Callable[..., Cell]:
    """A cell of a name that starts from the weights of another cell."""

    def make(name: str, parent: Cell) -> Cell:
        told = {"architecture": parent.architecture, "task": parent.task, "key": parent.key, "row": parent.row}
        return make_cell(name, hyperparameters={"parents": {"weights": told}})

    return make

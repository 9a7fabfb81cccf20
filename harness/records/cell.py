"""Cells: the units of a grid."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from harness.errors import RecordError
from harness.files import not_json
from harness.records.blocks import Budget
from harness.settings import Limits
from harness.task import Tier

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


def check_name(name: str) -> None:
    """Raise :class:`RecordError` for the name of an architecture or a task that cannot be a
    folder's and part of a page's."""
    if not _NAME.fullmatch(name) or not name.strip("."):
        raise RecordError(
            f"{name!r:.120} cannot be the name of a folder: use letters, digits, '_', '-' and '.', at most 100"
        )


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def of_all_seeds(hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """Hyperparameters that the seeds of a cell share: each starts from another seed of its
    parents."""
    parents = hyperparameters.get("parents")
    if not parents:
        return hyperparameters
    rows = {role: {name: text for name, text in each.items() if name != "key"} for role, each in parents.items()}
    return hyperparameters | {"parents": rows}


@dataclass(frozen=True)
class Cell:
    """One square of the grid: everything that decides a result, and nothing about the machine that
    computes it.

    >>> cell = Cell("dan", 1, "sst2", 1, "mini", "equal", {"hidden": 100}, seed=0)
    >>> again = Cell("dan", 1, "sst2", 1, "mini", "equal", {"hidden": 100}, seed=1)
    >>> cell.key == again.key, cell.row == again.row
    (False, True)
    """

    architecture: str
    architecture_version: int
    task: str
    task_version: int
    tier: Tier
    protocol: str
    hyperparameters: dict[str, Any] = field(hash=False)
    seed: int
    precision: str = "32"
    devices: int = 1
    protocol_version: int = 1

    @property
    def key(self) -> str:
        """Identity of the cell: the first 16 hexadecimal digits of SHA-256 over its canonical JSON.

        Raises :class:`RecordError` for hyperparameters that JSON cannot hold.
        """
        try:
            text = _CANONICAL.encode(self.to_dict())
        except (ValueError, TypeError) as error:
            raise RecordError(
                f"cell {self.architecture} on {self.task}: {not_json(self.to_dict()) or error}"
            ) from error
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def words(self) -> str:
        """Architecture, input sources, task and seed as text.

        >>> Cell("dan", 1, "sst2", 1, "mini", "equal", {"hidden": 100}, seed=0).words
        'dan on sst2, seed 0'
        """
        read = f" with {' and '.join(self.inputs)}" if self.inputs else ""
        return f"{self.architecture}{read} on {self.task}, seed {self.seed}"

    @property
    def parents(self) -> dict[str, dict[str, str]]:
        """The cells that this one starts from, by role: ``architecture``, ``task``, ``key`` and
        ``row`` of each."""
        return self.hyperparameters.get("parents") or {}

    @property
    def inputs(self) -> dict[str, dict[str, Any]]:
        """Sources of further numbers for each word by name: ``version`` and settings of each."""
        return self.hyperparameters.get("inputs") or {}

    @property
    def companions(self) -> list[str]:
        """Further tasks on which the architecture is trained beside its own."""
        return self.hyperparameters.get("companions") or []

    @property
    def row(self) -> str:
        """Identity of the cell and its other seeds."""
        return dataclasses.replace(self, seed=0, hyperparameters=of_all_seeds(self.hyperparameters)).key

    def to_dict(self) -> dict[str, Any]:
        """The fields by name; without the protocol's version where it is 1, which was not recorded
        when there was no other."""
        return {name: value for name, value in vars(self).items() if name != "protocol_version" or value != 1}

    @property
    def budget(self) -> Budget:
        """Amount of training, as its record holds it."""
        limits, training = Limits.of(self.hyperparameters), self.hyperparameters.get("training") or {}
        found: Budget = {"name": limits.name, "examples": limits.labelled}
        if "epochs" in training:
            found |= {"passes": min(limits.max_epochs or training["epochs"], training["epochs"])}
            least = 0 if limits.max_epochs else training.get("min_steps", 0)  # as many passes as are asked for
            found |= {"batch_size": training.get("batch_size"), "min_steps": least}
        return found

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Cell:
        """A cell from :meth:`to_dict`; :class:`TypeError` when a field is missing or unknown."""
        return cls(**fields)


CELL_FIELDS = tuple(each.name for each in dataclasses.fields(Cell))

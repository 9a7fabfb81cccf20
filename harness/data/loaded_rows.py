"""Rows of a task as a cell reads them: its choice of training rows, and lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.problems import problem
from harness.task import DataName, Row, Task, Tier, fingerprint

if TYPE_CHECKING:
    import datasets


LISTED = 1 << 26
"""Bytes of a table whose rows are made Python objects all at once, which takes five times as
much."""
AT_ONCE = 4096
"""Rows of a larger table that are Python objects at a time."""


def training_rows(task: Task, tier: Tier, folder: Path | None, most: int | None) -> datasets.Dataset:
    """The training rows of a task, at most ``most`` of them (None: all), chosen as :func:`chosen`
    does: the same for all architectures and seeds."""
    rows = task.load("train", tier, folder)
    if most is None or most >= len(rows):
        return rows
    return rows.select(chosen(rows, most, 0, problem(task.entry.type).entry.stratum))


def without_answers(rows: datasets.Dataset, task: Task) -> datasets.Dataset:
    """Rows of a task with nothing in them that is an answer."""
    known = {"id", "group", *problem(task.entry.type).entry.inputs}
    return rows.select_columns([name for name in rows.column_names if name in known])


def digest(task: Task, tier: Tier, folder: Path | None, name: DataName, most: int | None = None) -> str:
    """Digest of a part of a task's data, as records have it; ``most`` is the number of training
    rows (None: all)."""
    if name in ("dev", "test"):
        return fingerprint(task.load(name, tier, folder))
    rows = training_rows(task, tier, folder, most)
    return fingerprint(without_answers(rows, task) if name == "unlabelled" else rows)


def chosen(rows: datasets.Dataset, most: int, seed: int, stratum: str | None = None) -> np.ndarray:
    """Numbers of at most ``most`` rows in the file's order: a random choice, the same for the same
    seed.

    It is nested: fewer rows are some of those that more are. The values of column ``stratum``,
    where the rows have it, keep their shares; rows that belong to questions are whole questions.
    """
    generator = np.random.default_rng(seed)
    if "group" not in rows.column_names:
        order = generator.permutation(len(rows))
        if stratum in rows.column_names:
            order = order[_evenly(np.array(rows[stratum])[order])]
        return np.sort(order[:most])
    groups = np.array(rows["group"])
    counts = dict(zip(*np.unique(groups, return_counts=True), strict=True))
    names = generator.permutation(list(counts))
    sizes = np.cumsum([counts[name] for name in names])
    return np.flatnonzero(np.isin(groups, names[: max(1, np.searchsorted(sizes, most, "right"))]))


def _evenly(values: np.ndarray) -> np.ndarray:
    """An order of the places of ``values`` in whose every beginning each value has about the share
    that it has in all."""
    places = np.empty(len(values))
    for value in np.unique(values):
        of_value = np.flatnonzero(values == value)
        places[of_value] = (np.arange(len(of_value)) + 0.5) / len(of_value)
    return np.argsort(places, kind="stable")


def listed_rows(rows: datasets.Dataset) -> Sequence[Row]:
    """Rows for several readings: all at once where they are few, since one after another out of
    Arrow takes thirty times as long."""
    size = rows.data.nbytes * len(rows) / max(1, len(rows.data))
    return rows.to_list() if size <= LISTED else InPortions(rows)


class InPortions(Sequence[Row]):
    """Rows of a table that are Python objects only while they are looked at."""

    def __init__(self, rows: datasets.Dataset):
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self.rows.select(range(*place.indices(len(self)))).to_list()
        return self.rows[place]

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), AT_ONCE):
            yield from self[start : start + AT_ONCE]


def distinct(texts: Iterable[Any]) -> Iterator[Any]:
    """Each text once, however many rows have it: a passage of three questions is one text."""
    seen: set[str] = set()
    for text in texts:
        key = text if isinstance(text, str) else repr(text) if isinstance(text, list) else None
        if key is None or key not in seen:  # recordings are no texts
            yield text
        if key is not None:
            seen.add(key)

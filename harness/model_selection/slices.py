"""Slices of a user's rows: what systems are trained on, what they are chosen by, and what is sealed
until one is chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from harness import registry
from harness.errors import RegistryError, UsageError
from harness.files import write_whole
from harness.task import Split
from harness.user_data.description import LONGEST_ID, described, parse
from harness.user_data.splits import carved, hashes
from harness.user_data.table import GROUP, PLACE
from harness.user_data.task import SPLITS, OwnTask
from harness.user_data.writing import path_from, quoted

FEWEST_SEALED_OF, FEWEST_SEALED = 1_000, 200
"""Rows from which on a slice is sealed, and how many it must have: fewer confirm nothing."""
FOLDS = 5
CHOICE, MOST_CHOICE = 0.25, 10_000
"""Share and largest number of the rows for training that systems are chosen by instead."""
MOST_TRAIN, MOST_DEV = 50_000, 10_000
"""Rows that are trained on, and rows that end a training, which are asked after each pass: a first
table has to stand within a minute."""
DEV = 0.125
"""Share of the rows outside of a fold on which training looks when to end."""
CHOOSE, CONFIRM = 1, 2
"""Seeds of what is held out here, so that they differ from those of the description."""


@dataclass(frozen=True)
class Slices:
    """Tasks made of a user's one: those by which systems are chosen (one, or a fold each), and the
    one on which the chosen one is trained anew, whose test is ``sealed`` or, where nothing is, that
    of the first fold. ``again`` are further ones for those in front: together with the first each
    row that is neither sealed nor ends a training is in the test of one. ``rows`` are all there
    are, ``train`` those that a model is trained on, ``train_last`` those that the last slice trains
    on, ``last_rows`` all of that. ``words`` tells of the slices."""

    choosing: tuple[Path, ...]
    last: Path
    sealed: bool
    rows: int
    train: int
    train_last: int
    last_rows: int
    words: str
    again: tuple[Path, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """All descriptions."""
        return (*self.choosing, *self.again, self.last)


@dataclass(frozen=True)
class _Rows:
    """The rows of a task that are divided: their places in the file (rows,), and two hashes of each
    (rows,), for the folds or the choice and for what ends a training. Those of rows that stay
    together are equal."""

    task: OwnTask
    folder: Path
    places: np.ndarray
    chosen: np.ndarray
    ended: np.ndarray

    def __len__(self) -> int:
        return len(self.places)

    def write(self, name: str, train: np.ndarray, dev: np.ndarray, test: np.ndarray) -> Path:
        """Write the description of a slice of these rows."""
        return _write(self.task, self.folder, name, self.places, {"train": train, "dev": dev, "test": test})

    def parted(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows to train on, and those that end the training."""
        is_dev = carved(self.ended[rows], {"dev": DEV}) == 1
        return rows[~is_dev], rows[is_dev]


def slices(task: OwnTask, folder: Path) -> Slices:
    """Write the descriptions of the slices of a task to ``folder``.

    Rows that the task keeps on one side (equal texts, one group) stay together here too. From
    1,000 rows on, test of the description is sealed, and a part of train ends the training where
    it gives no dev; below, each row is in one fold of a cross-validation. Raises
    :class:`~harness.errors.DataError` for rows that cannot be read, and
    :class:`~harness.errors.UsageError` for rows too many of which stay together.
    """
    if list(task.description.places) != ["all"] or task.description.hub:
        raise UsageError(
            f"{task.description.file}: [data] has {', '.join(task.description.places)}; `archbench try` divides the"
            " rows of one file, all = FILE; `archbench run` takes the splits as they are"
        )
    folder.mkdir(parents=True, exist_ok=True)
    _check_place(task, folder)
    table = task.read_file("all")
    if task.description.assigned is not None:  # rows that it does not name are left out
        table = table.filter(pa.array(task.splits("all") >= 0))
    chosen, ended = (hashes(task.keys(table), seed) for seed in (CHOOSE, CONFIRM))
    rows = _Rows(task, folder, table[PLACE].to_numpy(), chosen, ended)
    if len(rows) < FEWEST_SEALED_OF:
        return _folds(rows, f"below {FEWEST_SEALED_OF:,}")
    return _sealed(rows) or _folds(rows, f"fewer than {FEWEST_SEALED} would be sealed")


def _sealed(rows: _Rows) -> Slices | None:
    """Slices with the test of the description sealed; None where that is too small."""
    task = rows.task
    numbers = task.splits("all")
    numbers = numbers[numbers >= 0]
    learnt, dev, test = (np.flatnonzero(numbers == SPLITS.index(split)) for split in SPLITS)
    if len(test) < FEWEST_SEALED:
        return None
    if not task.description.shares and not len(dev):  # train and test alone are a usual way to give them
        task.table("train")  # which names the split where it has no rows
        learnt, dev = rows.parted(learnt)
    ending = _first(rows, dev, MOST_DEV)
    share = min(CHOICE, MOST_CHOICE / max(1, len(learnt)))
    held = carved(rows.chosen[learnt], {"test": share}) == 1
    chosen_by, rest = learnt[held], learnt[~held]
    train = _first(rows, rest, MOST_TRAIN)
    choosing = rows.write("choice", train, ending, chosen_by)
    # Once the choice is made, the rows that it fell by are for training too.
    known = np.sort(np.concatenate([train, chosen_by]))
    sealed = rows.write("sealed", known, ending, test)
    again = _other_quarters(rows, learnt, ending) if share == CHOICE else ()  # more rows to choose by tell enough
    words = (
        f"{len(rows):,} rows: {_some(train, rest)} for training, {_some(ending, dev)} to end it, {len(chosen_by):,} to"
        f" choose by, and {len(test):,} sealed until the choice is made."
    )
    last = len(known), len(known) + len(ending) + len(test)
    return Slices((choosing,), sealed, True, len(rows), len(train), *last, words, again)


def _first(rows: _Rows, some: np.ndarray, most: int) -> np.ndarray:
    """At most so many of some rows, by lot."""
    return np.sort(some[rows.ended[some].argsort(kind="stable")[:most]])


def _some(rows: np.ndarray, of: np.ndarray) -> str:
    """The number of rows, and of how many they are where they are not all."""
    return f"{len(rows):,}" + (f" (of {len(of):,})" if len(rows) < len(of) else "")


def _other_quarters(rows: _Rows, learnt: np.ndarray, dev: np.ndarray) -> tuple[Path, ...]:
    """Slices of which each has another quarter of the rows for training as its test; the first
    chooses already."""
    quarters = round(1 / CHOICE)
    quarter_of = _in_parts(rows.chosen[learnt], quarters)
    return tuple(
        rows.write(f"again_{quarter}", learnt[quarter_of != quarter], dev, learnt[quarter_of == quarter])
        for quarter in range(2, 1 + quarters)
        if np.any(quarter_of == quarter)  # else no group was small enough for it
    )


def _folds(rows: _Rows, why: str) -> Slices:
    """Slices of a cross-validation, with the reason why nothing is sealed."""
    fold_of = _in_parts(rows.chosen, FOLDS)
    parts = [
        (*rows.parted(np.flatnonzero(fold_of != fold)), np.flatnonzero(fold_of == fold)) for fold in range(1, FOLDS + 1)
    ]
    folds = tuple(rows.write(f"fold_{fold}", *part) for fold, part in enumerate(parts, 1))
    words = (
        f"{len(rows):,} rows, {why}: nothing is sealed, but each row is scored by a model that was trained without it"
        f" (cross-validation, {FOLDS} parts)."
    )
    if not rows.task.description.shares:
        words += " The splits that the file gives are not used."
    train = len(parts[-1][0])
    return Slices(folds, rows.write("whole", *parts[0]), False, len(rows), train, len(parts[0][0]), len(rows), words)


def _check_place(task: OwnTask, folder: Path) -> None:
    """Raise :class:`UsageError` for a folder with the slices of another file's rows."""
    own = task.description.path("all").resolve()
    for file in folder.glob(f"{task.entry.id}_*{registry.DESCRIPTION}"):
        with suppress(RegistryError):  # a damaged one is written anew
            other = described(file).path("all").resolve()
            if other != own:
                raise UsageError(
                    f"{folder} holds the trial of {other}, not of {own}: say another id = in"
                    f" {task.description.file}, or another --results"
                )


def _in_parts(hashed: np.ndarray, parts: int) -> np.ndarray:
    """The part of each row (rows,), from 1: as many in each as rows with one hash allow. The last
    part has what is too large for the others."""
    part_of = carved(hashed, dict.fromkeys(range(1, parts), 1 / parts))  # type: ignore[arg-type]
    return np.where(part_of == 0, parts, part_of)


def _write(task: OwnTask, folder: Path, name: str, places: np.ndarray, split: Mapping[Split, np.ndarray]) -> Path:
    """Write the description of a slice, and the split of each of its rows; none may be empty."""
    if not all(map(len, split.values())):
        raise _undivided(task)
    found = task.description
    file = folder / f"{found.id}_{name}.toml"
    lines = ["row,split", *(f"{place},{key}" for key, rows in split.items() for place in places[rows])]
    _write_changed(file.with_suffix(".csv"), "\n".join([*lines, ""]))
    splits = {"assigned": f"{file.stem}.csv"} | ({} if found.group is None else {"group": found.group})
    id = f"{found.id[: LONGEST_ID - 1 - len(name)]}_{name}"  # the folder is the task's own, so that none is another's
    content = parse(found.file) | {"id": id, "splits": splits}
    content["name"] = f"{task.entry.name}, {name.replace('_', ' ')}"
    content["data"] = content["data"] | {"all": path_from(found.path("all"), folder)}
    content.pop("sizes", None)
    plain = [f"{key} = {quoted(value)}" for key, value in content.items() if not isinstance(value, dict)]
    tables = [
        line
        for key, values in content.items()
        if isinstance(values, dict)
        for line in ("", f"[{key}]", *(f"{each} = {quoted(value)}" for each, value in values.items()))
    ]
    _write_changed(file, "\n".join(["# Made by `archbench try`.", *plain, *tables, ""]))
    return file


def _undivided(task: OwnTask) -> UsageError:
    """The error that rows which stay together leave a split without any."""
    found, table = task.description, task.read_file("all")
    [(key, count)] = Counter(task.keys(table)).most_common(1)
    named = {GROUP: found.group} | found.columns
    kept = next((name for name in (GROUP, task.problem.cluster) if name in table.column_names), None)
    columns = ", ".join(repr(named[name]) for name in ([kept] if kept else task.inputs_in(table)))
    return UsageError(
        f"{found.file}: rows that are equal in {columns} stay together, and {count:,} of {len(table):,} are:"
        f" {key!r:.60}; `archbench try` divides the rows, which needs smaller groups or more rows"
    )


def _write_changed(file: Path, text: str) -> None:
    """Write a file unless it says so already: a newer one would be read again."""
    if not file.is_file() or file.read_bytes() != text.encode():
        write_whole(file, text.encode())

"""The task that a TOML file describes."""

from __future__ import annotations

import functools
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute

from harness import registry
from harness.errors import DataError
from harness.registry import TaskEntry
from harness.task import Row, Split, Task, Tier
from harness.user_data import hub, raw_tables
from harness.user_data.description import Description, described
from harness.user_data.splits import carved, hashes
from harness.user_data.table import GROUP, PLACE, SPLIT, read_table, wanted

if TYPE_CHECKING:
    import datasets

SPLITS: tuple[Split, ...] = get_args(Split)
SPLIT_NAMES: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "development": "dev",
    "validation": "dev",
    "valid": "dev",
    "val": "dev",
    "test": "test",
    "testing": "test",
}
"""Values of a column of splits."""


class OwnTask(Task):
    """Rows of a user's own files, as a TOML file describes them; its only tier is ``own``.

    Files are read into Arrow's tables once by an object; a file of one split is read when that
    split is.
    """

    own_tier: ClassVar[Tier | None] = "own"
    official_test: ClassVar[bool] = False
    description: ClassVar[Description]

    def __init__(self, entry: TaskEntry):
        super().__init__(entry)
        self.problem = registry.entry("problems", entry.type)
        self._read: dict[str, pa.Table] = {}
        self._units: dict[str, str] = {}
        self._places: dict[str, np.ndarray] = {}

    @classmethod
    def reason_to_skip(cls, id: str, tier: str) -> str | None:
        return None if tier == cls.own_tier else f"{id} is a task of your own files, which has no tier {tier}"

    def official_test_examples(self, tier: Tier, examples: int) -> int:
        """All: the test that the description gives is the only one."""
        return examples

    def load(self, split: Split, tier: Tier = "own", folder: Path | None = None) -> datasets.Dataset:
        """Rows of a split; :class:`DataError` with file and line of what cannot be read."""
        import datasets

        table = self.table(split)
        return datasets.Dataset(datasets.table.InMemoryTable(table.drop_columns(_notes(table))))

    def read(self, split: Split, tier: Tier = "own", folder: Path | None = None) -> list[Row]:
        table = self.table(split)
        return table.drop_columns(_notes(table)).to_pylist()

    def _place(self, split: Split) -> str:
        """The file, by the split that it is named for, in which the rows of a split stand."""
        return (
            split if split in self.description.places else next(iter({"all", "train"} & set(self.description.places)))
        )

    def table(self, split: Split) -> pa.Table:
        """Rows of a split with their places in their file."""
        place = self._place(split)
        whole, where = self.read_file(place), self.where(place)
        numbers = self.splits(place)
        found = whole.filter(pa.array(numbers == SPLITS.index(split)))
        if not len(found):
            raise DataError(f"{where}: split {split} has no rows{self._why_empty(split, len(whole))}")
        if split == "train" and self.problem.stratum is not None:
            predicted = self.problem.answer_columns[0]
            column = self.description.columns.get(predicted)
            classes = pa.compute.unique(found[predicted])
            if len(classes) < 2:
                raise DataError(
                    f"{where}: column {column!r} has one value in train, {classes[0].as_py()!r:.60}; expected two"
                    " classes or more"
                )
        return found

    def where(self, place: str) -> str:
        """The place of a file, as messages name it."""
        name = self.description.places[place]
        return f"{self.description.hub[0]}, split {name}" if self.description.hub else str(self.description.path(place))

    def _why_empty(self, split: Split, rows: int) -> str:
        share = self.description.shares.get(split)
        if share is None:
            return ""
        kept = "its groups are larger than that" if round(share * rows) else "there are too few"
        return f": {share:.3g} of {rows:,} rows were to be held out, and {kept}"

    def read_file(self, place: str) -> pa.Table:
        """All rows of a file, by the split (or ``all``) that it is named for."""
        if place not in self._read:
            found, where = self.description, self.where(place)
            columns = list(wanted(found).values())
            if found.hub:
                read, folder = hub.read(found.hub, found.places[place], columns), Path()
            else:
                read, folder = raw_tables.read(found.path(place), found.source, columns), found.path(place).parent
            self._read[place] = read_table(where, read, folder, found, self.problem)
            self._units[place] = read.unit
        return self._read[place]

    def look(self) -> None:
        """Raise :class:`DataError` for a file, or a column of it, that is not there; no row is
        read, and nothing of the hub."""
        found = self.description
        for place in found.places if found.hub is None else ():
            raw_tables.read(found.path(place), found.source, list(wanted(found).values()))

    def splits(self, place: str) -> np.ndarray:
        """The number among :data:`SPLITS` of the split of each row of a file."""
        if place not in self._places:
            table, found = self.read_file(place), self.description
            if place in ("dev", "test"):
                self._places[place] = np.full(len(table), SPLITS.index(place), dtype=np.int8)
            elif found.column is not None:
                self._places[place] = self._named_splits(table, self.where(place))
            elif found.assigned is not None:
                self._places[place] = self._assigned_splits(table, found.file.parent / found.assigned)
            else:
                names = [SPLITS.index(split) for split in ("train", *found.shares)]
                self._places[place] = np.array(names)[carved(hashes(self.keys(table), found.seed), found.shares)]
        return self._places[place]

    def _named_splits(self, table: pa.Table, where: str) -> np.ndarray:
        names = table[SPLIT].combine_chunks().dictionary_encode()
        values = [SPLIT_NAMES.get(name.as_py().lower()) for name in names.dictionary]
        numbers = names.indices.to_numpy(zero_copy_only=False)
        for number, split in enumerate(values):
            if split is None:
                row = int(np.argmax(numbers == number))
                raise DataError(
                    f"{where}, {self._units['all']} {table[PLACE][row]}: column {self.description.column!r} is"
                    f" {names.dictionary[number].as_py()!r:.60}, expected one of {', '.join(SPLIT_NAMES)}"
                )
        return np.array([SPLITS.index(split) for split in values if split])[numbers]

    def _assigned_splits(self, table: pa.Table, file: Path) -> np.ndarray:
        """The splits that a file gives to rows; -1 for those that it does not name."""
        from pyarrow import csv

        types = {"row": pa.int64(), "split": pa.string()}
        try:
            given = csv.read_csv(file, convert_options=csv.ConvertOptions(column_types=types))
            places, names = given["row"], given["split"].to_pylist()
            wrong = next((name for name in names if name not in SPLITS), None)
            if wrong is not None:
                raise ValueError(f"split {wrong!r:.60}, expected one of {', '.join(SPLITS)}")
            if len(places.unique()) < len(places):
                [(row, _)] = Counter(places.to_pylist()).most_common(1)
                raise ValueError(f"row {row} is named twice")
            at = pyarrow.compute.index_in(places, value_set=table[PLACE])
            if at.null_count:
                row = places.filter(pyarrow.compute.is_null(at))[0].as_py()
                raise ValueError(f"row {row} is none of {self.where('all')}")
        except (OSError, KeyError, ValueError) as error:  # Arrow's errors are ValueErrors
            raise DataError(f"{file}: {error}; expected the columns row and split") from error
        numbers = np.full(len(table), -1, dtype=np.int8)
        numbers[at.to_numpy()] = [SPLITS.index(name) for name in names]
        return numbers

    def keys(self, table: pa.Table) -> Iterator[str]:
        """A text that rows which stay together have in common: the group that the user names, else
        that of dependent rows (a question, a speaker), else their inputs."""
        named = next((name for name in (GROUP, self.problem.cluster) if name in table.column_names), None)
        return contents(table, [named] if named else self.inputs_in(table))

    def inputs_in(self, table: pa.Table) -> list[str]:
        """The columns of a table that systems read, without the name of a group."""
        return [name for name in self.problem.inputs if name in table.column_names and name != self.problem.cluster]

    def together(self, rows: Sequence[Row]) -> list[str]:
        """The group of each row, where the user names one."""
        if self.description.group is None:
            return super().together(rows)
        groups: dict[str, str] = {}
        for table in map(self.table, SPLITS):
            names = ["id", *self.inputs_in(table)]  # ids of two files may be equal, and so may two texts
            groups |= zip(contents(table, names), contents(table, [GROUP]), strict=True)
        return [groups[_joined(row[name] for name in names)] for row in rows]

    # What a run tells, and what it looks at to see that nothing changed.

    def notes(self) -> list[str]:
        """Sentences on what is no fault, and changes what scores say: answers of dev and test that
        train lacks, and rows that stand in two splits."""
        tables = {split: self.table(split) for split in SPLITS}
        train, *others = tables.items()
        notes = []
        name = next(iter(self.problem.answer_columns), "")  # others, such as a skill, are not predicted
        if self.problem.forms.get(name) in ("name", "names", "tags"):
            known = set(values_of(train[1][name]))
            for split, table in others:
                strange = Counter(value for value in values_of(table[name]) if value not in known)
                if strange:
                    shown = ", ".join(f"{value!r:.40} ({count:,})" for value, count in strange.most_common(3))
                    place = f"{self._units[self._place(split)]} {_first(table, name, next(iter(strange)))}"
                    notes.append(
                        f"{split} has {strange.total():,} values of {name} that train lacks, which every system gets"
                        f" wrong: {shown}{', ...' if len(strange) > 3 else ''}; the first at {place}"
                    )
        inputs = {split: hashes(contents(table, self.inputs_in(table))) for split, table in tables.items()}
        for split, _ in others:
            if count := int(np.isin(inputs[split], inputs["train"]).sum()):
                notes.append(f"{count:,} of {len(inputs[split]):,} rows of {split} read as a row of train")
        return [f"{self.entry.id}: {note}" for note in notes]

    def signature(self) -> str:
        """Digest of names, sizes and times of the data files, which are cheap to look at."""
        found = self.description
        digest = hashlib.sha256(repr([found.hub, found.places]).encode())
        for path in () if found.hub else self._files():
            try:
                status = path.stat()
                digest.update(os.fsencode(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n"))
            except OSError:  # reading it says why
                digest.update(os.fsencode(f"{path}\0none\n"))
        return digest.hexdigest()

    def _files(self) -> Iterator[Path]:
        """The data files, and the recordings that they list."""
        found = self.description
        for place in found.places:
            path = found.path(place)
            yield path
            if found.assigned is not None:
                yield found.file.parent / found.assigned
            if "audio" in found.columns:
                try:
                    for _, (name,) in raw_tables.read(path, found.source, [found.columns["audio"]]).rows:
                        if isinstance(name, str) and "\0" not in name:
                            yield path.parent / name
                except DataError:  # reading it says so
                    continue


def _notes(table: pa.Table) -> list[str]:
    """Columns of a table that are not the task's."""
    return [name for name in (PLACE, GROUP, SPLIT) if name in table.column_names]


def contents(table: pa.Table, names: list[str]) -> Iterator[str]:
    """The values of some columns of each row, as one text."""
    for batch in table.select(names).to_batches():
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield _joined(values)


def _joined(values: Iterable[Any]) -> str:
    return "\x1f".join(map(_as_text, values))


def _as_text(value: Any) -> str:
    if isinstance(value, dict):
        return hashlib.sha256(value["bytes"]).hexdigest()  # a recording
    return "\x1e".join(value) if isinstance(value, list) else str(value)


def values_of(column: pa.ChunkedArray) -> Iterator[str]:
    """The texts of a column, also those in its lists."""
    for chunk in column.chunks:
        yield from (chunk.flatten() if pa.types.is_list(chunk.type) else chunk).to_pylist()


def _first(table: pa.Table, name: str, value: str) -> int:
    """The place of the first row with a value in a column."""
    found = ((place, each.as_py()) for place, each in zip(table[PLACE], table[name], strict=True))
    return next(place.as_py() for place, each in found if each == value or (isinstance(each, list) and value in each))


@functools.cache
def _class(file: Path, _version: tuple[int, int]) -> type[OwnTask]:
    found = described(file)
    inputs = tuple(name for name in ("text", "tree", "audio") if name in found.columns)
    return type(
        "OwnTask", (OwnTask,), {"__doc__": OwnTask.__doc__, "description": found, "inputs": inputs or ("text",)}
    )


def class_of(file: Path) -> type[OwnTask]:
    """The task class of a TOML file, made once for each of its versions."""
    status = file.stat()
    return _class(file, (status.st_mtime_ns, status.st_size))

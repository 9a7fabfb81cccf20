"""Detection of data files that changed after a record was written, or after what its cell started
from was trained: such a record is no result of this grid."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import DataError, ModelError
from harness.files import taking_the_place_of
from harness.records import Cell, Record
from harness.registry import TaskEntry
from harness.registry.sorts import ROOT
from harness.saved_models.folder import describe
from harness.saved_models.storage import MODELS
from harness.settings import Limits
from harness.task import DataName, Tier


class DataFolder:
    """The fingerprints of a data folder's splits, cached in the file ``cache`` until a file in the
    folder or the code that reads it changes."""

    tier: Tier = "local"
    folder: Path | None

    def __init__(self, folder: Path, cache: Path):
        self.folder, self.cache = folder, cache
        try:
            self.signature = _signature(folder)
        except OSError as error:
            raise DataError(f"--data-dir {folder}: {error}") from error
        """Digest of names, sizes and times of its files."""

    def holds(self, made: Cell | Record) -> bool:
        """True for a cell or record whose data are of this place."""
        return made.tier == self.tier

    def differing(self, record: Record) -> list[str]:
        """Splits, and tasks trained on beside the record's own, whose data are not those of the
        record.

        Raises :class:`~harness.errors.DataError` when the files cannot be read.
        """
        most = Limits.of(record.hyperparameters).labelled
        others = [each for each in record.companions or () if "train" in each]
        return self.differing_splits(record, record.data) + [
            each["task"] for each in others if self._fingerprints(each["task"], most)["train"] != each["train"]
        ]

    def differing_splits(self, made: Cell | Record, data: Mapping[Any, str]) -> list[str]:
        """Splits of a cell's own task whose fingerprints are not those of ``data``."""
        limits = Limits.of(made.hyperparameters)
        fingerprints = self._fingerprints(made.task, limits.labelled)
        if "unlabelled" in data:
            fingerprints = fingerprints | self._fingerprints(made.task, limits.max_train, answers=False)
        return [split for split, digest in data.items() if fingerprints[split] != digest]

    @functools.cache  # noqa: B019 - a folder lives as long as the one run that reads it
    def _fingerprints(self, task: str, most: int | None, answers: bool = True) -> dict[str, str]:
        """Those of all splits, ``most`` rows of train; without ``answers`` those of train alone, as
        texts without labels."""
        cached, entry = self._read(), registry.entry("tasks", task)
        # The signature of this place says nothing of the files of another task of the user's.
        origin = hashlib.sha256(f"{code_digest(entry)} {registry.load(entry)(entry).signature()}".encode()).hexdigest()
        name = f"{task} {most or 'all'} {origin[:16]}{'' if answers else ' texts'}"
        if name not in cached:
            cached[name] = self._computed(task, most, answers)
            self._write(cached)
        return cached[name]

    def _computed(self, task: str, most: int | None, answers: bool) -> dict[str, str]:
        from harness.data.loaded_rows import digest

        entry = registry.entry("tasks", task)
        adapter = registry.load(entry)(entry)
        names: tuple[DataName, ...] = ("train", "dev", "test") if answers else ("unlabelled",)
        return {name: digest(adapter, self.tier, self.folder, name, most) for name in names}

    def _read(self) -> dict[str, dict[str, str]]:
        """Fingerprints by task and cap, as computed from the files as they are now."""
        try:
            content = json.loads(self.cache.read_text())
            return content["fingerprints"] if content["signature"] == self.signature else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _write(self, fingerprints: dict[str, dict[str, str]]) -> None:
        with suppress(OSError), taking_the_place_of(self.cache) as path:  # without it the next run computes them again
            path.write_text(json.dumps({"signature": self.signature, "fingerprints": fingerprints}))


class OwnData(DataFolder):
    """As :class:`DataFolder`, of the files that one task names itself."""

    tier = "own"

    def __init__(self, task: TaskEntry, cache: Path):
        self.task, self.folder, self.cache = task.id, None, cache
        self.signature = registry.load(task)(task).signature()

    def holds(self, made: Cell | Record) -> bool:
        return made.tier == self.tier and made.task == self.task


class Ancestors:
    """The ``cells`` that others may start from, and whether what they learnt from is what the data
    in ``places`` are now.

    What cannot be asked counts as unchanged: a model that none of the cells made, another tier, and
    files that are not at hand.
    """

    def __init__(self, cells: Iterable[Cell], places: Sequence[DataFolder], results: Path):
        self.cells, self.places, self.results = {cell.key: cell for cell in cells}, places, results

    def changed(self, lineage: Iterable[Mapping[str, Any]]) -> list[str]:
        """The tasks of which some of these ancestors (:class:`harness.records.blocks.Ancestor`)
        learnt other data."""
        return list(dict.fromkeys(each["task"] for each in lineage if self._is_changed(each)))

    @functools.cache  # noqa: B019 - it lives as long as the one plan that asks
    def changed_of_kept(self, key: str) -> list[str]:
        """As :meth:`changed`, of the kept model of a key and those that it started from."""
        if key not in self.cells or not self.places:
            return []
        try:
            origin = describe(self.results / MODELS / key).origin
        except ModelError:  # a damaged one is no reason to train: loading it says what is wrong
            return []
        return self.changed([{"key": key, "task": self.cells[key].task, "corpus": origin.data}, *origin.lineage])

    def _is_changed(self, ancestor: Mapping[str, Any]) -> bool:
        cell, corpus = self.cells.get(ancestor["key"]), ancestor.get("corpus")
        if cell is None or not corpus:
            return False
        with suppress(DataError):
            return any(place.holds(cell) and place.differing_splits(cell, corpus) for place in self.places)
        return False


def code_digest(task: TaskEntry) -> str:
    """Digest of the code that reads a task's data: its file, ours below ``tasks/``, what reads the
    files of a user's own task, what these call, and the checks."""
    files = {task.file, *(ROOT / "tasks").rglob("*.py"), *(ROOT / "harness/user_data").rglob("*.py")}
    files |= {ROOT / "harness" / name for name in ("task.py", "rows.py", "mentions.py", "data/overlap.py")}
    digest = hashlib.sha256(repr(registry.entry("problems", task.type).forms).encode())
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _signature(folder: Path) -> str:
    """Digest of names, sizes and times of all files below a folder, also behind links; unlike
    their contents, these are cheap to read."""
    digest = hashlib.sha256()
    entered = set[str]()
    for place, folders, names in os.walk(folder, followlinks=True):
        here, true = os.path.relpath(place, folder), os.path.realpath(place)
        if true in entered:  # a link to what is counted, perhaps to where it lies itself
            digest.update(os.fsencode(f"{here}\0{true}\n"))
            folders.clear()
            continue
        entered.add(true)
        folders.sort()
        for path in (Path(place, name) for name in sorted(names)):
            with suppress(OSError):  # a file that went away since is none of a task's
                status = path.stat()
                if stat.S_ISREG(status.st_mode):
                    digest.update(os.fsencode(f"{here}/{path.name}\0{status.st_size}\0{status.st_mtime_ns}\n"))
    return digest.hexdigest()

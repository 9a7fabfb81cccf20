"""Detection of data files that changed after a record was written: such a record is no result of
this grid."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from harness import registry
from harness.errors import DataError
from harness.files import taking_the_place_of
from harness.records import Record
from harness.registry import TaskEntry
from harness.settings import Limits
from harness.task import Tier

ROOT = Path(__file__).resolve().parents[2]


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

    def holds(self, record: Record) -> bool:
        """True for a record that was made with data of this place."""
        return record.tier == self.tier

    def differing(self, record: Record) -> list[str]:
        """Splits, and tasks trained on beside the record's own, whose data are not those of the
        record.

        Raises :class:`~harness.errors.DataError` when the files cannot be read.
        """
        most = Limits.of(record.hyperparameters).labelled
        fingerprints = self._fingerprints(record.task, most)
        others = [each for each in record.companions or () if "train" in each]
        return [split for split, digest in record.data.items() if fingerprints[split] != digest] + [
            each["task"] for each in others if self._fingerprints(each["task"], most)["train"] != each["train"]
        ]

    @functools.cache  # noqa: B019 - a folder lives as long as the one run that reads it
    def _fingerprints(self, task: str, most: int | None) -> dict[str, str]:
        cached = self._read()
        name = f"{task} {most or 'all'} {code_digest(registry.entry('tasks', task))[:16]}"
        if name not in cached:
            cached[name] = self._computed(task, most)
            self._write(cached)
        return cached[name]

    def _computed(self, task: str, most: int | None) -> dict[str, str]:
        from harness.data.loaded_rows import training_rows
        from harness.task import fingerprint

        entry = registry.entry("tasks", task)
        adapter = registry.load(entry)(entry)
        train = training_rows(adapter, self.tier, self.folder, most)
        others = {split: adapter.load(split, self.tier, self.folder) for split in ("dev", "test")}
        return {split: fingerprint(rows) for split, rows in {"train": train, **others}.items()}

    def _read(self) -> dict[str, dict[str, str]]:
        """Fingerprints by task and cap, as computed from the files as they are now."""
        try:
            content = json.loads(self.cache.read_text())
            return content["fingerprints"] if content["signature"] == self.signature else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _write(self, fingerprints: dict[str, dict[str, str]]) -> None:
        with taking_the_place_of(self.cache) as path:
            path.write_text(json.dumps({"signature": self.signature, "fingerprints": fingerprints}))


class OwnData(DataFolder):
    """As :class:`DataFolder`, of the files that one task names itself."""

    tier = "own"

    def __init__(self, task: TaskEntry, cache: Path):
        self.task, self.folder, self.cache = task.id, None, cache
        self.signature = registry.load(task)(task).signature()

    def holds(self, record: Record) -> bool:
        return record.tier == self.tier and record.task == self.task


def code_digest(task: TaskEntry) -> str:
    """Digest of the code that reads a task's data: its file, ours below ``tasks/``, and the
    checks."""
    files = {task.file, *(ROOT / "tasks").rglob("*.py"), ROOT / "harness/task.py", ROOT / "harness/rows.py"}
    digest = hashlib.sha256(repr(registry.entry("problems", task.type).forms).encode())
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _signature(folder: Path) -> str:
    """Digest of names, sizes and times of all files below a folder; unlike their contents, these
    are cheap to read."""
    digest = hashlib.sha256()
    for path in sorted(_files(folder)):
        status = path.stat()
        digest.update(f"{path.relative_to(folder)}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterable[Path]:
    return (Path(place, name) for place, _, names in os.walk(folder) for name in names if Path(place, name).is_file())

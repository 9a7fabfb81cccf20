"""Whether the data files are still those that finished records were made with: a record of other
data is no result of this grid."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from harness import registry
from harness.files import taking_the_place_of
from harness.records import Record
from harness.settings import Limits


class DataFolder:
    """The fingerprints of a data folder's splits, kept in ``cache`` for as long as no file in the
    folder changes."""

    def __init__(self, folder: Path, cache: Path):
        self.folder, self.cache = folder, cache
        self._signature = _signature(folder)

    def differing(self, record: Record) -> list[str]:
        """Splits that were other ones when the record was made; :class:`~harness.task.DataError`
        when the files cannot be read."""
        now = self._fingerprints(record.task, Limits.of(record.hyperparameters).max_train)
        return [split for split, then in record.data.items() if now[split] != then]

    @functools.cache  # noqa: B019 - as long as the one run that looks at the folder
    def _fingerprints(self, task: str, max_train: int | None) -> dict[str, str]:
        known = self._read()
        name = f"{task} {max_train or 'all'}"
        if name not in known:
            known[name] = self._computed(task, max_train)
            self._write(known)
        return known[name]

    def _computed(self, task: str, max_train: int | None) -> dict[str, str]:
        from harness.data.corpus import limit
        from harness.task import fingerprint

        entry = registry.entry("tasks", task)
        adapter = registry.load(entry)(entry)
        found = {split: adapter.load(split, "local", self.folder) for split in ("train", "dev", "test")}
        return {
            split: fingerprint(limit(rows, max_train) if split == "train" else rows) for split, rows in found.items()
        }

    def _read(self) -> dict[str, dict[str, str]]:
        """What was computed before, while the files were as they are now."""
        try:
            content = json.loads(self.cache.read_text())
            return content["fingerprints"] if content["signature"] == self._signature else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _write(self, known: dict[str, dict[str, str]]) -> None:
        with taking_the_place_of(self.cache) as path:
            path.write_text(json.dumps({"signature": self._signature, "fingerprints": known}))


def _signature(folder: Path) -> str:
    """Digest of names, sizes and times of all files below a folder: cheap, where reading them is
    not."""
    digest = hashlib.sha256()
    for path in sorted(_files(folder)):
        status = path.stat()
        digest.update(f"{path.relative_to(folder)}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterable[Path]:
    return (Path(place, name) for place, _, names in os.walk(folder) for name in names if Path(place, name).is_file())

"""The records below one results folder, with their predictions and outcomes."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import uuid
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import RecordError
from harness.files import MAX_UNPACKED_BYTES, are_texts, not_json, parse_json, read_limited, sweep, unpack, write_whole
from harness.records.blocks import Predictions
from harness.records.cell import Cell, check_name
from harness.records.outcomes import Outcomes
from harness.records.record import Record

SHARED = ("hyperparameters", "registered", "environment")
"""Fields that are large and mostly equal for the seeds of a row: half of a record's memory."""


class _Shared:
    """The values of the last record that the next one takes instead of its own where they are the
    same; nobody changes them. Equal is not enough: 1, 1.0 and True are."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, Any]] = dict.fromkeys(SHARED, ("", None))
        self.given: set[str] = set()

    def of(self, record: Record) -> Record:
        for name in SHARED:
            value = getattr(record, name)
            text = repr(value)
            if text == self.known[name][0]:
                record.__dict__[name] = self.known[name][1]
            else:
                self.known[name] = text, value
        if record.model_fields_set != self.given:
            self.given = record.model_fields_set
        object.__setattr__(record, "__pydantic_fields_set__", self.given)  # the names of the fields that were given
        return record


def log_file(work: Path, cell: Cell | Record) -> Path:
    """Path of a cell's log, below the folder of checkpoints, logs and cached views."""
    return work / "logs" / f"{cell.task}-{cell.architecture}-{cell.key}.log"


class Store:
    """The records below one results folder, with their predictions and outcomes."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.damaged: dict[Path, str] = {}  # reason by file that the last all() skipped

    def path(self, cell: Cell | Record) -> Path:
        """Path of the record of a cell, which need not exist; :class:`RecordError` for a name that
        cannot be a folder's."""
        for name in (cell.task, cell.architecture):
            check_name(name)
        return self.folder / "records" / cell.task / cell.architecture / f"{cell.key}.json"

    def check_there(self) -> None:
        """Raises :class:`RecordError` unless the folder is there and is one of results."""
        if not self.folder.is_dir():
            raise RecordError(f"--results {self.folder}: no such folder; `archbench run` writes one, or name another")
        if self.folder.resolve().name == "records" and not (self.folder / "records").is_dir():
            raise RecordError(f"--results {self.folder}: these are records; name the folder in which they lie")

    def check_writable(self) -> None:
        """Raises :class:`RecordError` unless a record can be written. Call it before computing
        anything."""
        folder = self.folder / "records"
        probe = folder / f".{uuid.uuid4().hex}.tmp"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            reason = error.strerror or error
            raise RecordError(
                f"results folder {self.folder} is not writable ({reason}): give another one with --results"
            ) from error

    def sweep(self) -> None:
        """Removes the half-written files of killed processes: records, kept models, and what cells
        keep below ``work``. Those of living processes stay, and those of other machines until
        nobody has changed them for two days."""
        for folder in ("records", "work", "models"):
            sweep(self.folder / folder)

    def write(self, record: Record) -> Path:
        """Writes a record in one step and returns its path.

        Raises :class:`RecordError`, and leaves the file there as it is, when the record is not
        sound, the disk refuses, or the file there is damaged.
        """
        path = self.path(record)
        text = record.to_json()
        try:
            Record.from_json(text)
        except RecordError as error:
            raise RecordError(f"{path} was not written: {error}") from error
        if os.path.lexists(path):
            self.read(path)
        _write(path, text.encode())
        return path

    def set_aside(self, record: Record) -> Path:
        """Renames a record and its files so that its cell counts as not run; returns the record's
        new path, which no reader looks at. It names the data and the code that made it.

        Another run may have done the same: a record that it has made since is left as it is.
        """
        code = record.code or {}
        data = hashlib.sha256(json.dumps(record.data, sort_keys=True).encode()).hexdigest()
        origin = data, code.get("architecture", ""), code.get("task", "")
        name = ".".join([record.key, "-".join(part[:8] for part in origin if part)])
        path = self.path(record)
        with suppress(RecordError):  # it is gone, or damaged since
            if self.read(path) == record:
                # The record first: one without its predictions would count, and leave every test.
                for file in (path, self._predictions_path(record), self._outcomes_path(record)):
                    with suppress(FileNotFoundError):
                        os.replace(file, file.with_name(f"{name}{file.name.removeprefix(record.key)}.old"))
        return path.with_name(f"{name}.json.old")

    def read(self, path: str | Path) -> Record:
        """The record in one file; :class:`RecordError` names the file when it is damaged or does
        not belong where it is."""
        path = Path(path)
        try:
            record = Record.from_json(read_limited(path))
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}") from error
        except RecordError as error:
            raise RecordError(f"{path}: {error}") from error
        if path.parts[-3:] != (record.task, record.architecture, f"{record.key}.json"):
            raise RecordError(f"{path}: this record belongs in {self.path(record)}")
        return record

    def all(self) -> Iterator[Record]:
        """Every sound record, by path. Neighbours share what is equal in them (:data:`SHARED`).

        Damaged files stay as they are; each is named by a warning and in :attr:`damaged`.
        """
        self.damaged = {}
        shared = _Shared()
        for path in self._files():
            try:
                yield shared.of(self.read(path))
            except RecordError as error:
                reason = str(error).encode("utf-8", "backslashreplace").decode()  # a file's name may be no UTF-8
                self.damaged[path] = reason
                warnings.warn(f"record skipped: {reason}", stacklevel=2)

    def _files(self) -> Iterator[Path]:
        """Whatever is named like a record, by path. The folder of a task may be a link, as
        :meth:`find` has it."""
        for folder, dirs, names in os.walk(self.folder / "records", followlinks=True):
            dirs.sort()
            here = Path(folder)
            yield from (here / name for name in sorted(dirs + names) if name.endswith(".json"))

    def find(self, cell: Cell) -> Record | None:
        """The record of ``cell``, if there is one; :class:`RecordError` when the file in its place
        is damaged."""
        path = self.path(cell)
        return self.read(path) if os.path.lexists(path) else None

    def save_predictions(self, cell: Cell | Record, ids: Sequence[str], predictions: Sequence[Any]) -> Predictions:
        """Writes the predictions of a cell, one per example id, to a file next to its record;
        returns the record's ``predictions`` field.

        Raises :class:`RecordError` for ids that are not unique, another number of predictions, and
        values that JSON cannot hold.
        """
        path = self._predictions_path(cell)
        if len(ids) != len(predictions) or len(set(ids)) != len(ids):
            raise RecordError(
                f"{path}: {len(predictions)} predictions for {len(ids)} ids, {len(set(ids))} of them different"
            )
        content = {"ids": list(ids), "predictions": list(predictions)}
        try:
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except (ValueError, TypeError) as error:
            raise RecordError(f"{path}: {not_json(content) or error}") from error
        data = lzma.compress(text.encode())
        _write(path, data)
        return {"path": path.relative_to(self.folder).as_posix(), "sha256": hashlib.sha256(data).hexdigest()}

    def load_predictions(self, record: Record) -> tuple[list[str], list[Any]]:
        """Example ids and their predictions, in the order of the file.

        Raises :class:`RecordError` when there are none or the file is not the recorded one.
        """
        path = self._predictions_path(record)
        if record.predictions is None:
            raise RecordError(f"{self.path(record)}: the record names no predictions")
        try:
            data = read_limited(path)
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}; the record names it") from error
        digest = hashlib.sha256(data).hexdigest()
        if digest != record.predictions["sha256"]:
            raise RecordError(f"{path}: SHA-256 is {digest}, the record says {record.predictions['sha256']}")
        try:
            content = parse_json(unpack(lzma.LZMADecompressor(memlimit=MAX_UNPACKED_BYTES), data))
            ids, predictions = content["ids"], content["predictions"]
            if (
                not are_texts(ids)
                or not isinstance(predictions, list)
                or len(set(ids)) != len(predictions)
                or len(ids) != len(predictions)
            ):
                raise ValueError("not one prediction for each of a list of ids")
            if bad := not_json(predictions, "predictions"):
                raise ValueError(bad)
        except (lzma.LZMAError, EOFError, MemoryError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise RecordError(
                f"{path}: not predictions of archbench ({type(error).__name__}: {str(error)[:200]})"
            ) from error
        return ids, predictions

    def save_outcomes(
        self, cell: Cell | Record, predictions: Predictions, ids: Sequence[str], outcomes: Outcomes
    ) -> Path:
        """Writes the outcomes of a cell's predictions, which were for the examples ``ids``, to a
        file next to its record; returns the path."""
        path = self._outcomes_path(cell)
        content = {"predictions": predictions["sha256"]} | outcomes.to_json(list(ids))
        try:
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except (ValueError, TypeError) as error:
            raise RecordError(f"{path}: {not_json(content) or error}") from error
        _write(path, gzip.compress(text.encode(), mtime=0))
        return path

    def load_outcomes(self, record: Record, units: Sequence[str] | None = None) -> Outcomes | None:
        """Outcomes of the record's test units; None when there is no such file or it was made from
        other predictions.

        With ``units``, the ids of another record of the same test data, the predictions need not be
        read. Raises :class:`RecordError` when the file is damaged.
        """
        path = self._outcomes_path(record)
        if record.predictions is None or not path.exists():
            return None
        try:
            content = parse_json(unpack(zlib.decompressobj(wbits=31), read_limited(path)))
            if content["predictions"] != record.predictions["sha256"]:
                return None
            units = units or content["units"] or self.load_predictions(record)[0]
            if not are_texts(units):
                raise ValueError("units is not a list of texts")
            return Outcomes.from_json(content, list(units))
        except (
            OSError,
            EOFError,
            zlib.error,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            raise RecordError(
                f"{path}: not outcomes of archbench ({str(error)[:200]}); `archbench rescore` makes them again"
            ) from error

    def _predictions_path(self, cell: Cell | Record) -> Path:
        return self.path(cell).with_suffix(".predictions.json.xz")

    def _outcomes_path(self, cell: Cell | Record) -> Path:
        return self.path(cell).with_suffix(".outcomes.json.gz")


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise RecordError(f"{path} could not be written: {error}") from error

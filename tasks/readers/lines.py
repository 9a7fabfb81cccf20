"""Text files of a corpus, plain or gzipped, read as numbered lines of UTF-8."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.task import DataError


def present(folder: Path, name: str) -> Path | None:
    """Path of ``name`` or ``name.gz`` below ``folder``, or None when neither is a file."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def find(folder: Path, name: str) -> Path:
    """Path of ``name`` or ``name.gz`` below ``folder``; :class:`DataError` when neither is a file."""
    path = present(folder, name)
    if path is None:
        raise DataError(f"{folder / name}: no such file (nor {name}.gz); --data-dir must be the folder that holds {folder.name}/")
    return path


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers (from 1) and lines without their end; only a line feed ends a line, so other Unicode breaks stay inside one.

    Raises :class:`DataError` for a truncated or damaged ``.gz`` and for bytes that are not UTF-8.
    """
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                yield number, raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: byte 0x{error.object[error.start]:02x} is not UTF-8") from error
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read after line {number} ({error}); the file is truncated or damaged") from error


def parse_json(path: Path) -> Any:
    """Value of a JSON file; :class:`DataError` with the line when it is not JSON."""
    text = "\n".join(line for _, line in lines(path))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error

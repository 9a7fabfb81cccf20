"""Fitted views and encoded columns as files, which a cell reads again if they are sound."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from harness.ragged import Columns, Ragged


def sound(file: Path | None, read: Callable[[Path], Any]) -> Any:
    """Content of a cached file; None when there is none or it is damaged (it is made again)."""
    if file is None or not file.exists():
        return None
    try:
        return read(file)
    except (OSError, EOFError, ValueError, KeyError) as error:
        print(f"{file} is damaged ({error}): made again")
        return None


def write_state(path: Path, state: dict[str, Any]) -> None:
    text = json.dumps(state)
    path.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")


def read_state(path: Path) -> dict[str, Any]:
    digest, _, text = path.read_text().partition("\n")
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise ValueError("its digest is another")
    return json.loads(text)


def save(folder: Path, columns: Columns) -> None:
    """One file per array, so that processes can map them into memory and share them."""
    arrays: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        if isinstance(column, Ragged):
            arrays[f"{name}.values"], arrays[f"{name}.offsets"] = column.values, column.offsets
        else:
            arrays[name] = column
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "checksums.json").write_text(json.dumps({name: _checksum(array) for name, array in arrays.items()}))


def restore(folder: Path) -> Columns:
    checksums = json.loads((folder / "checksums.json").read_text())
    # As plain arrays: numpy's class for mapped ones takes 30 microseconds for each index, of which
    # every batch has several.
    arrays = {
        name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)) for name in checksums
    }
    if wrong := [name for name, array in arrays.items() if _checksum(array) != checksums[name]]:
        raise ValueError(f"{wrong[0]}.npy has another checksum")
    return _columns(arrays, arrays.__getitem__)


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)


def _columns(names: Iterable[str], read: Callable[[str], np.ndarray]) -> Columns:
    columns: Columns = {}
    for name in names:
        stem, _, part = name.partition(".")
        if part == "values":
            columns[stem] = Ragged(read(name), read(f"{stem}.offsets"))
        elif not part:
            columns[stem] = read(name)
    return columns

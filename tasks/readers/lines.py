"""Text files of a corpus, plain or gzipped, read as numbered lines, and the JSON in them."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.errors import DataError, MissingFile
from harness.files import check_characters

LONGEST_LINE = 1 << 26
"""Bytes that a line may have; SQuAD's training set is one line of 42 million."""
LARGEST_TEXT = 1 << 30
"""Bytes that a file may have, unpacked; SNLI's training set has 466 million."""
HIGHEST_RATIO, SMALL_TEXT = 50, 1 << 24
"""A gzipped file that unpacks to more than 50 times its size, and to more than 16 MiB, is no text
(which shrinks to a third or a fifth)."""


def present(folder: Path, name: str) -> Path | None:
    """Path of ``name`` or ``name.gz`` below ``folder``, or None when neither is a file."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def find(folder: Path, name: str) -> Path:
    """Path of ``name`` or ``name.gz`` below ``folder``; :class:`DataError` when neither is a
    file."""
    path = present(folder, name)
    if path is None:
        raise MissingFile(
            f"{folder / name}: no such file (nor {name}.gz); --data-dir must be the folder that holds {folder.name}/"
        )
    return path


def lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Line numbers (from 1) and lines without their end; only a line feed ends a line, so other
    Unicode breaks stay inside one. A byte order mark of UTF-8 is no part of the first line.

    ``encoding`` is Python's name of one in which a line feed is one byte, such as ``cp1252`` or
    ``latin-1``. Raises :class:`DataError` for a truncated or damaged ``.gz``, for bytes that are
    not of this encoding, and for a line or a file larger than the limits above.
    """
    number, size = 0, 0
    check_encoding(encoding)
    try:
        most = _most(path)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while raw := file.readline(min(LONGEST_LINE, most) + 1):
                number, size = number + 1, size + len(raw)
                if len(raw) > LONGEST_LINE or size > most:
                    limit = (
                        f"{LONGEST_LINE:,} bytes in a line"
                        if len(raw) > LONGEST_LINE
                        else f"the {most:,} bytes that it may unpack to"
                    )
                    raise DataError(f"{path}, line {number}: more than {limit}; this is not the corpus's file")
                if number == 1:
                    raw = without_mark(raw)
                yield number, raw.decode(encoding).removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise undecodable(f"{path}, line {number}", encoding, error) from error
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{path}: cannot be read after line {number} ({error}); the file is truncated or damaged"
        ) from error


def unzipped(path: Path) -> bytes:
    """Content of a gzipped file; :class:`DataError` for one that is missing, truncated or damaged,
    or larger than the limits above."""
    try:
        most = _most(path)
        with gzip.open(path) as file:
            content = file.read(most + 1)
    except FileNotFoundError as error:
        raise MissingFile(
            f"{path}: no such file; --data-dir must be the folder that holds {path.parent.name}/"
        ) from error
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error}); the file is truncated or damaged") from error
    if len(content) > most:
        raise DataError(f"{path}: more than the {most:,} bytes that it may unpack to; this is not the corpus's file")
    return content


def _most(path: Path) -> int:
    """Bytes that a text file may have, unpacked."""
    return min(LARGEST_TEXT, max(SMALL_TEXT, HIGHEST_RATIO * path.stat().st_size))


def without_mark(raw: bytes) -> bytes:
    """The beginning of a file without the byte order mark of UTF-8, which Windows puts there."""
    return raw.removeprefix(codecs.BOM_UTF8)


def check_encoding(encoding: str) -> None:
    """Raise :class:`DataError` for an encoding that Python does not know, or in which a line feed
    is not one byte."""
    try:
        usable = "a\n".encode(encoding).endswith(b"a\n")
    except LookupError:
        usable = False
    if not usable:
        raise DataError(f"encoding={encoding!r}: not the name of an encoding such as utf-8, cp1252 or latin-1")


def undecodable(where: str, encoding: str, error: UnicodeDecodeError) -> DataError:
    """The error for a byte that is not of the encoding."""
    name = "UTF-8" if encoding == "utf-8" else encoding
    return DataError(
        f"{where}: byte 0x{error.object[error.start]:02x} is not {name}; a reader is told of another encoding by its"
        ' argument, such as encoding="cp1252"'
    )


def parse_json(path: Path) -> Any:
    """Value of a JSON file; :class:`DataError` with the line when it is not JSON."""
    text = "\n".join(line for _, line in lines(path))
    try:
        return json_value(text, str(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error


def json_value(text: str, where: str) -> Any:
    """Value of a JSON text.

    Raises ``JSONDecodeError`` where it is not JSON, and :class:`DataError` where it is JSON that
    cannot be used: nested without end, a number of thousands of digits, or half of a surrogate
    pair, which no UTF-8 file and no hash of a text can hold.
    """
    try:
        value = json.loads(text)
        check_characters(text, value)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise DataError(f"{where}: its JSON is nested too deeply to be read") from None
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where}: \\u{ord(error.object[error.start]):04x} is half of a surrogate pair, not a character"
        ) from error
    except ValueError as error:
        raise DataError(f"{where}: {error}; no number of the corpus is as long") from error
    return value


def text(value: Any, name: str) -> str:
    """``value`` of the field ``name``, if it is a string; ``TypeError`` says what else it is."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a {type(value).__name__}, not a string")
    return value


def json_texts(path: Path, *names: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and the texts of the named fields of each line of a file of JSON lines.

    Raises :class:`DataError` for a line that is not a JSON object with these fields.
    """
    for number, line in lines(path):
        try:
            value = json_value(line, f"{path}, line {number}")
            yield number, [text(value[name], name) for name in names]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            expected = f"a JSON object with {', '.join(names[:-1])} and {names[-1]}"
            raise DataError(f"{path}, line {number}: {type(error).__name__} {error}; expected {expected}") from error

"""Text files in any encoding as numbered lines."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from harness.errors import DataError, MissingFile

CHUNK = 1 << 20
"""Bytes that are read at a time."""
LONGEST_LINE = 1 << 26
"""Characters that a line may have; a file with a longer one is no text."""
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16's mark, with which it begins
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


def marked(beginning: bytes) -> tuple[str, int] | None:
    """The encoding that a byte order mark tells, and the mark's length; None without one."""
    found = next((mark for mark in MARKS if beginning.startswith(mark)), None)
    return (MARKS[found], len(found)) if found else None


def lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Line numbers (from 1) and lines with their ends; only a line feed ends a line.

    A byte order mark tells the encoding better than ``encoding`` does, and is no part of the first
    line. Raises :class:`DataError` with the line for bytes that are not of the encoding, for NUL
    characters, for a line that is too long, and for a file whose lines all end with a carriage
    return alone.
    """
    try:
        with path.open("rb") as file:
            yield from lines_in(file, path, encoding)
    except FileNotFoundError as error:
        raise MissingFile(f"{path}: no such file; names are read from the folder of the TOML file") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error


def lines_in(file: BinaryIO, name: object, encoding: str) -> Iterator[tuple[int, str]]:
    """:func:`lines` of an open file, from where it stands on; messages call it by its ``name``."""
    number, rest = 1, ""  # rest is a line whose end has not been read yet
    begin = file.tell()
    mark = marked(file.read(4))
    if mark:
        encoding = mark[0]
    file.seek(begin + mark[1] if mark else begin)
    decoder = codecs.getincrementaldecoder(encoding)()
    while True:
        try:
            raw = file.read(CHUNK)
            text = decoder.decode(raw, not raw)
        except OSError as error:
            raise DataError(f"{name}: cannot be read after line {number} ({error})") from error
        except UnicodeError as error:
            raise _undecodable(name, number, rest, encoding, error) from error
        if "\0" in text:
            line = number + (rest + text.partition("\0")[0]).count("\n")
            raise DataError(
                f"{name}, line {line}: a NUL character; the file is no text, or of an encoding that was not"
                ' given, such as encoding = "utf-16-le"'
            )
        *whole, rest = (rest + text).split("\n")
        if len(rest) > LONGEST_LINE:
            raise DataError(f"{name}, line {number + len(whole)}: more than {LONGEST_LINE:,} characters")
        for each in whole:
            yield number, each + "\n"
            number += 1
        if not raw:
            break
    if rest:
        if number == 1 and "\r" in rest.rstrip("\r"):
            raise DataError(
                f"{name}: its lines end with a carriage return alone, as old Macs wrote them; write them with line"
                " feeds, such as by tr '\\r' '\\n'"
            )
        yield number, rest


def _undecodable(name: object, number: int, rest: str, encoding: str, error: UnicodeError) -> DataError:
    found = ""
    if isinstance(error, UnicodeDecodeError):
        number += (rest + error.object[: error.start].decode(encoding, "ignore")).count("\n")
        found = f"byte 0x{error.object[error.start]:02x} "
    return DataError(
        f"{name}, line {number}: {found}is not {encoding}; say the encoding in [data], such as"
        ' encoding = "cp1252" (Windows), "latin-1" or "utf-16"'
    )


def guessed_encoding(path: Path) -> tuple[str, str]:
    """The encoding of a file, and the reason for it in words: its byte order mark, else UTF-8 if
    all of it is, else one that can be read. Raises :class:`DataError` for a file that cannot be
    opened."""
    try:
        with path.open("rb") as file:
            beginning = file.read(CHUNK)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    if mark := marked(beginning):
        return mark[0], "a byte order mark says so"
    zeros = [beginning[place::2].count(0) for place in (0, 1)]
    if sum(zeros) > len(beginning) / 5:  # Latin letters have a zero beside them
        return ("utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"), "every other byte is zero: a guess"
    for encoding in ("utf-8", "cp1252"):
        if _is_all(path, encoding):
            return encoding, "every byte is" if encoding == "utf-8" else "not UTF-8: a guess, look at accents"
    return "latin-1", "neither UTF-8 nor cp1252: a guess, look at accents"


def _is_all(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        try:
            while raw := file.read(CHUNK):
                decoder.decode(raw)
            decoder.decode(b"", True)
        except UnicodeDecodeError:
            return False
    return True

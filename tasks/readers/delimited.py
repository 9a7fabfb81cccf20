"""Comma- and tab-separated files; ``encoding`` is as in :func:`tasks.readers.lines.lines`."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import DataError
from tasks.readers.lines import lines


def comma_separated(path: Path, columns: int, encoding: str = "utf-8") -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each row of a quoted CSV file without header.

    Raises :class:`DataError` for a row that has not ``columns`` fields, and for broken quotes.
    """
    rows = csv.reader((f"{line}\n" for _, line in lines(path, encoding)), strict=True)
    try:
        for fields in rows:
            if len(fields) != columns:
                raise DataError(
                    f"{path}, line {rows.line_num}: {len(fields)} columns instead of {columns}: {fields!r:.80}"
                )
            yield rows.line_num, fields
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: {error}; fields must be quoted as in CSV") from error


def tab_separated(path: Path, header: Sequence[str], encoding: str = "utf-8") -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and fields by name of each row of an unquoted TSV file whose first line is
    ``header``.

    Raises :class:`DataError` for another header and for a row with more or fewer fields.
    """
    for number, line in lines(path, encoding):
        fields = line.split("\t")
        if number == 1 and fields != list(header):
            raise DataError(f"{path}, line 1: the header is {line[:120]!r}, expected {chr(9).join(header)!r}")
        if len(fields) != len(header):
            raise DataError(f"{path}, line {number}: {len(fields)} columns instead of {len(header)}: {line[:80]!r}")
        if number > 1:
            yield number, dict(zip(header, fields, strict=True))

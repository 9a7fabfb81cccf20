"""Texts of a user as rows: lines, CSV, JSONL or recordings, one at a time.

A line that cannot be read is told with its number, and the next one is read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from harness.errors import Named, UsageError
from harness.files import parse_json, read_limited
from harness.rows import FORMS, Row
from harness.user_data.description import ENDINGS
from harness.views.base import words_of

LONGEST_LINE = 1 << 24
"""Longest line of a text, in bytes: a longer one is passed over, so that memory stays bounded."""

SUFFIXES = {end: form for end, form in ENDINGS.items() if form in ("csv", "tsv", "jsonl")} | {".wav": "wav"}
"""Format of a file by the end of its name; others hold lines."""


class Asked(NamedTuple):
    """A question of the user: the number of its line, from 1, the name that the user has for it,
    and the row; or the fault for which there is none."""

    line: int
    name: str | None
    row: Row | None
    fault: str = ""


class Wanted(NamedTuple):
    """Columns that a model needs, each with its form; those among them whose texts come as words
    that blanks part (``apart``); and the columns of the file in whose place they stand, where those
    have other names. ``source`` is the name of the file."""

    forms: Mapping[str, str]
    source: str
    apart: frozenset[str] = frozenset()
    names: Mapping[str, str] = {}

    def name(self, column: str) -> str:
        """The user's name of a column."""
        return self.names.get(column, column)


def asked(stream: BinaryIO, form: str, wanted: Wanted) -> Iterator[Asked]:
    """The questions in a stream, of one of the forms :data:`READERS`.

    :class:`~harness.errors.UsageError` for a table without a column that is needed.
    """
    return (_asked(line, values, fault, wanted) for line, values, fault in READERS[form](stream, wanted))


def questions(values: Iterable[Any], wanted: Wanted) -> Iterator[Asked]:
    """The questions in mappings by column, numbered from 0; where one column is needed, a text
    alone will do."""
    return (_asked(number, *_by_key(value, wanted), wanted) for number, value in enumerate(values))


def _asked(line: int, values: Mapping[str, Any], fault: str, wanted: Wanted) -> Asked:
    """The question that a line's values hold, or what is wrong with them."""
    if not fault:
        try:
            row = {name: _value(values[name], name, wanted) for name in wanted.forms}
            name = values.get("id")
            return Asked(line, None if name is None else str(name), {"id": str(line)} | row)
        except (ValueError, OSError) as error:
            fault = str(error)
    return Asked(line, None, None, fault)


def _value(given: Any, column: str, wanted: Wanted) -> Any:
    """A value of the form that the model reads; ``ValueError`` for what cannot be one."""
    form, value = wanted.forms[column], given
    if isinstance(given, str):
        if not given.strip():
            raise ValueError(f"{wanted.name(column)} is empty")
        if form == "words":
            value = given.split() if column in wanted.apart else words_of(given)
        elif form == "texts":
            value = given.splitlines()
        elif form == "audio":
            value = {"bytes": read_limited(Path(given)), "path": given}
    elif form == "string" and FORMS["words"].fit([given], [{}]):
        value = " ".join(given)
    if not FORMS[form].fit([value], [{column: value}]) or not value:
        raise ValueError(f"{wanted.name(column)} is {given!r:.60}, expected {FORMS[form].wanted}")
    return value


Read = tuple[int, dict[str, Any], str]
"""A line's number, the values by column, and the fault of a line without any."""


def _lines(stream: BinaryIO) -> Iterator[tuple[int, str, str]]:
    """Number, text and fault of each line, without its end."""
    number = 0
    while raw := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(raw) > LONGEST_LINE:
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(LONGEST_LINE + 1)
            yield number, "", f"more than {LONGEST_LINE:,} bytes in a line"
            continue
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            yield number, "", f"byte 0x{raw[error.start]:02x} at place {error.start + 1} is not UTF-8"
            continue
        yield number, text.rstrip("\r\n"), ""


def _read_lines(stream: BinaryIO, wanted: Wanted) -> Iterator[Read]:
    """A text a line; several columns are parted by tabs, and of a list all but the last of them are
    its members."""
    columns = list(wanted.forms)
    for number, text, fault in _lines(stream):
        parts = text.split("\t") if len(columns) > 1 else [text]
        if not fault and len(columns) == 2 and wanted.forms[columns[0]] == "texts" and len(parts) > 1:
            parts = ["\n".join(parts[:-1]), parts[-1]]
        if not fault and len(parts) != len(columns):
            fault = f"{len(parts)} parts, expected {' and '.join(columns)} with a tab between"
        yield number, {} if fault else dict(zip(columns, parts, strict=True)), fault


def _read_table(stream: BinaryIO, wanted: Wanted, delimiter: str = ",") -> Iterator[Read]:
    """A table whose first line names the columns; a value in quotes may have several lines."""
    bad: list[tuple[int, str]] = []
    begin = 0  # line in which the cells begin that are being read

    def texts() -> Iterator[str]:
        nonlocal begin
        for number, text, fault in _lines(stream):
            if fault:
                bad.append((number, fault))
            else:
                begin = begin or number
                yield text + "\n"

    csv.field_size_limit(LONGEST_LINE)
    rows = csv.reader(texts(), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        begin = 0
        try:
            cells = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            yield begin, {}, str(error)
            continue
        finally:
            faults, bad[:] = bad[:], []
        yield from ((number, {}, fault) for number, fault in faults)
        if header is None:
            header = cells
            _require_columns(header, wanted)
        elif len(cells) != len(header):
            yield begin, {}, f"{len(cells)} cells, and the first line has {len(header)}" if cells else "an empty line"
        else:
            yield begin, _by_column(dict(zip(header, cells, strict=True)), wanted), ""
    yield from ((number, {}, fault) for number, fault in faults)


def _require_columns(header: list[str], wanted: Wanted) -> None:
    missing = [column for column in wanted.forms if wanted.name(column) not in header]
    if missing:
        lacking = ", ".join(wanted.name(column) for column in missing)
        raise UsageError(
            f"{wanted.source}: no column {lacking} (found: {', '.join(header)[:200]}); name the one that is meant with"
            f" --column {missing[0]}=NAME"
        )


def _by_column(values: Mapping[str, Any], wanted: Wanted) -> dict[str, Any]:
    found = {column: values[wanted.name(column)] for column in wanted.forms}
    return {"id": values["id"]} | found if "id" in values and "id" not in wanted.names.values() else found


def _read_objects(stream: BinaryIO, wanted: Wanted) -> Iterator[Read]:
    """A JSON object a line, with the columns as keys; of one column a text alone will do."""
    for number, text, told in _lines(stream):
        values: dict[str, Any] = {}
        fault = told
        if not fault:
            try:
                values, fault = _by_key(parse_json(text), wanted)
            except (ValueError, RecursionError) as error:
                fault = f"no JSON: {error}"
        yield number, values, fault


def _by_key(value: Any, wanted: Wanted) -> tuple[dict[str, Any], str]:
    """The columns in a mapping, or in a text that is the only one, and what is wrong with it."""
    columns = list(wanted.forms)
    if isinstance(value, str) and len(columns) == 1:
        return {columns[0]: value}, ""
    if not isinstance(value, Mapping):
        return {}, f"a {type(value).__name__}, expected an object with {', '.join(map(wanted.name, columns))}"
    missing = [wanted.name(column) for column in columns if wanted.name(column) not in value]
    return ({}, f"no {', '.join(missing)}") if missing else (_by_column(value, wanted), "")


def _read_recording(stream: BinaryIO, wanted: Wanted) -> Iterator[Read]:
    """One recording, the whole stream."""
    columns = [column for column, form in wanted.forms.items() if form == "audio"]
    if len(columns) != 1 or len(wanted.forms) != 1:
        raise UsageError(f"{wanted.source}: a recording, and this model reads {', '.join(wanted.forms)}")
    yield 1, {columns[0]: {"bytes": stream.read(), "path": wanted.source}}, ""


READERS: Named[Any] = Named(
    "format",
    lines=_read_lines,
    csv=_read_table,
    tsv=lambda stream, wanted: _read_table(stream, wanted, "\t"),
    jsonl=_read_objects,
    wav=_read_recording,
)
"""Readers of each format: of a stream to the values of each line."""

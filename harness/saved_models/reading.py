"""Texts of a user as rows: lines, tables, JSONL, CoNLL columns or recordings, one at a time.

A line that cannot be read is told with its number, and the next one is read.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from harness.errors import DataError, Named, UsageError
from harness.files import parse_json, read_limited
from harness.rows import FORMS, Row
from harness.saved_models.folder import describe
from harness.user_data.description import DELIMITERS, ENDINGS, Column, Manner
from harness.user_data.raw_tables import AT_ONCE, batch_rows, sentences_in
from harness.user_data.text import lines_in, marked
from harness.views.base import words_of

LONGEST_LINE = 1 << 24
"""Longest line of a text, in bytes: a longer one is passed over, so that memory stays bounded."""

SUFFIXES: dict[str, str] = {**ENDINGS, ".wav": "wav"}
"""Format of a file by the end of its name; others hold lines."""


class Asked(NamedTuple):
    """A question of the user: the number of its line, from 1, the name that the user has for it,
    and the row; or the fault for which there is none."""

    line: int
    name: str | None
    row: Row | None
    fault: str = ""


class Wanted(NamedTuple):
    """Columns that a model needs of the file ``source``, each with its form; those among them whose
    texts come as words that blanks part (``apart``); and the manner in which the file is read."""

    forms: Mapping[str, str]
    source: str
    apart: frozenset[str] = frozenset()
    manner: Manner = Manner("lines")

    def name(self, column: str) -> Column:
        """The user's name of a column, or its number from 1."""
        return self.manner.names.get(column, column)

    @property
    def columns(self) -> list[str]:
        """Columns that are read: those that are needed, and the user's names of rows unless one of
        those stands there."""
        needed = list(self.forms)
        return needed if self.name("id") in map(self.name, needed) else ["id", *needed]


def manner_of(file: Path, model: Path) -> Manner:
    """The manner in which the user's files with the ending of ``file`` were read that the kept
    model in a folder learnt from; where there are none, that of the ending."""
    ending = file.suffix.lower()
    found = describe(model).origin.manners.get(ending)
    return Manner(SUFFIXES.get(ending, "lines")) if found is None else found


def asked(stream: BinaryIO, wanted: Wanted) -> Iterator[Asked]:
    """The questions in a stream, of one of the formats :data:`READERS`.

    :class:`~harness.errors.UsageError` for a table without a column that is needed.
    """
    lines = READERS[wanted.manner.format](stream, wanted)
    return (_asked(line, values, fault, wanted) for line, values, fault in lines)


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
            folder = Path(wanted.source).parent if wanted.manner.beside else Path()
            value = {"bytes": read_limited(folder / given), "path": given}
    elif form == "string" and FORMS["words"].fit([given], [{}]):
        value = " ".join(given)
    if not FORMS[form].fit([value], [{column: value}]) or not value:
        raise ValueError(f"{wanted.name(column)} is {given!r:.60}, expected {FORMS[form].wanted}")
    return value


Read = tuple[int, dict[str, Any], str]
"""A line's number, the values by column, and the fault of a line without any."""


def _lines(stream: BinaryIO, wanted: Wanted) -> Iterator[tuple[int, str, str]]:
    """Number, text and fault of each line, without its end; :class:`~harness.errors.DataError` for
    a fault in an encoding such as UTF-16, in which no byte tells where the next line begins. As in
    training, a byte order mark tells the encoding better than the manner does."""
    encoding = wanted.manner.written.encoding
    if stream.seekable():
        begin = stream.tell()  # whoever gives the stream may have read a header
        mark = marked(stream.read(4))
        stream.seek(begin)
        encoding = mark[0] if mark else encoding
    if "\n".encode(encoding) != b"\n":
        yield from ((number, text.rstrip("\r\n"), "") for number, text in lines_in(stream, wanted.source, encoding))
        return
    number = 0
    while raw := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(raw) > LONGEST_LINE:
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(LONGEST_LINE + 1)
            yield number, "", f"more than {LONGEST_LINE:,} bytes in a line"
            continue
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            raw, encoding = raw.removeprefix(codecs.BOM_UTF8), "utf-8"
        if b"\0" in raw:
            yield number, "", "a NUL character: no text, or UTF-16, which is read from a file that begins with its mark"
            continue
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError as error:
            yield number, "", f"byte 0x{raw[error.start]:02x} at place {error.start + 1} is not {encoding.upper()}"
            continue
        yield number, text.rstrip("\r\n"), ""


def _read_lines(stream: BinaryIO, wanted: Wanted) -> Iterator[Read]:
    """A text a line; several columns are parted by tabs, and of a list all but the last of them are
    its members."""
    columns = list(wanted.forms)
    for number, text, fault in _lines(stream, wanted):
        parts = text.split("\t") if len(columns) > 1 else [text]
        if not fault and len(columns) == 2 and wanted.forms[columns[0]] == "texts" and len(parts) > 1:
            parts = ["\n".join(parts[:-1]), parts[-1]]
        if not fault and len(parts) != len(columns):
            fault = f"{len(parts)} parts, expected {' and '.join(columns)} with a tab between"
        yield number, {} if fault else dict(zip(columns, parts, strict=True)), fault


def _read_table(stream: BinaryIO, wanted: Wanted) -> Iterator[Read]:
    """A table whose first line names the columns, if it has a header; a value in quotes may have
    several lines."""
    bad: list[tuple[int, str]] = []
    begin = 0  # line in which the cells begin that are being read

    def texts() -> Iterator[str]:
        nonlocal begin
        for number, text, fault in _lines(stream, wanted):
            if fault:
                bad.append((number, fault))
            else:
                begin = begin or number
                yield text + "\n"

    def told() -> Iterator[Read]:
        yield from ((number, {}, fault) for number, fault in bad)
        bad.clear()

    csv.field_size_limit(LONGEST_LINE)
    written, form = wanted.manner.written, wanted.manner.format
    delimiter = written.delimiter or DELIMITERS[form]
    quoted = form == "csv" if written.quotes is None else written.quotes  # as at training, see Source.dialect_of
    rows = csv.reader(
        texts(), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE, strict=True
    )
    header: list[str] = []
    places: dict[str, int] = {}
    while True:
        begin = 0
        try:
            cells, fault = next(rows), ""
        except StopIteration:
            break
        except csv.Error as error:
            fault = str(error)
        if not fault and any(number > begin for number, _ in bad):
            fault = "a line of it cannot be read"
        if (bad or fault) and not places and wanted.manner.written.header:  # the next row would be taken for it
            number, why = bad[0] if bad else (begin, fault)
            raise DataError(f"{wanted.source}, line {number}: {why}; the names of the columns cannot be read")
        yield from told()
        if fault:
            yield begin, {}, fault
            continue
        if not places:
            if not cells:  # blank lines before the first row are none, as at training
                continue
            header = [cell.strip() for cell in cells]
            places = _places(header if wanted.manner.written.header else [], len(cells), wanted)
            if wanted.manner.written.header:
                continue
        if len(cells) != len(header):
            yield begin, {}, f"{len(cells)} cells, and the first line has {len(header)}" if cells else "an empty line"
        else:
            yield begin, {column: cells[place] for column, place in places.items()}, ""
    yield from told()


def _places(header: list[str], count: int, wanted: Wanted) -> dict[str, int]:
    """The places among ``count`` cells of the columns that are read, each by its name or its number
    from 1."""
    found: dict[str, int] = {}
    for column in wanted.columns:
        name = str(wanted.name(column))
        if name in header and isinstance(wanted.name(column), str):
            found[column] = header.index(name)
        elif name.isdecimal() and 1 <= int(name) <= count:
            found[column] = int(name) - 1
    if missing := [column for column in wanted.forms if column not in found]:
        lacking = ", ".join(str(wanted.name(column)) for column in missing)
        there = ", ".join(header)[:200] or f"{count} without names"
        raise UsageError(
            f"{wanted.source}: no column {lacking} (found: {there}); name the one that is meant with"
            f" --column {missing[0]}=NAME, or =NUMBER from 1"
        )
    return found


def _read_objects(stream: BinaryIO, wanted: Wanted) -> Iterator[Read]:
    """A JSON object a line, with the columns as keys; of one column a text alone will do."""
    for number, text, told in _lines(stream, wanted):
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
    columns, names = list(wanted.forms), {column: wanted.name(column) for column in wanted.columns}
    if isinstance(value, str) and len(columns) == 1:
        return {columns[0]: value}, ""
    if not isinstance(value, Mapping):
        wanted_names = ", ".join(str(names[column]) for column in columns)
        return {}, f"a {type(value).__name__}, expected an object with {wanted_names}"
    if missing := [str(names[column]) for column in columns if names[column] not in value]:
        return {}, f"no {', '.join(missing)}"
    return {column: value[name] for column, name in names.items() if name in value}, ""


def _read_rows(stream: BinaryIO, wanted: Wanted) -> Iterator[Read]:
    """A Parquet file, the whole stream: its rows, from 1."""
    import pyarrow
    import pyarrow.parquet

    done = 0
    try:
        file = pyarrow.parquet.ParquetFile(stream)
        names = file.schema_arrow.names
        chosen = {column: names[place] for column, place in _places(names, len(names), wanted).items()}
        for batch in file.iter_batches(AT_ONCE, columns=list(chosen.values())):
            for number, values in batch_rows(batch, list(chosen.values()), done + 1):
                yield number, dict(zip(chosen, values, strict=True)), ""
            done += len(batch)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{wanted.source}, row {done + 1} or after it: not a whole Parquet file ({error!s:.200})"
        ) from error


def _read_sentences(stream: BinaryIO, wanted: Wanted) -> Iterator[Read]:
    """CoNLL columns: a word a line, a blank line behind each sentence. The words are in the first
    column where nobody says another."""

    def texts() -> Iterator[tuple[int, str]]:
        for number, text, fault in _lines(stream, wanted):
            if fault:  # its sentence would lack a word
                raise DataError(f"{wanted.source}, line {number}: {fault}")
            yield number, text

    places: dict[str, int] = {}
    for number, words in sentences_in(wanted.source, texts()):
        if not places:
            first: dict[str, Column] = dict.fromkeys(wanted.forms, 1) if len(wanted.forms) == 1 else {}
            manner = replace(wanted.manner, names=first | wanted.manner.names)
            places = _places([], len(words[0]), wanted._replace(manner=manner))
        yield number, {column: [fields[place] for fields in words] for column, place in places.items()}, ""


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
    tsv=_read_table,
    jsonl=_read_objects,
    parquet=_read_rows,
    conll=_read_sentences,
    wav=_read_recording,
)
"""Readers of each format: of a stream to the values of each line."""

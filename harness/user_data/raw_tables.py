"""Data files of all formats as cells: for each row its place, and the values of the wanted
columns."""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import DataError, MissingFile, did_you_mean
from harness.files import parse_json
from harness.user_data.description import Column, Source
from harness.user_data.text import LONGEST_LINE, lines

if TYPE_CHECKING:
    import pyarrow

AT_ONCE = 4096
"""Rows that are read at a time of a file that lies there by columns."""
DOCUMENT = "-DOCSTART-"


class Cells(NamedTuple):
    """The columns of a file (empty where they have numbers alone), the word for a row's place
    ("line"), and its rows: the number of each, and the values of the wanted columns."""

    columns: list[str]
    unit: str
    rows: Iterator[tuple[int, Sequence[Any]]]


def read(path: Path, source: Source, wanted: Sequence[Column] | None) -> Cells:
    """Rows of a file with the values of the ``wanted`` columns, in their order; None for all.

    Values of CSV and TSV are texts, those of JSONL and Parquet what stands there. A row of CoNLL is
    a sentence, its values lists. Raises :class:`DataError` with file and line for what the format
    does not allow, and for a column that is not there.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - pathlib raises for a name that is too long
        what = "not a file" if os.path.lexists(path) else "no such file"
        raise MissingFile(f"{path}: {what}; names are read from the folder of the TOML file")
    try:
        reader = READERS[source.format_of(path)]
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    return reader(path, source, wanted)


def places_of(where: object, columns: Sequence[str], wanted: Sequence[Column] | None, count: int) -> list[int]:
    """Places from 0 of the wanted columns among ``count``; ``columns`` are their names, if they
    have any."""
    if wanted is None:
        return list(range(count))
    found = []
    for column in wanted:
        if isinstance(column, int):
            if column > count:
                raise DataError(f"{where}: no column {column}; there are {count}, counted from 1")
            found.append(column - 1)
        elif column not in columns:
            names = ", ".join(columns)
            advice = did_you_mean(column, columns, f"there are {names:.300}" if names else "columns have numbers here")
            raise DataError(f"{where}: no column {column!r:.80}; {advice}")
        else:
            if columns.count(column) > 1:
                raise DataError(f"{where}: {columns.count(column)} columns are called {column!r:.80}: say its number")
            found.append(columns.index(column))
    return found


def _delimited(path: Path, source: Source, wanted: Sequence[Column] | None) -> Cells:
    rows = _fields(path, source)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path}: the file is empty")
    header = [name.strip() for name in first[1]] if source.header else []
    count = len(first[1])
    places = places_of(f"{path}, line {first[0]}", header, wanted, count)

    def values() -> Iterator[tuple[int, Sequence[Any]]]:
        if not source.header:
            yield first[0], [first[1][place] for place in places]
        for line, fields in rows:
            if len(fields) != count:
                raise DataError(
                    f"{path}, line {line}: {len(fields)} columns instead of {count}: {fields!r:.80}; a field with a"
                    " delimiter or a quote in it must be quoted"
                )
            yield line, [fields[place] for place in places]

    return Cells(header, "line", values())


def _fields(path: Path, source: Source) -> Iterator[tuple[int, list[str]]]:
    """The line at which each row begins, and its fields; blank lines are none."""
    delimiter, quoted = source.dialect_of(path)
    texts = (text for _, text in lines(path, source.encoding))
    if not quoted:
        for number, text in enumerate(texts, 1):
            line = text.removesuffix("\n").removesuffix("\r")
            if delimiter in line or line.strip():  # a row of empty cells is a row
                yield number, line.split(delimiter)
        return
    limit = csv.field_size_limit(LONGEST_LINE)  # a document may be longer than csv's 131,072 characters
    rows, begun = csv.reader(texts, delimiter=delimiter, strict=True), 1
    try:
        while True:
            begun = rows.line_num + 1
            fields = next(rows, None)
            if fields is None:
                return
            if fields:
                yield begun, fields
    except csv.Error as error:
        raise DataError(
            f"{path}, line {begun}: the row that begins here cannot be read up to line {rows.line_num}: {error}; a"
            " quote in a field is written twice, or say quotes = false"
        ) from error
    finally:
        csv.field_size_limit(limit)


def _jsonl(path: Path, source: Source, wanted: Sequence[Column] | None) -> Cells:
    for column in wanted or ():
        if isinstance(column, int):
            raise DataError(f"{path}: columns of JSONL have names, no numbers such as {column}")
    objects = _objects(path, source)
    first = next(objects, None)
    if first is None:
        raise DataError(f"{path}: the file is empty")
    names = list(first[1]) if wanted is None else [str(column) for column in wanted]
    for name in names:
        if name not in first[1]:
            advice = did_you_mean(name, first[1], f"there are {', '.join(first[1]):.300}")
            raise DataError(f"{path}, line {first[0]}: no key {name!r:.80}; {advice}")

    def values() -> Iterator[tuple[int, Sequence[Any]]]:
        yield first[0], [first[1][name] for name in names]
        for line, found in objects:
            yield line, [found.get(name) for name in names]  # a key may be left out where there is no value

    return Cells(list(first[1]), "line", values())


def _objects(path: Path, source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, text in lines(path, source.encoding):
        if not text.strip():
            continue
        try:
            value = parse_json(text)
        except UnicodeEncodeError as error:
            raise DataError(f"{path}, line {number}: half of a surrogate pair, which is no character") from error
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}; expected one JSON object a line") from error
        except RecursionError as error:
            raise DataError(f"{path}, line {number}: nested too deeply to be read") from error
        if not isinstance(value, dict):
            raise DataError(f"{path}, line {number}: a {type(value).__name__}, expected one JSON object a line")
        yield number, value


def _parquet(path: Path, _: Source, wanted: Sequence[Column] | None) -> Cells:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        names = file.schema_arrow.names
        chosen = [names[place] for place in places_of(path, names, wanted, len(names))]
        if twice := [name for name in chosen if names.count(name) > 1]:  # read by their names, whatever was asked
            raise DataError(f"{path}: {names.count(twice[0])} columns are called {twice[0]!r:.80}; rename all but one")
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not a whole Parquet file ({error!s:.200})") from error

    def values() -> Iterator[tuple[int, Sequence[Any]]]:
        number = 1
        try:
            for batch in file.iter_batches(AT_ONCE, columns=list(dict.fromkeys(chosen))):
                yield from batch_rows(batch, chosen, number)
                number += len(batch)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise DataError(f"{path}, row {number} or after it: cannot be read ({error!s:.200})") from error

    return Cells(names, "row", values())


def batch_rows(batch: pyarrow.RecordBatch, names: Sequence[str], number: int) -> Iterator[tuple[int, Sequence[Any]]]:
    """Rows of a batch as Python values, numbered from ``number``."""
    batch.validate(full=True)
    columns = [batch.column(name).to_pylist() for name in names]
    return enumerate(zip(*columns, strict=True), number)


def _conll(path: Path, source: Source, wanted: Sequence[Column] | None) -> Cells:
    for column in wanted or ():
        if isinstance(column, str):
            raise DataError(f"{path}: columns of CoNLL have numbers from 1, no names such as {column!r:.80}")
    sentences = sentences_in(path, lines(path, source.encoding))
    first = next(sentences, None)
    if first is None:
        raise DataError(f"{path}: there is no sentence in the file")
    count = len(first[1][0])
    places = places_of(f"{path}, line {first[0]}", [], wanted, count)

    def values() -> Iterator[tuple[int, Sequence[Any]]]:
        for line, words in itertools.chain([first], sentences):
            yield line, [[fields[place] for fields in words] for place in places]

    return Cells([], "line", values())


def sentences_in(where: object, texts: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[list[str]]]]:
    """The first line of each sentence, and the fields of its words; ``texts`` are numbered lines.

    A comment (``# ...``) may stand before the first word. It has another number of fields than a
    word, or lacks its tabs; one that opens the file may be like a word.
    """
    begun, words, opens = 0, list[list[str]](), True
    head, count, tabs = _to_first_word(texts)
    for number, text in itertools.chain(head, texts):
        line, fields = text.strip(), _columns(text)
        is_word = bool(line) and fields[0] != DOCUMENT
        if is_word and line.startswith("#") and not words:
            is_word = len(fields) == count and ("\t" in text or not tabs) and not (opens and line.startswith("# "))
        if is_word:
            opens = False
            if len(fields) != count:
                raise DataError(
                    f"{where}, line {number}: {len(fields)} columns instead of {count}: {line!r:.80}; words are"
                    " separated by line, sentences by a blank line"
                )
            if not all(map(str.strip, fields)):
                raise DataError(f"{where}, line {number}: an empty column: {line!r:.80}")
            begun = begun or number
            words.append(fields)
        elif words:
            yield begun, words
            begun, words = 0, []
    if words:
        yield begun, words


def _to_first_word(texts: Iterator[tuple[int, str]]) -> tuple[list[tuple[int, str]], int, bool]:
    """The lines up to the first that can be no comment, its number of fields, and whether it has
    tabs."""
    head = []
    for number, text in texts:
        head.append((number, text))
        fields = _columns(text)
        if text.strip() and fields[0] != DOCUMENT and not text.lstrip().startswith("#"):
            return head, len(fields), "\t" in text
    return head, 0, False


def _columns(text: str) -> list[str]:
    """The fields of a line of CoNLL, between tabs if it has some, else between blanks."""
    return text.rstrip("\r\n").split("\t") if "\t" in text else text.split()


READERS = {"csv": _delimited, "tsv": _delimited, "jsonl": _jsonl, "parquet": _parquet, "conll": _conll}
"""The reader of each format."""

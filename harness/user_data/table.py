"""Data files as an Arrow table with the columns of a task's type, each value of the form that it
must have."""

from __future__ import annotations

import functools
import io
import math
import wave
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from harness.errors import DataError
from harness.files import RATES, read_limited
from harness.registry import ProblemEntry
from harness.rows import in_parts
from harness.user_data.description import ANSWER_START, Column, Description, Source
from harness.user_data.raw_tables import Cells

PLACE, GROUP, SPLIT = "place", "rows together", "split of the file"
"""Columns beside those of the type: the line of a row, the value that keeps rows on one side, and
the split that the file names."""
AT_ONCE = 20_000
"""Rows that are made into Arrow's arrays at a time."""
LARGEST_RECORDING = 1 << 26
"""Bytes that a recording may have: half an hour of 16 kHz."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text")
    return value


def _name(value: Any) -> str:
    """A label as it is written, without blanks around it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    if isinstance(value, float | str):
        return str(value).strip()
    raise ValueError("a name or a number")


def _words(value: Any) -> list[str]:
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(word, str) and word for word in found):
        raise ValueError("words: a list of texts, or a text of words with blanks between them")
    return found


def _names(value: Any) -> list[str]:
    found = value.split() if isinstance(value, str) else value
    names = list(map(_name, found)) if isinstance(found, list) else [""]
    if "" in names or len(set(names)) < len(names):
        raise ValueError("names, none of them twice: a list of them, or a text with blanks between them")
    return names


def _number(value: Any) -> float:
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        raise ValueError("a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError("a number") from None
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _zero_or_one(value: Any) -> str:
    found = _name(value)
    found = {"true": "1", "false": "0", "1.0": "1", "0.0": "0"}.get(found.lower(), found)
    if found not in ("0", "1"):
        raise ValueError("1 (right) or 0 (wrong)")
    return found


def _recording(folder: Path, value: Any) -> dict[str, Any]:
    """A WAV file by its path, from the folder of the list."""
    path = folder / _text(value)
    try:
        content = read_limited(path, LARGEST_RECORDING)
        with wave.open(io.BytesIO(content)) as file:
            if not file.getnframes():
                raise ValueError("a WAV file with samples")
            if (rate := file.getframerate()) not in RATES:
                raise ValueError(f"a WAV file of {RATES[0]:,} to {RATES[-1]:,} samples a second, not {rate:,}")
        return {"bytes": content, "path": path.name}
    except (OSError, EOFError, RuntimeError, wave.Error) as error:
        reason = getattr(error, "strerror", None) or str(error) or "too short"
        raise ValueError(f"the path of a WAV file, from the folder of the list ({reason})") from error


class Form(NamedTuple):
    """A form of values: how one is read (``ValueError`` says what is wanted), and Arrow's type."""

    read: Callable[[Any], Any]
    type: pa.DataType


def _reader(form: str, folder: Path) -> Callable[[Any], Any]:
    return functools.partial(_recording, folder) if form == "audio" else FORMS[form].read


WORDS = pa.list_(pa.string())
FORMS: dict[str, Form] = {
    "text": Form(_text, pa.string()),
    "string": Form(_text, pa.string()),
    "name": Form(_name, pa.string()),
    "names": Form(_names, WORDS),
    "words": Form(_words, WORDS),
    "tags": Form(_words, WORDS),
    "texts": Form(_words, WORDS),
    "number": Form(_number, pa.float64()),
    "zero_or_one": Form(_zero_or_one, pa.string()),
    "audio": Form(_text, pa.struct({"bytes": pa.binary(), "path": pa.string()})),
    "answers": Form(_text, pa.struct({"text": WORDS, "start": pa.list_(pa.int64())})),
}
"""The form of a column (:data:`harness.rows.FORMS`) as a file holds it."""
MAY_BE_MISSING = ("answers", "names")
"""Forms in which an empty cell says something: a question without an answer, a text without a
label."""


def wanted(description: Description) -> dict[str, Column]:
    """The columns that are read of a file, by what they are to the task."""
    extra = {GROUP: description.group, SPLIT: description.column}
    return description.columns | {name: column for name, column in extra.items() if column is not None}


def read_table(where: str, cells: Cells, folder: Path, description: Description, problem: ProblemEntry) -> pa.Table:
    """All rows, with ``id`` (the place of a row where no column has one) and :data:`PLACE`.

    ``cells`` have the columns that :func:`wanted` names. Raises :class:`DataError` with the place
    of a value that has not its form, of an empty cell (unless such rows are left out), and of ids
    that occur twice.
    """
    columns = wanted(description)
    forms = _forms(columns, problem)
    batches: list[pa.RecordBatch] = []
    schema: pa.Schema | None = None
    for rows in in_parts(_rows(where, cells, folder, columns, forms, description.source), AT_ONCE):
        schema = schema or _schema(rows[0], forms)
        try:
            batches.append(pa.RecordBatch.from_pylist(rows, schema))
        except (pa.ArrowException, UnicodeError, TypeError, ValueError, OverflowError) as error:
            place = f"{cells.unit} {rows[0][PLACE]} or after it"
            raise DataError(f"{where}, {place}: values of one column differ in kind: {error!s:.200}") from error
    if schema is None:
        raise DataError(f"{where}: it has no rows" + _of_dropped(description.source))
    table = pa.Table.from_batches(batches, schema)
    _check_ids(where, cells.unit, table)
    return table


def _of_dropped(source: Source) -> str:
    return " whose cells are all filled (drop_missing = true)" if source.drop_missing else ""


def _forms(columns: Mapping[str, Column], problem: ProblemEntry) -> dict[str, str]:
    forms = dict.fromkeys(problem.texts, "text") | dict(problem.forms) | {ANSWER_START: "number"}
    return {name: forms.get(name, "name") for name in columns}


def _schema(row: Mapping[str, Any], forms: Mapping[str, str]) -> pa.Schema:
    """Arrow's types of the columns: texts are strings or lists of words, as the first is."""
    types = {name: FORMS[forms[name]].type if name in forms else pa.string() for name in row}
    types |= {name: WORDS for name, value in row.items() if isinstance(value, list)}
    return pa.schema(types | {PLACE: pa.int64()})


def is_missing(value: Any, missing: frozenset[str]) -> bool:
    """True for a cell in which nothing stands."""
    if isinstance(value, str):
        return value.strip() in missing
    return value is None or value != value or value == []  # NaN is not itself


def _rows(
    where: str,
    cells: Cells,
    folder: Path,
    columns: Mapping[str, Column],
    forms: Mapping[str, str],
    source: Source,
) -> Iterator[dict[str, Any]]:
    missing = frozenset(source.missing)
    readers = [
        (name, column, _reader(forms[name], folder), forms[name] in MAY_BE_MISSING) for name, column in columns.items()
    ]
    optional = {ANSWER_START} if "answers" in forms.values() else set()
    own_id = "id" in columns
    listed = {name for name, form in forms.items() if form == "text"}
    for number, values in cells.rows:
        row: dict[str, Any] = {} if own_id else {"id": f"{cells.unit}-{number}"}
        whole = True
        for value, (name, column, read, may_be_missing) in zip(values, readers, strict=True):
            if is_missing(value, missing):
                if may_be_missing or name in optional:
                    row[name] = None
                    continue
                if source.drop_missing:
                    whole = False
                    break
                raise DataError(
                    f"{where}, {cells.unit} {number}: column {column!r} is empty ({value!r:.40}); fill it, or say"
                    " drop_missing = true in [data]"
                )
            try:
                row[name] = (_words if name in listed and isinstance(value, list) else read)(value)
            except ValueError as error:
                raise DataError(
                    f"{where}, {cells.unit} {number}: column {column!r} is {value!r:.80}, expected {error}"
                ) from error
        if whole:
            try:
                yield _finished(row, forms) | {PLACE: number}
            except ValueError as error:
                raise DataError(f"{where}, {cells.unit} {number}: {error}") from error


def _finished(row: dict[str, Any], forms: Mapping[str, str]) -> dict[str, Any]:
    """A row whose columns fit each other; ``ValueError`` says which do not."""
    for name in (name for name, form in forms.items() if form == "tags"):
        words = row.get("text")
        if isinstance(words, list) and len(words) != len(row[name]):
            raise ValueError(f"{len(words)} words and {len(row[name])} {name}; expected one for each word")
    for name in (name for name, form in forms.items() if form == "answers"):
        row[name] = _answer(row["passage"], row[name], row.pop(ANSWER_START, None))
    for name in (name for name, form in forms.items() if form == "names"):
        row[name] = row[name] or []
    return row


def _answer(passage: str, answer: str | None, start: float | None) -> dict[str, Any]:
    """An answer as a row has it: its text and its offset, the first where none is given."""
    if answer is None:
        return {"text": [], "start": []}
    if not isinstance(passage, str):
        raise ValueError("its passage is a list of words; an answer is a piece of a text, so that it has to be one")
    place = passage.find(answer) if start is None else int(start)
    if place < 0 or passage[place : place + len(answer)] != answer:
        where = "in its passage" if start is None else f"at character {place} of its passage, counted from 0"
        raise ValueError(f"the answer {answer!r:.80} does not stand {where}")
    return {"text": [answer], "start": [place]}


def _check_ids(where: str, unit: str, table: pa.Table) -> None:
    counts = pa.TableGroupBy(table.select(["id", PLACE]), "id").aggregate(
        [(PLACE, "count"), (PLACE, "min"), (PLACE, "max")]
    )
    repeated = counts.filter(pa.compute.greater(counts[f"{PLACE}_count"], 1))
    if len(repeated):
        id, first, last = (repeated[name][0].as_py() for name in ("id", f"{PLACE}_min", f"{PLACE}_max"))
        others = f" ({len(repeated) - 1:,} other ids are like it)" if len(repeated) > 1 else ""
        raise DataError(f"{where}, {unit} {last}: the id {id!r:.80} stands in {unit} {first} too{others}")

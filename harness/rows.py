"""Checks of a split's rows: the columns that its task type wants, a value of the right form in each
of them, and an id of its own for each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from numbers import Real
from typing import Any, NamedTuple, TypeVar

from harness import registry
from harness.errors import Named
from harness.registry import TaskEntry

Row = dict[str, Any]


T = TypeVar("T")


def in_parts(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    """The rows of a stream in their order, so many at a time."""
    rows = iter(rows)
    while part := list(islice(rows, size)):
        yield part


class Form(NamedTuple):
    """The form of a column's values: a test of many values with their rows, and what is wanted, in
    words."""

    fit: Callable[[Sequence[Any], Sequence[Row]], bool]
    wanted: str


# All values are tested at once, by functions that loop in C: a call for each would take a third of
# the time in which a file is read.


def _are(values: Iterable[Any], *types: type) -> bool:
    return all(issubclass(found, types) for found in set(map(type, values)))


def _are_strings(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    return _are(values, str)


def _are_names(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    return _are(values, str) and "" not in values


def _are_sets_of_names(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    return (
        _are(values, list, tuple)
        and _are_names(list(chain.from_iterable(values)))
        and all(len(set(names)) == len(names) for names in values)
    )


def _are_words(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    return _are(values, list, tuple) and _are(chain.from_iterable(values), str)


def _are_texts(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    """True if all are strings, or all are lists: a column of a table holds one or the other."""
    return _are(values, str) or _are_words(values)


def _are_lists_of_texts(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    return _are(values, list, tuple) and all(values) and _are_texts(list(chain.from_iterable(values)))


def _are_tags(values: Sequence[Any], rows: Sequence[Row]) -> bool:
    if not _are(values, list, tuple):
        return False
    texts: list[Any] = [row.get("text") for row in rows]
    return _are_names(list(chain.from_iterable(values))) and (
        not _are(texts, list, tuple) or list(map(len, values)) == list(map(len, texts))
    )


def _are_answers(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    if not _are(values, dict):
        return False
    texts, starts = ([value.get(name) for value in values] for name in ("text", "start"))
    return (
        _are_words(texts)
        and _are(starts, list, tuple)
        and _are(chain.from_iterable(starts), int)
        and list(map(len, texts)) == list(map(len, starts))
    )


def _are_recordings(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    return _are(values, dict) and _are([value.get("bytes") for value in values], bytes)


def _are_numbers(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    return _are(values, Real) and bool not in set(map(type, values))


def _are_zero_or_one(values: Sequence[Any], _: Sequence[Row] = ()) -> bool:
    return _are(values, str) and {"0", "1"}.issuperset(values)


FORMS: Named[Form] = Named(
    "form of a column",
    string=Form(_are_strings, "a string"),
    name=Form(_are_names, "a string that is not empty"),
    names=Form(_are_sets_of_names, "a list of strings that are not empty, none of them twice"),
    words=Form(_are_words, "a list of strings"),
    text=Form(_are_texts, "a string or a list of strings"),
    texts=Form(_are_lists_of_texts, "a list of texts, at least one"),
    tags=Form(_are_tags, "a list of tags (strings that are not empty), one for each word of text"),
    answers=Form(_are_answers, '{"text": [strings], "start": [whole numbers]}, as many of both'),
    audio=Form(_are_recordings, '{"bytes": the bytes of a WAV file, "path": its name}'),
    number=Form(_are_numbers, "a number"),
    zero_or_one=Form(_are_zero_or_one, 'the string "1" (right) or "0" (wrong)'),
)
"""Forms that a problem may name for its columns (``forms`` of
:func:`~harness.registry.register_problem`)."""


def faults(task: TaskEntry, split: str, rows: Sequence[Row]) -> Iterator[str]:
    """Faults of the rows of a split: one message for each column, with the first row that shows
    it."""
    where = f"{task.id}: split {split}"
    if not rows:
        yield f"{where} has no rows"
        return
    if not _are(rows, dict):
        number = next(number for number, row in enumerate(rows, 1) if not isinstance(row, dict))
        found = type(rows[number - 1]).__name__
        yield f"{where}, row number {number}: a {found}, expected a dict from column to value"
        return
    problem = registry.entry("problems", task.type)
    found = ", ".join(map(str, rows[0]))
    columns = dict.fromkeys(("id", *problem.columns, *(name for name in problem.inputs if name in rows[0])))
    if missing := [name for name in columns if name not in rows[0]]:
        yield f"{where} lacks the column {', '.join(missing)} (found: {found})"
    if not any(name in rows[0] for name in problem.inputs):
        yield f"{where} has no column {' or '.join(map(repr, problem.inputs))}, which systems read (found: {found})"
    forms = {"id": "name"} | dict.fromkeys(problem.texts, "text") | problem.forms
    for name in (name for name in columns if name not in missing):
        yield from _faults_of_column(where, rows, name, forms.get(name))
    yield from _repeated(where, [id for row in rows if isinstance(id := row.get("id"), str)])


def _faults_of_column(where: str, rows: Sequence[Row], name: str, form: str | None) -> Iterator[str]:
    try:
        values = [row[name] for row in rows]
    except KeyError:
        lacking = [number for number, row in enumerate(rows) if name not in row]
        yield f"{where}, {_row(rows, lacking[0])}: no column {name}{_others(lacking)}"
        return
    if form is None or FORMS[form].fit(values, rows):
        return
    if form == "text" and _are_texts(values[:1]):
        form = "string" if isinstance(values[0], str) else "words"  # as its first row has it
    fit, wanted = FORMS[form]
    wrong = [number for number, value in enumerate(values) if not fit([value], [rows[number]])]
    if not wrong:  # each is right by itself
        wrong = [n for n, value in enumerate(values) if not fit([values[0], value], [rows[0], rows[n]])]
        wanted = f"{wanted}, of the kind that the first row has"
    value = values[wrong[0]]
    shown = "None" if value is None else f"{value!r:.60} ({type(value).__name__})"
    yield f"{where}, {_row(rows, wrong[0])}: column {name} is {shown}, expected {wanted}{_others(wrong)}"


def _repeated(where: str, ids: Sequence[str]) -> Iterator[str]:
    if len(set(ids)) < len(ids):
        repeated = [id for id, count in Counter(ids).items() if count > 1]
        rest = f" and {len(repeated) - 3:,} others" if len(repeated) > 3 else ""
        yield f"{where} has ids that occur twice: {', '.join(f'{id!r:.80}' for id in repeated[:3])}{rest}"


def _row(rows: Sequence[Row], index: int) -> str:
    id = rows[index].get("id")
    return f"row {id!r:.80}" if isinstance(id, str) and id else f"row number {index + 1}"


def _others(wrong: Sequence[int]) -> str:
    """Half a sentence on how many rows beside the named one are so."""
    return f" ({len(wrong) - 1:,} other rows are like it)" if len(wrong) > 1 else ""

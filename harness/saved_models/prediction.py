"""Answers to a stream of texts: read, predicted and written part by part, in their order."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TextIO

from harness.errors import ArchbenchError, DataError, Named
from harness.problems.answers import Answers
from harness.problems.base import Answer
from harness.rows import in_parts
from harness.saved_models.base import KeptModel
from harness.saved_models.reading import Asked, Wanted, questions
from harness.user_data.description import Column, Manner

AT_ONCE = 1024
"""Texts that are read before the first of them is answered: enough for batches of texts alike in
length, few enough for memory."""

UNREADABLE = (ArchbenchError, ValueError, TypeError, KeyError, IndexError, OSError)
"""Errors by which views and systems refuse a row."""


class Answered(NamedTuple):
    """A question with its answer, None for one that could not be read."""

    question: Asked
    answer: Answer | None


def wanted_by(
    model: KeptModel, source: str, manner: Manner = Manner("lines"), names: Mapping[str, Column] = {}
) -> Wanted:
    """The columns that a model needs of the file ``source``, which is read in a ``manner``;
    ``names`` are the user's for some of them."""
    apart = {column for column, form in model.problem.entry.forms.items() if form == "words"}
    manner = replace(manner, names={**manner.names, **names})
    return Wanted(model.description.inputs, source, frozenset(apart), manner)


def answered(model: KeptModel, questions: Iterable[Asked]) -> Iterator[Answered]:
    """The answer to each question, in their order; a row that the model cannot read is a fault of
    its line."""
    for part in in_parts(questions, AT_ONCE):
        try:
            yield from _of_part(model, part)
        except UNREADABLE:
            sound = [_checked(model, question) for question in part]
            if sound == part:  # the fault is none of a single row
                raise
            yield from _of_part(model, sound)


def answers_to(model: KeptModel, values: Iterable[Any], name: str) -> Iterator[Answer]:
    """The answer to each of ``values``: a mapping with the columns that the model needs, or a text
    where that is one.

    :class:`~harness.errors.DataError` for one that cannot be read, with its place in ``name``, from
    0.
    """
    for each in answered(model, questions(values, wanted_by(model, name))):
        if each.answer is None:
            raise DataError(f"{name}[{each.question.line}]: {each.question.fault}")
        yield each.answer


def _of_part(model: KeptModel, part: list[Asked]) -> list[Answered]:
    rows = [question.row for question in part if question.row is not None]
    answers = iter(model.answers(rows) if rows else ())
    return [Answered(question, None if question.row is None else next(answers)) for question in part]


def _checked(model: KeptModel, question: Asked) -> Asked:
    if question.row is not None:
        try:
            model.check(question.row)
        except UNREADABLE as error:
            return question._replace(row=None, fault=str(error))
    return question


def _named(answered: Answered) -> dict[str, Any]:
    """Line, the user's name where there is one, and the answer."""
    line, name, *_ = answered.question
    return {"line": line} | ({} if name is None else {"id": name}) | (answered.answer or {})


def _plain(value: Any) -> str:
    if isinstance(value, list):  # the probabilities of several parts of a prediction
        return " ".join(map(_plain, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _flat(answered: Answered, answers: Answers) -> dict[str, str]:
    """One text for each column: the prediction as its problem words it, a column for each class."""
    flat: dict[str, str] = {}
    for name, value in _named(answered).items():
        if name == "prediction":
            flat[name] = answers.cell(value)
        elif isinstance(value, dict):  # a number for each class
            flat |= {f"{name}: {key}": _plain(each) for key, each in value.items()}
        else:
            flat[name] = _plain(value)
    return flat


Write = Callable[[Answered], None]


def _as_lines(out: TextIO, _: Answers) -> Write:
    return lambda answered: print(json.dumps(_named(answered), ensure_ascii=False), file=out)


def _as_csv(out: TextIO, answers: Answers) -> Write:
    rows: list[csv.DictWriter[str]] = []

    def write(answered: Answered) -> None:
        flat = _flat(answered, answers)
        if not rows:  # the first answer has the columns of all, but for a name that later rows may have
            flat = {"line": flat.pop("line"), "id": ""} | flat
            rows.append(csv.DictWriter(out, list(flat), restval="", extrasaction="ignore", lineterminator="\n"))
            rows[0].writeheader()
        rows[0].writerow(flat)

    return write


def _as_table(out: TextIO, answers: Answers) -> Write:
    print(f"{'line':>7}  {'sure':>5}  answer", file=out)

    def write(answered: Answered) -> None:
        named = _named(answered)
        sure = answers.certainty(named.get("probability"))
        share = "" if sure is None else f"{sure:.3f}"
        label = str(named["line"]) if "id" not in named else named["id"]
        print(f"{label:>7}  {share:>5}  {answers.cell(named['prediction'])}", file=out)

    return write


WRITERS: Named[Callable[[TextIO, Answers], Write]] = Named("format", table=_as_table, csv=_as_csv, jsonl=_as_lines)
"""Formats of answers. The table shows the probability of the prediction, of tags the least one."""

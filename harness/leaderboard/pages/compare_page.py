"""Data of the compare page: everything that ``static/compare.js`` shows.

A page on disk cannot fetch files, so the data are scripts that assign JSON to a global variable:
``compare-data.js`` names the sections and tasks, and each of these has a file of its own, which the
page loads when it is chosen. A column of values of the test units is :class:`Coded`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness import registry
from harness.errors import RecordError
from harness.leaderboard.answers import gold_by_answers
from harness.leaderboard.board import Board
from harness.leaderboard.comparison import Comparison, compare
from harness.leaderboard.examples import ExampleReader, by_unit, shown, text_columns
from harness.leaderboard.pages.compare_parts import parts_of, read_parts
from harness.leaderboard.pages.page import Page
from harness.leaderboard.results import Pairs, Result, Section
from harness.leaderboard.tables.cost import COMPARED, compared_cells
from harness.leaderboard.tables.formatting import (
    caveats,
    format_interval,
    metric_label,
    score_parts,
    section_title,
)
from harness.metrics import display_info
from harness.metrics.information import PERCENT
from harness.problems.answers import answers_of
from harness.records.groups import SMOKE, Group, differences
from harness.records.outcomes import Outcomes
from harness.registry import ProblemEntry
from harness.task import Row

MAX_ANSWERS = 2_000_000
"""Largest number of answers that are read (2 to 5 microseconds each) and shown, over all tasks:
each task gets the same number, and what it does not need is for the others. Within a task, the best
results have theirs shown."""
MAX_ANSWER_CHARS = 300
"""Characters of an answer that are shown."""
MAX_TEXT_CHARS = 1200
"""Characters of a text that are shown."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MAX_FILE_NAME = 200
"""Bytes of the part of a file's name that tells task and section."""


class Coded(NamedTuple):
    """Rows of values of the test units: the distinct values once (``levels``), and for each row one
    string with a number (base 36, ``width`` digits) per unit, the place of its value there."""

    levels: list[Any]
    width: int
    rows: list[str]


class Choice(NamedTuple):
    """A task of a section, which the page shows at a time."""

    section: Section
    task: str
    results: Pairs
    comparison: Comparison | None

    @property
    def file(self) -> str:
        """Name of the file with its data: a digest where the section's words are longer than a file
        system takes."""
        name = f"{self.task}-{self.section.id}"
        if len(name.encode()) > MAX_FILE_NAME:
            name = hashlib.sha256(name.encode()).hexdigest()[:16]
        return f"compare-{name}.js"

    @property
    def answers(self) -> int:
        """Number of the answers that it could show."""
        return len(self.comparison.results) * len(self.comparison.units) if self.comparison else 0


def compare_page(board: Board, data_dir: Path | None = None) -> Page:
    """The page and its data scripts; with the texts of the official data below ``data_dir``."""
    choices, reader = list(_choices(board)), ExampleReader(data_dir)
    shares = fair_shares([choice.answers for choice in choices], MAX_ANSWERS)
    beside = {
        choice.file: data_script("compareTask", _task(board, choice, share, reader))
        for choice, share in zip(choices, shares, strict=True)
    }
    index = {"measures": list(COMPARED), "tasks": [_place(board, choice) for choice in choices]}
    return Page(
        "compare.html",
        "Compare architectures",
        "compare.html",
        {},
        {"compare-data.js": data_script("compareData", index), **beside},
    )


def data_script(name: str, content: Any) -> str:
    """A script that assigns JSON to a global variable, escaped such that no text can end it."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f"var {name}={text};\n"


def fair_shares(wanted: Sequence[int], total: int) -> list[int]:
    """Parts of a total: to each what it wants, but nobody gets more than another who wants more
    still."""
    shares = [0] * len(wanted)
    for place, i in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        shares[i] = min(wanted[i], total // (len(wanted) - place))
        total -= shares[i]
    return shares


def _choices(board: Board) -> Iterator[Choice]:
    for section in board.sections:
        for task in board.recorded_tasks:
            results = [(architecture, result) for architecture, result in board.results(section, task) if result.ok]
            if results:
                comparison = compare(board, section, task)
                yield Choice(section, task, _in_order(board, results, comparison), comparison)


def _in_order(board: Board, results: Pairs, comparison: Comparison | None) -> Pairs:
    """The results of the comparison, best first, then the others in the order of the tables."""
    if comparison is None:
        others, first = results, []
    else:
        others, first = [pair for pair in results if comparison.row(pair[1]) is None], comparison.results
    return [*first, *sorted(others, key=lambda pair: (*board.order(pair[0]), pair[1].settings))]


def _place(board: Board, choice: Choice) -> dict[str, Any]:
    return {
        "section": section_title(choice.section),
        "place": place_of(choice.section),
        "task": choice.task,
        "name": board.task_name(choice.task),
        "file": choice.file,
        "compared": choice.comparison is not None,
    }


def place_of(section: Section) -> str:
    """The name of a section in the address of the page."""
    return "/".join(section.words)


def result_id(board: Board, section: Section, architecture: str, result: Result) -> str:
    """The name of a result in the address of the page: its architecture, with the key of its first
    record where it is not the only one."""
    single = len(board.sections[section][architecture, result.first.task]) == 1
    return architecture if single else f"{architecture}~{result.first.key}"


def _task(board: Board, choice: Choice, share: int, reader: ExampleReader) -> dict[str, Any]:
    section, task, results, comparison = choice
    metric = board.main_metric(task)
    info = display_info(metric)
    groups = list(dict.fromkeys(result.group for _, result in results if result.group))
    fields: dict[str, Any] = {
        "metric": metric_label(metric),
        "unit": "points" if info.unit == PERCENT else "",
        "digits": info.digits,
        "lower": info.lower_is_better,
        "never": never_compared(section),
        "reasons": [[differences(group, first) for group in groups] for first in groups],
        "results": [_result(board, choice, groups, architecture, result) for architecture, result in results],
    }
    if comparison is not None:
        fields |= _units(board, choice, comparison, share // max(1, len(comparison.units)), reader)
    return fields


def _units(
    board: Board, choice: Choice, comparison: Comparison, answered: int, reader: ExampleReader
) -> dict[str, Any]:
    """All that is known of single test units. As many results as ``answered`` says have their
    answers shown."""
    section, task, units = choice.section, choice.task, comparison.units
    lower = display_info(comparison.metric).lower_is_better
    problem = registry.entries("problems").get(board.tasks[task].type) if task in board.tasks else None
    examples = reader.test(board, section, task)
    rows = by_unit(units, examples.rows, problem) if examples.rows and problem else None
    said = [
        _answers(board, result, units, rows, problem) if problem and place < answered else None
        for place, (_, result) in enumerate(comparison.results)
    ]
    fields: dict[str, Any] = {}
    known: dict[str, list[str]] = {}
    if rows is None or problem is None:
        gold = gold_by_answers(comparison, said)
    else:
        gold = [answers_of(problem).right_of_unit(of_unit) for of_unit in rows]
        known = read_parts(board, section, task, [of_unit[0] for of_unit in rows], reader)
        fields["texts"] = _texts(rows, problem)
    return fields | {
        "units": units,
        "doubt": comparison.doubt,
        "p": [[float(f"{p:.3g}") for p in row[:i]] for i, row in enumerate(comparison.p)],  # with the rows above
        "outcomes": encode([unit_rates(outcomes, lower).tolist() for outcomes in comparison.outcomes]),
        "about": examples.about,
        "answered": [texts is not None for texts in said],
        "answers": encode([texts or [None] * len(units) for texts in said]),
        "gold": encode([[text and shorten(text, MAX_ANSWER_CHARS) for text in gold]]),
        "tagged": rows is not None and problem is not None and answers_of(problem).tagged,
        "parts": [
            parts._asdict() | {"members": parts.members and encode([parts.members])}
            for parts in parts_of(comparison, known, gold)
        ],
    }


def never_compared(section: Section) -> str:
    """The reason why no results of a section are set against each other; empty where they are."""
    if section.ranked:
        return ""
    if section.protocol == SMOKE:
        return f"protocol {SMOKE} shows only that a cell runs, so that its results are not set against each other"
    return f"results of budget {section.budget}, a user's own, are not set against each other"


def _result(board: Board, choice: Choice, groups: Sequence[Group], architecture: str, result: Result) -> dict[str, Any]:
    comparison, metric = choice.comparison, board.main_metric(choice.task)
    interval = comparison.interval(result) if comparison else None
    summary = result.summary(metric)
    mean = display_info(metric).round(summary.mean) if summary else math.nan
    return {
        "id": result_id(board, choice.section, architecture, result),
        "architecture": architecture,
        "name": board.result_name(architecture, result),
        "score": score_parts(board, result, metric, False)[0].text,
        "mean": mean if math.isfinite(mean) else None,
        "interval": format_interval(metric, interval) if interval else None,
        "group": groups.index(result.group) if result.group else None,
        "tied": comparison.shares_first_place(result) if comparison else None,
        "notes": list(caveats(board, result)),
        "costs": [[part.text for part in cell] for cell in compared_cells(result, board.speeds.get(architecture))],
        "seed": result.ok[0].seed,
    }


def unit_rates(outcomes: Sequence[Outcomes], lower: bool) -> np.ndarray:
    """Score of each unit over the seeds; a unit with denominator 0 counts as right."""
    numerators = np.sum([each.numerators for each in outcomes], axis=0, dtype=float)
    denominators = np.sum([each.denominators for each in outcomes], axis=0, dtype=float)
    right = np.full(numerators.shape, 0.0 if lower else 1.0)
    return np.round(np.divide(numerators, denominators, out=right, where=denominators != 0), 3)


def encode(rows: Sequence[Sequence[Hashable]]) -> Coded:
    """The rows with each distinct value once."""
    places: dict[Hashable, int] = {}
    numbered = [[places.setdefault(value, len(places)) for value in row] for row in rows]
    width = 1
    while len(DIGITS) ** width < len(places):
        width += 1
    digits = [_base36(place, width) for place in range(len(places))]
    return Coded(list(places), width, ["".join([digits[place] for place in row]) for row in numbered])


def _base36(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits


def _answers(
    board: Board, result: Result, units: Sequence[str], rows: Sequence[Sequence[Row]] | None, problem: ProblemEntry
) -> list[str | None] | None:
    """Answers of the first seed, shortened; None if they cannot be read or shown."""
    record = result.ok[0]
    if record.predictions is None:
        return None
    try:
        ids, predictions = board.store.load_predictions(record)
    except RecordError as error:
        board.notices.append(str(error))
        return None
    by_id = dict(zip(ids, predictions, strict=True))
    worded = answers_of(problem)
    texts = [worded.of_unit(unit, by_id, rows[i] if rows else ()) for i, unit in enumerate(units)]
    if all(text is None for text in texts):
        return None
    return [text and shorten(text, MAX_ANSWER_CHARS) for text in texts]


def _texts(rows: Sequence[Sequence[Row]], problem: ProblemEntry) -> list[dict[str, Any]]:
    """The columns of texts that are a unit's own: of a question, not of one of its candidates."""
    found = []
    for column in text_columns(problem):
        texts = [shown(of_unit, column) for of_unit in rows]
        if None not in texts:
            values = encode([[shorten(text, MAX_TEXT_CHARS) for text in texts if text is not None]])
            found.append({"name": column, "values": values})
    return found


def shorten(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"

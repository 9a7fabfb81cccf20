"""Data of the compare page: everything that ``static/compare.js`` shows, as one script.

A page on disk cannot fetch files, so the data is a script that assigns JSON to ``compareData``. Per
section and task it holds the test units once, the distinct outcomes once (``levels``), and for each
result one string with a number (base 36, ``width`` digits) per unit: the place of its outcome among
the levels.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from harness import registry
from harness.errors import RecordError
from harness.leaderboard.board import Board, Pairs, Result, Section
from harness.leaderboard.comparison import Comparison, compare
from harness.leaderboard.pages.page import Page
from harness.leaderboard.tables.cost import COLUMNS, cost_cells
from harness.leaderboard.tables.formatting import (
    caveats,
    format_interval,
    metric_label,
    score_parts,
    section_title,
)
from harness.metrics import display_info
from harness.metrics.information import PERCENT
from harness.records.groups import SMOKE
from harness.records.outcomes import Outcomes

MAX_PREDICTIONS = 500_000
"""Largest number of predictions that are read (about 1 microsecond each) and shown, over all tasks;
tasks beyond that show ids alone."""
MAX_PREDICTION_CHARS = 40
"""Characters of a prediction that are shown."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def compare_page(board: Board) -> Page:
    """The page and its data script."""
    content = {"measures": list(COLUMNS), "tasks": list(_tasks(board))}
    return Page(
        "compare.html",
        "Compare architectures",
        "compare.html",
        {},
        {"compare-data.js": data_script("compareData", content)},
    )


def data_script(name: str, content: Any) -> str:
    """A script that assigns JSON to a global variable, escaped such that no text can end it."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f"var {name}={text};\n"


def _tasks(board: Board) -> Iterator[dict[str, Any]]:
    remaining = MAX_PREDICTIONS
    for section in board.sections:
        for task in board.recorded_tasks:
            results = [(architecture, result) for architecture, result in board.results(section, task) if result.ok]
            if not results:
                continue
            comparison = compare(board, section, task)
            size = len(comparison.results) * len(comparison.units) if comparison else 0
            with_predictions = _has_short_texts(board, task) and size <= remaining
            remaining -= size if with_predictions else 0
            yield _task(board, section, task, comparison, _in_order(board, results, comparison), with_predictions)


def _has_short_texts(board: Board, task: str) -> bool:
    problem = registry.entries("problems").get(board.tasks[task].type) if task in board.tasks else None
    return problem is not None and problem.short_predictions


def _in_order(board: Board, results: Pairs, comparison: Comparison | None) -> Pairs:
    """The results of the comparison, best first, then the others in the order of the tables."""
    if comparison is None:
        others, first = results, []
    else:
        others, first = [pair for pair in results if comparison.row(pair[1]) is None], comparison.results
    return [*first, *sorted(others, key=lambda pair: (*board.order(pair[0]), pair[1].settings))]


def _task(
    board: Board, section: Section, task: str, comparison: Comparison | None, results: Pairs, with_predictions: bool
) -> dict[str, Any]:
    metric = board.main_metric(task)
    info = display_info(metric)
    fields: dict[str, Any] = {
        "section": section_title(section),
        "place": "/".join(section.words),
        "task": task,
        "name": board.task_name(task),
        "metric": metric_label(metric),
        "unit": "points" if info.unit == PERCENT else "",
        "lower": info.lower_is_better,
        "results": [_result(board, section, comparison, architecture, result) for architecture, result in results],
    }
    if comparison is None:
        return fields
    fields["units"], fields["doubt"] = comparison.units, comparison.doubt
    fields["p"] = [  # of a row with those above it
        [float(f"{p:.3g}") for p in row[:i]] for i, row in enumerate(comparison.p)
    ]
    rates = np.array([unit_rates(outcomes, info.lower_is_better) for outcomes in comparison.outcomes])
    fields["levels"], fields["width"], codes = _encode(rates)
    words: dict[str | None, int] = {None: 0}
    for i, (of_result, code) in enumerate(zip(fields["results"], codes, strict=False)):
        of_result["codes"] = code
        if with_predictions and (texts := _predictions(board, results[i][1], comparison.units)):
            of_result["said"] = [words.setdefault(text, len(words)) for text in texts]
    fields["words"] = list(words)
    return fields


def _result(
    board: Board, section: Section, comparison: Comparison | None, architecture: str, result: Result
) -> dict[str, Any]:
    task = result.first.task
    metric = board.main_metric(task)
    interval = comparison.interval(result) if comparison else None
    single = len(board.sections[section][architecture, task]) == 1
    summary = result.summary(metric)
    mean = display_info(metric).round(summary.mean) if summary else math.nan
    return {
        "id": architecture if single else f"{architecture}~{result.first.key}",
        "name": board.result_name(architecture, result),
        "score": score_parts(board, result, metric, False)[0].text,
        "mean": mean if math.isfinite(mean) else None,
        "interval": format_interval(metric, interval) if interval else None,
        "group": result.group.id if result.group and section.protocol != SMOKE else None,
        "tied": _tied(comparison, result),
        "notes": list(caveats(board, result)),
        "costs": [[part.text for part in cell] for cell in cost_cells(result)],
        "seed": result.ok[0].seed,
    }


def _tied(comparison: Comparison | None, result: Result) -> bool | None:
    """None for a result that is not tested for the first place."""
    if comparison is None or comparison.row(result) not in comparison.rivals:
        return None
    return comparison.shares_first_place(result)


def unit_rates(outcomes: Sequence[Outcomes], lower: bool) -> np.ndarray:
    """Score of each unit over the seeds; a unit with denominator 0 counts as right."""
    numerators = np.sum([each.numerators for each in outcomes], axis=0, dtype=float)
    denominators = np.sum([each.denominators for each in outcomes], axis=0, dtype=float)
    right = np.full(numerators.shape, 0.0 if lower else 1.0)
    return np.round(np.divide(numerators, denominators, out=right, where=denominators != 0), 3)


def _encode(rates: np.ndarray) -> tuple[list[float], int, list[str]]:
    """The distinct rates, the number of digits of a place among them, and one string per row."""
    levels, places = np.unique(rates, return_inverse=True)
    width = 1
    while len(DIGITS) ** width < len(levels):
        width += 1
    numbers = np.array([_base36(i, width) for i in range(len(levels))], dtype=f"S{width}")
    return levels.tolist(), width, [numbers[row].tobytes().decode("ascii") for row in places.reshape(rates.shape)]


def _base36(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits


def _predictions(board: Board, result: Result, units: Sequence[str]) -> list[str | None] | None:
    """Predictions of the first seed, shortened; None if they cannot be read or are no texts."""
    record = result.ok[0]
    if record.predictions is None:
        return None
    try:
        ids, predictions = board.store.load_predictions(record)
    except RecordError as error:
        board.notices.append(str(error))
        return None
    texts = {id: _shorten(text) for id, text in zip(ids, predictions, strict=True) if isinstance(text, str)}
    by_unit = [texts.get(unit) for unit in units]
    return by_unit if any(text is not None for text in by_unit) else None


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_PREDICTION_CHARS else f"{text[: MAX_PREDICTION_CHARS - 1]}…"

"""Architectures side by side: what ``static/compare.js`` needs to show them, as one script beside
the page.

Browsers let a page from disk fetch nothing, so the data is a script that assigns JSON to
``compareData``. Per section and task it holds the test units once, the distinct outcomes once
(``levels``), and for each result one string with a number (base 36, ``width`` digits) per unit: the
place of its outcome among the levels.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from harness.errors import RecordError
from harness.leaderboard.board import Board, Result, Section
from harness.leaderboard.comparison import Evidence, evidence
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
from harness.records.outcomes import Outcomes

MOST_PREDICTIONS = 500_000
"""Test examples times results whose predictions are read (about 1 microsecond each) and shown;
tasks beyond that show ids alone."""
LONGEST = 40
"""Characters of a prediction that are shown."""
SPOKEN = ("classify", "match", "extract", "answer", "transcribe")
"""Task types whose predictions are one short text each."""
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
    """A script that assigns JSON to a global; nothing in a text can end the script or its
    strings."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f"var {name}={text};\n"


def _tasks(board: Board) -> Iterator[dict[str, Any]]:
    left = MOST_PREDICTIONS
    for section in board.sections:
        for task in board.recorded_tasks:
            mine = [(a, result) for a, result in board.results(section, task) if result.ok]
            if not mine:
                continue
            known = evidence(board, section, task)
            compared = known.results if known else []
            rest = [(a, result) for a, result in mine if known is None or known.row(result) is None]
            rest.sort(key=lambda pair: (*board.order(pair[0]), pair[1].settings))
            size = len(compared) * len(known.units) if known else 0
            spoken = task in board.tasks and board.tasks[task].type in SPOKEN and size <= left
            left -= size if spoken else 0
            yield _task(board, section, task, known, [*compared, *rest], spoken)


def _task(
    board: Board,
    section: Section,
    task: str,
    known: Evidence | None,
    results: Sequence[tuple[str, Result]],
    spoken: bool,
) -> dict[str, Any]:
    metric = board.main_metric(task)
    info = display_info(metric)
    fields: dict[str, Any] = {
        "section": section_title(section),
        "place": "/".join(filter(None, section)),
        "task": task,
        "name": board.task_name(task),
        "metric": metric_label(metric),
        "unit": "points" if info.unit == PERCENT else "",
        "lower": info.lower_is_better,
        "results": [
            _result(board, section, task, metric, known, architecture, result) for architecture, result in results
        ],
    }
    if known is None:
        return fields
    fields["units"] = known.units
    fields["p"] = [
        [float(f"{p:.3g}") for p in row[:i]] for i, row in enumerate(known.p)
    ]  # of a row with those above it
    rates = np.array([unit_rates(outcomes, fields["lower"]) for outcomes in known.outcomes])
    fields["levels"], fields["width"], codes = _encoded(rates)
    words: dict[str | None, int] = {None: 0}
    for i, (shown, code) in enumerate(zip(fields["results"], codes, strict=False)):
        shown["codes"] = code
        if spoken and (said := _said(board, results[i][1], known.units)):
            shown["said"] = [words.setdefault(text, len(words)) for text in said]
    fields["words"] = list(words)
    return fields


def _result(
    board: Board, section: Section, task: str, metric: str, known: Evidence | None, architecture: str, result: Result
) -> dict[str, Any]:
    row = known.row(result) if known else None
    lone = len(board.sections[section][architecture, task]) == 1
    summary = result.summary(metric)
    mean = display_info(metric).rounded(summary.mean) if summary else math.nan
    return {
        "id": architecture if lone else f"{architecture}~{result.first.key}",
        "name": board.name(architecture) + (f" ({result.settings})" if result.settings else ""),
        "score": score_parts(board, result, metric, False)[0].text,
        "mean": mean if math.isfinite(mean) else None,
        "interval": None
        if known is None or row is None
        else format_interval(metric, (known.intervals[row][0], known.intervals[row][1])),
        "tied": known is not None and row in known.tied,
        "notes": list(caveats(board, result)),
        "costs": [[part.text for part in cell] for cell in cost_cells(result)],
        "seed": result.ok[0].seed,
    }


def unit_rates(outcomes: Sequence[Outcomes], lower: bool) -> np.ndarray:
    """What each unit scored over the seeds; where nothing was to be had and nothing was claimed,
    all of it is right."""
    numerators = np.sum([each.numerators for each in outcomes], axis=0, dtype=float)
    denominators = np.sum([each.denominators for each in outcomes], axis=0, dtype=float)
    nothing = np.full(numerators.shape, 0.0 if lower else 1.0)
    return np.round(np.divide(numerators, denominators, out=nothing, where=denominators != 0), 3)


def _encoded(rates: np.ndarray) -> tuple[list[float], int, list[str]]:
    """The distinct rates, the digits of a number, and one string per row."""
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


def _said(board: Board, result: Result, units: Sequence[str]) -> list[str | None] | None:
    """The predictions of the first seed, shortened; None where they cannot be read or are no
    texts."""
    if result.ok[0].predictions is None:
        return None
    try:
        ids, predictions = board.store.load_predictions(result.ok[0])
    except RecordError as error:
        board.notices.append(str(error))
        return None
    found = {id: text for id, text in zip(ids, predictions, strict=True) if isinstance(text, str)}
    said = [found.get(unit) for unit in units]
    if not any(text is not None for text in said):
        return None
    return [text if text is None or len(text) <= LONGEST else f"{text[: LONGEST - 1]}…" for text in said]

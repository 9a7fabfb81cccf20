"""Scores against the number of labels: systems that learn from plain texts too, beside those that
learn from labels alone."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.leaderboard.board import Board
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.pages.plots import line_with_deviations
from harness.leaderboard.results import Result, Section
from harness.leaderboard.tables.formatting import axis_title, metric_label, our_row, score_parts, section_title
from harness.leaderboard.tables.table import BLANK, Block, Part, Table
from harness.metrics import display_info
from harness.records.groups import SMOKE
from harness.settings import Limits

TITLE = "Few labels"
LEAD = (
    (
        "Each column is a number of training examples that kept their labels, the same ones for every row and seed; the"
        " last is all of them. Who reads the texts of the others too is said beside the name. Dev keeps its labels."
    ),
)


class Line(NamedTuple):
    """Whose results are joined over numbers of labels: an architecture, in words what its training
    sees and is given besides labels, and the settings in which it differs from its others."""

    architecture: str
    besides: str
    settings: str


Points = dict[int | None, Result]
"""Results by number of labels; None is all of them."""


def few_labels_page(board: Board) -> list[Page]:
    """The page, if something was trained on two numbers of labels."""
    found = list(_panels(board))
    if not found:
        return []
    tables, plots = [table for table, _ in found], [plot for _, plot in found]
    return [Page("few-labels.html", TITLE, "content.html", {"lead": LEAD, "tables": tables, "plots": plots})]


def _panels(board: Board) -> Iterator[tuple[Table, Plot]]:
    """A table and a plot for each task and each tier, protocol and budget that was cut to numbers
    of labels."""
    for task in board.recorded_tasks:
        for place, lines in _lines(board, task).items():
            numbers = {number for points in lines.values() for number in points}
            if len(numbers) > 1:
                columns = sorted(numbers, key=lambda number: (number is None, number))
                yield _table(board, task, place, lines, columns), _plot(board, task, place, lines, columns)


def _lines(board: Board, task: str) -> dict[Section, dict[Line, Points]]:
    """The lines of a task that have a limited number of labels, by place: a section without what
    its training sees, whose budget is that of all labels."""
    places: dict[Section, dict[Line, Points]] = {}
    for section in board.sections:
        if section.protocol == SMOKE:
            continue
        besides = ", ".join(section.besides)
        for architecture, result in board.results(section, task):
            limits = Limits.of(result.first.hyperparameters)
            whole = Limits(limits.max_train, limits.max_epochs, limits.budget).name
            place = Section(section.tier, section.protocol, section.protocol_version, whole)
            line = Line(architecture, besides, result.settings)
            places.setdefault(place, {}).setdefault(line, {})[limits.labels] = result
    return {place: limited for place, lines in places.items() if (limited := _limited(board, lines))}


def _limited(board: Board, lines: Mapping[Line, Points]) -> dict[Line, Points]:
    """The lines with a limited number of labels, in the order of the tables."""
    kept = {line: points for line, points in lines.items() if set(points) - {None}}
    return dict(sorted(kept.items(), key=lambda pair: (board.order(pair[0].architecture), pair[0])))


def _table(board: Board, task: str, place: Section, lines: Mapping[Line, Points], columns: list[int | None]) -> Table:
    metric = board.main_metric(task)
    rows = []
    for line, points in lines.items():
        cells = [score_parts(board, points[number], metric, False) if number in points else BLANK for number in columns]
        besides = ", ".join(filter(None, (line.besides, line.settings)))
        rows.append(our_row(board, line.architecture, [[Part(besides)] if besides else BLANK, *cells]))
    names = ["all labels" if number is None else f"{number:,} labels" for number in columns]
    title = f"{board.task_name(task)}: {metric_label(metric)} by labels, {section_title(place)}"
    return Table(
        f"few-labels-{task}-{place.id}",
        title,
        ["Architecture", "besides labels", *names],
        [Block("", rows)],
        text_columns=(1,),
    )


def _plot(board: Board, task: str, place: Section, lines: Mapping[Line, Points], columns: list[int | None]) -> Plot:
    metric = board.main_metric(task)
    data = []
    for number, (line, points) in enumerate(lines.items()):
        known = [
            (labels or result.trained_on, summary)
            for labels in columns
            if (result := points.get(labels)) and (summary := result.summary(metric))
        ]
        name = ", ".join(filter(None, (board.name(line.architecture), line.besides, line.settings)))
        data.append(line_with_deviations(name, known, display_info(metric), number))
    layout = {
        "xaxis": {"title": {"text": "labels"}, "type": "log"},
        "yaxis": {"title": {"text": html.escape(axis_title(metric))}},
        "hovermode": "closest",
        "showlegend": True,
        "height": 480,
    }
    title = f"{board.task_name(task)}, {section_title(place)}: bars are a standard deviation over seeds"
    return Plot(f"plot-few-labels-{task}-{place.id}", title, data, layout)

"""The worth of word vectors, tokens or further inputs: scores of one architecture that differ in
these alone, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.leaderboard.board import Board
from harness.leaderboard.comparison import p_beside_first
from harness.leaderboard.results import Result, Section
from harness.leaderboard.significance import ALPHA, FEWEST_SEEDS
from harness.leaderboard.tables.formatting import format_score, metric_label, our_row, section_title
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow
from harness.metrics import display_info
from harness.records.groups import Group, along


class Axis(NamedTuple):
    """An axis of which pages tell: its name in :data:`~harness.records.groups.AXES`, its value in a
    section where nothing is given, and the word for that."""

    name: str
    nothing: object
    without: str

    def value(self, group: Group) -> str:
        """The thing that is given to the records of a group, in words."""
        found = getattr(group, self.name)
        if not found:
            return self.without
        if isinstance(found, str):
            return found
        sources = found if isinstance(found, tuple) else (found,)
        return " and ".join(source.words for source in sources)

    def place(self, group: Group) -> Section:
        """The section of a group, whatever is given there."""
        return Section.of(group)._replace(**{self.name: self.nothing})  # type: ignore[arg-type]


VECTORS = Axis("vectors", None, "at random")
TOKENS = Axis("tokens", "", "words")
INPUTS = Axis("inputs", (), "no other")


def axis_tables(board: Board, axis: Axis) -> list[Table]:
    """A table for each task and section that has records along an axis."""
    found = ((task, lines(board, task, axis)) for task in board.recorded_tasks)
    return [_table(board, task, axis, place, of_place) for task, places in found for place, of_place in places.items()]


Line = dict[str, Result]
"""Results of one configuration of an architecture by what was given to it."""


def lines(board: Board, task: str, axis: Axis) -> dict[Section, list[Line]]:
    """The results of a task that differ in what an axis gives them and are equal in all else, by
    section; results are paired by their first seeds."""
    results = (result for section in board.sections for _, result in board.results(section, task))
    by_key = {result.ok[0].key: (result, result.group) for result in results if result.group}
    found: dict[Section, list[Line]] = {}
    for records in along(axis.name, [result.ok[0] for result, _ in by_key.values()]):
        line = {axis.value(group): result for result, group in (by_key[record.key] for record in records)}
        found.setdefault(axis.place(by_key[records[0].key][1]), []).append(line)
    return found


def _table(board: Board, task: str, axis: Axis, place: Section, of_place: Sequence[Line]) -> Table:
    """A row for each architecture; what is given stands in the columns, nothing first."""
    metric = board.main_metric(task)
    given = {value for line in of_place for value in line}
    values = [*([axis.without] if axis.without in given else []), *sorted(given - {axis.without})]
    rows = sorted(of_place, key=lambda line: board.order(_first(line).first.architecture))
    title = f"{board.task_name(task)}: {metric_label(metric)} by {axis.name}, {section_title(place)}"
    lead = [
        f"Each row is one architecture whose results differ in {axis.name} alone. ▲ is better than {axis.without}, ▼ is"
        " worse: a paired test over seeds and examples, p corrected by Holm for the columns of a row, and at least"
        f" {FEWEST_SEEDS} seeds of both. Nothing else is told apart."
    ]
    listed = [_row(board, metric, axis, values, line) for line in rows]
    columns = ["Architecture", *values]
    return Table(f"{axis.name}-{task}-{place.id}", title, columns, [Block("", listed)], lead)


def _first(line: Line) -> Result:
    return next(iter(line.values()))


def _row(board: Board, metric: str, axis: Axis, values: Sequence[str], line: Line) -> TableRow:
    base, others = line.get(axis.without), [value for value in values if value in line and value != axis.without]
    tested = p_beside_first(board, metric, [base, *(line[value] for value in others)]) if base else []
    p = dict(zip(others, tested, strict=False))
    cells = [[_part(metric, line[value], base, p.get(value))] if value in line else BLANK for value in values]
    return our_row(board, _first(line).first.architecture, cells)


def _part(metric: str, result: Result, base: Result | None, p: float | None) -> Part:
    """A score, marked where it is told apart from that with nothing given."""
    summary = result.summary(metric)
    if summary is None:
        return BLANK[0]
    text = format_score(metric, summary)
    if base is None or p is None:
        return Part(text)
    title = f"p {p:.3g}"
    before = base.summary(metric)
    if before is None or p > ALPHA or min(summary.n, before.n) < FEWEST_SEEDS:
        return Part(text, title=title)
    quality = display_info(metric).quality
    better = quality(summary.mean) > quality(before.mean)
    return Part(f"{text} {'▲' if better else '▼'}", "best" if better else "", title=title)

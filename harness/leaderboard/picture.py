"""The whole grid as a picture: architectures x tasks, each square a score between the floor of its
task and the best of its group."""

from __future__ import annotations

import functools
import statistics
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from harness.leaderboard.board import Board, task_file
from harness.leaderboard.ranking import at_floor, best_results, unranked
from harness.leaderboard.results import Result, Section
from harness.leaderboard.tables.formatting import failure_reason, given_in_words, metric_label, section_title
from harness.metrics import display_info


class Square(NamedTuple):
    """One pair of an architecture and a task.

    ``style`` is ``score`` (with its ``share``), ``floor`` (no better than the floor), ``apart`` (a
    score that may not be compared with the others of its column), ``failed``, ``skipped``,
    ``open`` (not run) or ``unfit`` (does not apply). ``share`` is 0 at the floor and 1 at the best
    of the group. ``title`` is the reason of ``apart``, ``failed`` and ``skipped``.
    """

    style: str
    text: str = ""
    title: str = ""
    link: str = ""
    share: float | None = None


class Line(NamedTuple):
    """One architecture: its squares in the order of the tasks, and by type of task the mean of the
    shares and their number."""

    architecture: str
    squares: list[Square]
    means: dict[str, tuple[float, int]]


class SectionLines(NamedTuple):
    """The lines of a section, best mean first: rows that see other things have a best of their own.
    ``more`` is true where they learn from more than labelled examples."""

    title: str
    more: bool
    lines: list[Line]


@dataclass(frozen=True)
class Picture:
    """All sections of one tier, protocol and budget, a block for each. ``types`` are those of its
    tasks, that with most scores above the floor first. ``counted`` are the tasks that a mean can
    count: those that have a floor."""

    id: str
    title: str
    tasks: list[str]
    types: list[str]
    counted: set[str]
    blocks: list[SectionLines]


@functools.cache  # the front page shows them, and another counts their empty squares
def pictures(board: Board) -> list[Picture]:
    """A picture for each tier, protocol and budget that is ranked, in the order of the sections."""
    together: dict[tuple[str, str, int, str], list[Section]] = {}
    for section in filter(lambda section: section.ranked, board.sections):
        together.setdefault(section[:4], []).append(section)
    return [_picture(board, sections) for sections in together.values()]


def fits(board: Board, architecture: str, task: str) -> bool:
    """False where the records of the architecture's kind say that it is not for tasks of such a
    type."""
    entry = board.architectures.get(architecture)
    return entry is None or (entry.kind, board.type_in_words(task)) not in _unfit(board)


@functools.cache
def _unfit(board: Board) -> frozenset[tuple[str, str]]:
    """The kinds of architectures and types of tasks of which every cell was unfit."""
    unfit: dict[tuple[str, str], bool] = {}
    for record in board.records:
        if entry := board.architectures.get(record.architecture):
            pair = entry.kind, board.type_in_words(record.task)
            unfit[pair] = unfit.get(pair, True) and record.unfit
    return frozenset(pair for pair, every in unfit.items() if every)


def _picture(board: Board, sections: list[Section]) -> Picture:
    first = sections[0]
    tasks = [task for task in board.recorded_tasks if any(board.results(section, task) for section in sections)]
    lines = {section: _lines(board, section, tasks) for section in sections}
    # A task on which nobody is above the floor orders nothing.
    above = Counter(
        board.type_in_words(task)
        for of_section in lines.values()
        for line in of_section
        for task, square in zip(tasks, line.squares, strict=True)
        if square.style == "score"
    )
    types = sorted(set(map(board.type_in_words, tasks)), key=lambda type: (-above[type], type))
    order = sorted(range(len(tasks)), key=lambda i: types.index(board.type_in_words(tasks[i])))
    blocks = []
    for section, of_section in lines.items():
        if of_section:
            title = ", ".join(given_in_words(section))
            ordered = [line._replace(squares=[line.squares[i] for i in order]) for line in of_section]
            ordered.sort(key=lambda line: _place(board, line, types))
            blocks.append(SectionLines(title, not section.alone, ordered))
    place = Section(first.tier, first.protocol, first.protocol_version, first.budget)
    every = [line.squares for of_section in lines.values() for line in of_section]
    counted = {task for i, task in enumerate(tasks) if any(squares[i].share is not None for squares in every)}
    return Picture(place.id, section_title(place), [tasks[i] for i in order], types, counted, blocks)


def _lines(board: Board, section: Section, tasks: list[str]) -> list[Line]:
    """The lines of a section, without those in which nothing was run."""
    lines = [
        _line(board, section, architecture, tasks)
        for architecture in dict.fromkeys(id for id, _ in board.sections[section])
        if not board.is_floor(architecture)
    ]
    return [line for line in lines if any(square.style not in ("open", "unfit") for square in line.squares)]


def _place(board: Board, line: Line, types: list[str]) -> tuple[object, ...]:
    """Sorting key: by the mean over the tasks of the first type, rows with more of them first."""
    mean, number = line.means.get(types[0], (0.0, 0)) if types else (0.0, 0)
    return -number, -mean, board.order(line.architecture)


def _line(board: Board, section: Section, architecture: str, tasks: list[str]) -> Line:
    squares = [_square(board, section, architecture, task) for task in tasks]
    shares: dict[str, list[float]] = {}
    for task, square in zip(tasks, squares, strict=True):
        if square.share is not None:
            shares.setdefault(board.type_in_words(task), []).append(square.share)
    return Line(
        architecture, squares, {type: (statistics.fmean(values), len(values)) for type, values in shares.items()}
    )


def _square(board: Board, section: Section, architecture: str, task: str) -> Square:
    results = board.sections[section].get((architecture, task), [])
    scored = [result for result in results if result.summary(board.main_metric(task))]
    about = f"{board.name(architecture)}, {board.task_name(task)}"
    if scored:
        return _scored(board, section, task, scored, about)
    if not results:
        return Square("open", "·") if fits(board, architecture, task) else Square("unfit")
    record = results[0].first
    if record.unfit:
        return Square("unfit")
    link = row_link(board, section, results[0])
    reason = f"{about}: {record.status}: {failure_reason(record)}"
    if record.status == "skipped":
        return Square("skipped", "–", reason, link)
    return Square("failed", "×", reason, link)


def _scored(board: Board, section: Section, task: str, results: list[Result], about: str) -> Square:
    """The square of the first of an architecture's configurations that is ranked, else of the
    first: to take the best would be to choose on the test."""
    metric = board.main_metric(task)
    info, group = display_info(metric), board.group(section, task)
    result = next((result for result in results if result.group == group), results[0])
    summary = result.summary(metric)
    assert summary
    text, floor = info.format(summary.mean), board.floor(group, metric) if group else None
    best = [found.mean for other in best_results(board, section, task, metric) if (found := other.summary(metric))]
    reason, link = unranked(board, result), row_link(board, section, result)
    if not reason and at_floor(board, result):
        return Square("floor", text, link=link, share=0.0)
    if reason or floor is None or not best:
        more = f"; the first of {len(results)} settings" if len(results) > 1 else ""
        why = reason or "there is no floor to measure from"
        return Square("apart", text, f"{about}: {metric_label(metric)} {text}{more}; {why}", link)
    share = share_of(info.quality(summary.mean), info.quality(floor[1]), max(map(info.quality, best)))
    return Square("score", text, link=link, share=share)


def share_of(quality: float, floor: float, best: float) -> float:
    """Place of a quality between that of the floor (0) and the best (1)."""
    return min(1.0, max(0.0, (quality - floor) / (best - floor))) if best > floor else 0.0


def row_id(board: Board, section: Section, result: Result) -> str:
    """HTML id of a result's row in the table of its task and section."""
    architecture, task = result.first.architecture, result.first.task
    number = board.sections[section][architecture, task].index(result)  # of several configurations
    return f"{section.id}-{architecture}" + (f"-{number}" if number else "")


def row_link(board: Board, section: Section, result: Result) -> str:
    """Address of that row."""
    return f"{task_file(result.first.task)}#{row_id(board, section, result)}"

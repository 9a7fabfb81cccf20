"""Students beside their teachers: how much of a teacher's score a smaller system keeps, and what it
saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from harness.leaderboard.board import Board
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.pages.panels import Panel, over_logarithm, panels_page
from harness.leaderboard.pages.plots import costs, line_with_deviations
from harness.leaderboard.results import Result, Section
from harness.leaderboard.summary import Summary
from harness.leaderboard.tables.cost import COUNTS, count_cells, mean_of, quiet_cells
from harness.leaderboard.tables.formatting import (
    format_number,
    format_points,
    marked_score,
    metric_label,
    our_row,
    section_title,
    text_cell,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Table
from harness.metrics import display_info
from harness.records import Record
from harness.records.groups import SMOKE

LEAD = (
    (
        "A student learns from what a teacher answers, beside or instead of the labels. Above the students stand their"
        " teachers, and their own architectures without a teacher where somebody ran those. All rows of a table were"
        " scored on the same test."
    ),
    (
        "Where a teacher answered on plain text, before the task was known, its row is the one that was tuned from it."
        " A difference is that to the teacher's row."
    ),
    "The size is that of all numbers that were learnt, at four bytes each. Times are those of a quiet machine.",
)
BYTES = 4
"""Size of a learnt number."""
MIB = 1 << 20

Teacher = tuple[str, str, str]
"""Key, architecture and task of a cell that taught."""


@dataclass(frozen=True)
class Pupil:
    """All seeds of one result, what taught it, and its points less those of its teacher, where one
    row is the teacher's."""

    architecture: str
    result: Result
    summary: Summary
    teachers: tuple[Teacher, ...]
    gain: float | None = None


def students_page(board: Board) -> list[Page]:
    """The page, if something learnt from a teacher."""
    return panels_page("students.html", "Students and teachers", LEAD, _panels(board))


def _panels(board: Board) -> Iterator[Panel]:
    """A panel for each task and each tier, protocol, budget and test in which something was
    taught."""
    for task in board.recorded_tasks:
        places = _places(board, task)
        taught = [place for place, pupils in places.items() if any(pupil.teachers for pupil in pupils)]
        tests = Counter(section for section, _ in taught)
        for section, test in taught:
            id, words = f"students-{task}-{section.id}", section_title(section)
            if tests[section] > 1:
                which = (test or "not recorded")[:12]
                id, words = f"{id}-{which.replace(' ', '_')}", f"{words}, test data {which}"
            shown = board, task, places[section, test], id, words
            yield Panel(_table(*shown), _plot(*shown))


def _places(board: Board, task: str) -> dict[tuple[Section, str], list[Pupil]]:
    """The students, their teachers, and the students' architectures without a teacher, by section
    and test. What a training sees or is given besides labels is no part of the section: a student
    may read texts that its teacher did not."""
    metric = board.main_metric(task)
    found: dict[tuple[Section, str], list[Pupil]] = {}
    for section in board.sections:
        if section.protocol == SMOKE:
            continue
        place = Section(section.tier, section.protocol, section.protocol_version, section.budget)
        for architecture, result in board.results(section, task):
            summary = result.summary(metric)
            if summary and result.group:
                pupil = Pupil(architecture, result, summary, teachers(result.ok))
                found.setdefault((place, result.group.test), []).append(pupil)
    return {place: _related(pupils, metric) for place, pupils in found.items()}


def teachers(records: Iterable[Record]) -> tuple[Teacher, ...]:
    """The cells that taught the training of some records, or one that it started from."""
    ancestors = (each for record in records for each in record.lineage or () if each["role"] == "teacher")
    return tuple(dict.fromkeys((each["key"], each["architecture"], each["task"]) for each in ancestors))


def _related(pupils: Sequence[Pupil], metric: str) -> list[Pupil]:
    """Those of one test that taught, were taught, or could have been: the untaught first, then the
    best. One row of a teacher is what its student is compared with."""
    info = display_info(metric)
    taught = {pupil.architecture for pupil in pupils if pupil.teachers}
    known = {teacher for pupil in pupils for teacher in pupil.teachers}
    kept = []
    for pupil in pupils:
        if pupil.teachers:
            points = [
                info.scale(each.summary.mean)
                for each in pupils
                if any(_is_of(each, teacher) for teacher in pupil.teachers)
            ]
            gain = info.scale(pupil.summary.mean) - points[0] if len(points) == 1 else None
            kept.append(replace(pupil, gain=gain))
        elif pupil.architecture in taught or any(_is_of(pupil, teacher) for teacher in known):
            kept.append(pupil)
    return sorted(kept, key=lambda pupil: (bool(pupil.teachers), -info.quality(pupil.summary.mean), pupil.architecture))


def _is_of(pupil: Pupil, teacher: Teacher) -> bool:
    """True for a teacher's own row, and for its architecture's tuned from its weights."""
    key, architecture, _ = teacher
    if pupil.architecture != architecture or pupil.teachers:
        return False
    ancestors = [
        each["key"] for record in pupil.result.ok for each in record.lineage or () if each["role"] == "weights"
    ]
    return key in [*(record.key for record in pupil.result.ok), *ancestors]


def _table(board: Board, task: str, pupils: Iterable[Pupil], id: str, words: str) -> Table:
    metric = board.main_metric(task)
    info = display_info(metric)
    rows = []
    for pupil in pupils:
        size = mean_of(pupil.result.ok, COUNTS["parameters"].measure)
        cells = [
            text_cell(_words(board, task, pupil)),
            [marked_score(board, pupil.result, metric, pupil.summary)],
            BLANK if pupil.gain is None else [Part(format_points(pupil.gain, info.digits))],
            [Part(format_number(size * BYTES / MIB), order=size)] if size else BLANK,
            count_cells(pupil.result)["FLOPs/example"],
            *quiet_cells(board.speeds.get(pupil.architecture)).values(),
        ]
        rows.append(our_row(board, pupil.architecture, cells))
    columns = ["Architecture", "taught by, or settings", metric_label(metric), "difference to the teacher", "size, MiB"]
    return Table(
        id,
        f"{board.task_name(task)}: {words}",
        [*columns, "FLOPs/example", *quiet_cells(None)],
        [Block("", rows)],
        text_columns=(1,),
    )


def _words(board: Board, task: str, pupil: Pupil) -> str:
    """The names of those who taught, with the task on which they answered if it is another one; of
    the others what they see beside labels, and the settings that tell a result from those of its
    architecture."""
    names = [
        board.name(architecture) + ("" if on == task else f" on {board.task_name(on)}")
        for _, architecture, on in pupil.teachers
    ]
    if names:
        return ", ".join(dict.fromkeys(names))
    besides = Section.of(pupil.result.group).besides if pupil.result.group else ()
    return ", ".join(filter(None, (*besides, pupil.result.settings)))


def _plot(board: Board, task: str, pupils: Iterable[Pupil], id: str, words: str) -> Plot:
    """The score of each row over the time of one answer, as far as it was measured."""
    metric = board.main_metric(task)
    info, data = display_info(metric), []
    axis, latency = costs(board)["latency"]
    for number, pupil in enumerate(pupils):
        if ms := latency(pupil.architecture, pupil.result):
            taught = _words(board, task, pupil) if pupil.teachers else ""
            name = board.name(pupil.architecture) + (f", taught by {taught}" if taught else "")
            data.append(line_with_deviations(name, [(ms, pupil.summary)], info, number))
    layout = over_logarithm(axis, metric)
    title = f"{board.task_name(task)}, {words}: bars are a standard deviation over seeds"
    return Plot(f"plot-{id}", title, data, layout)

"""Distances between our results and those that others report: the values that the survey prints,
and those of papers and toolkits in ``gaps.csv`` of the results folder, with reasons."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import LeaderboardError
from harness.leaderboard.board import Board, task_file
from harness.leaderboard.published import Published, read_rows
from harness.leaderboard.ranking import at_floor
from harness.leaderboard.results import Result, Section
from harness.leaderboard.tables.beside import beside, score_line
from harness.leaderboard.tables.formatting import causes, format_points, metric_label, section_title, starts_at_random
from harness.leaderboard.tables.table import Block, Part, Table, TableRow
from harness.metrics import display_info

COLUMNS = ["task", "architecture", "reported", "by", "with", "why"]
BY = ("paper", "toolkit", "")
TITLE = "Ours and theirs"
SHOWN = ("published", "from", "ours", "difference", "share of the data", "reason")
"""Columns of the tables beside the name of a row."""
LEGEND = (
    "Theirs are values that the survey prints, that papers report, or that toolkits reach with their own code; most"
    " have pretrained vectors and all data. Ours are means on the official test ± the standard deviation over seeds"
    " (number of seeds); with one seed a difference of a point means nothing. The difference is ours minus theirs, in"
    " points, and to the nearer end of a range (0 within it). The share is that of the official training examples."
    " Reasons are those that are known, not all that there are."
)


@dataclass(frozen=True)
class Reported:
    """A score that others report for an architecture on a task, by its main metric in percent, with
    the reason for the distance to ours.

    ``low`` and ``high`` are its ends, the same text for a single number and empty for a line that
    gives a reason alone. ``by`` is one of :data:`BY`; ``conditions`` are theirs.
    """

    task: str
    architecture: str
    low: str
    high: str
    by: str
    conditions: str
    why: str


def read_reported(path: Path) -> list[Reported]:
    """The rows of a CSV file, empty if there is none; :class:`LeaderboardError` names a malformed
    line."""
    lines = []
    for place, row in read_rows(path, COLUMNS) if path.is_file() else ():
        if not row["task"] or not row["architecture"]:
            raise LeaderboardError(f"{place}: expected a task and the id of an architecture")
        found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,4})?)(?:-(\d{1,3}(?:\.\d{1,4})?))?|", row["reported"])
        if not found or float(found[1] or 0) > float(found[2] or found[1] or 0):
            raise LeaderboardError(f"{place}: reported {row['reported'][:40]!r} is no number or range such as 42-44.5")
        if row["by"] not in BY:
            raise LeaderboardError(f"{place}: by {row['by'][:40]!r} is none of {', '.join(filter(None, BY))}, or empty")
        low, high = found[1] or "", found[2] or found[1] or ""
        lines.append(Reported(row["task"], row["architecture"], low, high, row["by"], row["with"], row["why"]))
    return lines


@dataclass(frozen=True)
class Theirs:
    """One value of others: its ends in percent, where it is from, and notes; ``misprint`` as for
    :class:`~harness.leaderboard.published.Published`."""

    low: str
    high: str
    source: str
    notes: tuple[str, ...] = ()
    misprint: bool = False

    @property
    def text(self) -> str:
        """The value, or the range."""
        return self.low if self.low == self.high else f"{self.low} to {self.high}"

    def difference(self, shown: float) -> float:
        """A score in percent, as it is shown, less the nearer end; 0 within the range."""
        return round(shown - min(max(shown, float(self.low)), float(self.high)), 1)


@dataclass(frozen=True)
class Gap:
    """One result of ours with the values of others for the same architecture, task and metric."""

    task: str
    metric: str
    architecture: str
    result: Result
    theirs: tuple[Theirs, ...]
    why: tuple[str, ...]

    @property
    def shown(self) -> float:
        """Our score as pages show it, in percent."""
        summary = self.result.summary(self.metric)
        assert summary
        return display_info(self.metric).round(summary.mean)

    def share(self, board: Board) -> float | None:
        """Our training examples over those of the official training set; None if one is
        unknown."""
        official = _official(board, self.task)
        return self.result.trained_on / official if official and self.result.trained_on else None


@functools.cache  # asked for by the page of each architecture
def gaps(board: Board) -> tuple[list[Gap], int]:
    """The gaps in the order of the tasks and architectures, and the number of pairs of an
    architecture and a task with values of others alone."""
    found, missing = [], set()
    values: dict[tuple[str, str, str], list[Theirs]] = {}
    why: dict[tuple[str, str], dict[str, None]] = {}
    for value in board.published:
        if value.counterpart in board.architectures and value.dataset in board.tasks:
            place = value.counterpart, value.dataset, value.metric
            values.setdefault(place, []).append(_of_survey(value))
    for line in read_reported(board.store.folder / "gaps.csv"):
        if line.low:
            place = line.architecture, line.task, board.main_metric(line.task)
            values.setdefault(place, []).append(Theirs(line.low, line.high, _source(line)))
        if line.why:
            why.setdefault((line.architecture, line.task), {})[line.why] = None
    for (architecture, task, metric), theirs in values.items():
        results = [result for result in beside(board, architecture, task) if result.summary(metric)]
        reasons = tuple(why.get((architecture, task), ()))
        found += [Gap(task, metric, architecture, result, tuple(theirs), reasons) for result in results]
        if not results:
            missing.add((architecture, task))
    return sorted(found, key=lambda gap: _order(board, gap)), len(missing)


def _of_survey(value: Published) -> Theirs:
    return Theirs(value.percent, value.percent, f"survey, table {value.table}", value.notes, value.misprint)


def _source(line: Reported) -> str:
    by = line.by or "others"
    return f"{by} ({line.conditions})" if line.conditions else by


def _order(board: Board, gap: Gap) -> tuple[object, ...]:
    metric = gap.metric != board.main_metric(gap.task)
    return board.known_tasks.index(gap.task), board.order(gap.architecture), metric, gap.metric, gap.result.settings


# --- as tables ---


def gap_tables(board: Board, found: Sequence[Gap]) -> dict[str, Table]:
    """A table for each task that has a gap, by task."""
    of_task: dict[str, list[Gap]] = {}
    for gap in found:
        of_task.setdefault(gap.task, []).append(gap)
    return {
        task: Table(
            f"gaps-{task}",
            f"{board.task_name(task)} {metric_label(board.main_metric(task))}",
            ["Architecture", *SHOWN],
            [Block("", [_row(board, gap) for gap in of_this])],
            text_columns=(2, 6),
        )
        for task, of_this in of_task.items()
    }


def gap_table_of(board: Board, architecture: str) -> Table | None:
    """The gaps of one architecture, a row for each data set and metric; None without any."""
    rows = [
        replace(
            _row(board, gap),
            name=f"{board.task_name(gap.task)} {metric_label(gap.metric)}",
            link=task_file(gap.task),
            classical=False,
        )
        for gap in gaps(board)[0]
        if gap.architecture == architecture
    ]
    title = "Distance from what others report"
    return (
        Table("gaps", title, ["Data set", *SHOWN], [Block("", rows)], [LEGEND], text_columns=(2, 6)) if rows else None
    )


def name(board: Board, gap: Gap) -> str:
    """Name of a gap's result, with its metric where that is not the main one of the task."""
    text = board.result_name(gap.architecture, gap.result)
    return text if gap.metric == board.main_metric(gap.task) else f"{text}, {metric_label(gap.metric)}"


def _row(board: Board, gap: Gap) -> TableRow:
    score = score_line(board, gap.result, gap.metric)
    notes, group = [], gap.result.group
    if group:
        notes = [section_title(Section.of(group)), f"budget {group.budget.name}: {group.budget.words}"]
    notes += filter(None, [at_floor(board, gap.result)])
    cells = [
        [Part(each.text, "", each.notes) for each in gap.theirs],
        [Part(each.source) for each in gap.theirs],
        [score._replace(notes=tuple(notes))],
        [Part(format_points(each.difference(gap.shown))) for each in gap.theirs],
        [Part(_share(board, gap))],
        list(_reasons(board, gap)) or [Part("none known", "quiet")],
    ]
    classical = board.is_classical(gap.architecture)
    return TableRow(name(board, gap), cells, classical, gap.architecture, board.page_of(gap.architecture))


def _share(board: Board, gap: Gap) -> str:
    share, examples = gap.share(board), gap.result.trained_on
    return "not known" if share is None else f"{100 * share:.3g} % ({examples:,} of {_official(board, gap.task):,})"


def _official(board: Board, task: str) -> int:
    """Size of the official training set; 0 if unknown."""
    return board.tasks[task].sizes.get("train", 0) if task in board.tasks else 0


def _reasons(board: Board, gap: Gap) -> Iterator[Part]:
    """Words of gaps.csv, the causes that the records show, and a link to the deviations of the
    architecture."""
    yield from (Part(text) for text in (*gap.why, *causes(board, gap.result)))
    entry = board.architectures.get(gap.architecture)
    if starts_at_random(gap.result) and not (entry and entry.vectors_of_paper):
        yield Part("Word vectors start at random.")
    if entry and entry.deviations:
        count = len(entry.deviations)
        text = f"{count} deviation{'s' * (count > 1)} from the paper"
        yield Part(text, link=board.page_of(gap.architecture))

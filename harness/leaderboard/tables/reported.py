"""Results that papers and toolkits report next to ours, with reasons for the differences; read from
``gaps.csv`` in the results folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import LeaderboardError
from harness.leaderboard.board import Board, Result, versioned
from harness.leaderboard.published import read_rows
from harness.leaderboard.tables.formatting import format_score, metric_label
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow
from harness.records.groups import SMOKE
from harness.settings import FULL

COLUMNS = ["task", "architectures", "theirs", "why"]
LEGEND = (
    "Theirs are papers (P) or re-runs by toolkits (T), most of them with pretrained vectors and full data. Ours are"
    " test scores of tier local: mean ± standard deviation (seeds); with one seed a difference of a point means"
    " nothing. In brackets, where a run was capped: training examples and passes over them."
)


@dataclass(frozen=True)
class Reported:
    """Scores that others report for architectures on one task, and the reason for the difference to
    ours (empty if there is none)."""

    task: str
    architectures: tuple[str, ...]
    theirs: str
    why: str


def read_reported(path: Path) -> list[Reported]:
    """The rows of a CSV file, empty if there is none; :class:`LeaderboardError` names a malformed
    line."""
    lines = []
    for place, row in read_rows(path, COLUMNS) if path.is_file() else ():
        if not row["task"] or not row["architectures"].split():
            raise LeaderboardError(f"{place}: expected a task and architecture ids with spaces between")
        lines.append(Reported(row["task"], tuple(row["architectures"].split()), row["theirs"], row["why"]))
    return lines


def reported_table(board: Board) -> Table | None:
    """One row per line of the file; None if the results folder has no such file."""
    lines = read_reported(board.store.folder / "gaps.csv")
    if not lines:
        return None
    rows = []
    for line in lines:
        metric = board.main_metric(line.task)
        ours = [part for architecture in line.architectures for part in _ours(board, architecture, line.task, metric)]
        name = f"{board.task_name(line.task)} {metric_label(metric)}"
        cells = [[Part(line.theirs)] if line.theirs else BLANK, ours, [Part(line.why)] if line.why else BLANK]
        rows.append(TableRow(name, cells))
    title = "Compared with reported results"
    return Table(
        "gaps", title, ["Task", "theirs", "ours", "why the gap"], [Block("", rows)], [LEGEND], text_columns=(1, 2, 3)
    )


def _ours(board: Board, architecture: str, task: str, metric: str) -> Iterator[Part]:
    """A line for each configuration of an architecture that was scored on the real corpus."""
    scores = [
        (versioned(section.protocol, section.protocol_version), result, summary)
        for section, results in board.sections.items()
        if section.tier != "mini" and section.protocol != SMOKE
        for result in results.get((architecture, task), [])
        if (summary := result.summary(metric))
    ]
    several = len({protocol for protocol, _, _ in scores}) > 1
    for protocol, result, summary in scores:
        rules = f" (protocol {protocol})" if several else ""
        yield Part(f"{architecture} {format_score(metric, summary)}{rules}{_cap(result)}{_choice(result)}")
    if not scores:
        yield Part(f"{architecture} not yet", "quiet")


def _cap(result: Result) -> str:
    budget = result.group.budget if result.group else None
    return "" if budget is None or budget.name == FULL else f" [{budget.words}]"


def _choice(result: Result) -> str:
    """Hyperparameters in which a configuration differs from the others of its architecture, without
    the caps of :func:`_cap`."""
    settings = [setting for setting in result.settings.split(", ") if setting and not setting.startswith("limits.")]
    return f" with {', '.join(settings)}" if settings else ""

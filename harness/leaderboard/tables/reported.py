"""Ours beside the figures that papers and toolkits report, and why they differ: ``gaps.csv`` in the
results folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.leaderboard.board import Board, LeaderboardError, Result, read_rows
from harness.leaderboard.tables.formatting import format_score, metric_label
from harness.leaderboard.tables.table import BLANK, Block, Part, Row, Table

COLUMNS = ["task", "architectures", "theirs", "why"]
LEGEND = (
    "Theirs are papers (P) or re-runs by toolkits (T), most of them with pretrained vectors and full data. Ours are"
    " test scores of tier local: mean ± standard deviation (seeds); with one seed a difference of a point means"
    " nothing. In brackets, where a run was capped: training examples and passes over them."
)


@dataclass(frozen=True)
class Gap:
    """Architectures on one task, what others report for them, and the reason why ours is another
    figure (empty: there is no gap)."""

    task: str
    architectures: tuple[str, ...]
    theirs: str
    why: str


def read_gaps(path: Path) -> list[Gap]:
    """The rows of a CSV file, none where there is no such file; :class:`LeaderboardError` names the
    line that is not as it should be."""
    gaps = []
    for place, row in read_rows(path, COLUMNS) if path.is_file() else ():
        if not row["task"] or not row["architectures"].split():
            raise LeaderboardError(f"{place}: expected a task and architecture ids with spaces between")
        gaps.append(Gap(row["task"], tuple(row["architectures"].split()), row["theirs"], row["why"]))
    return gaps


def gap_table(board: Board) -> Table | None:
    """One row per line of the file; None where the results folder has none."""
    gaps = read_gaps(board.store.folder / "gaps.csv")
    if not gaps:
        return None
    rows = []
    for gap in gaps:
        metric = board.main_metric(gap.task)
        ours = [part for architecture in gap.architectures for part in _ours(board, architecture, gap.task, metric)]
        name = f"{board.task_name(gap.task)} {metric_label(metric)}"
        rows.append(
            Row(name, [[Part(gap.theirs)] if gap.theirs else BLANK, ours, [Part(gap.why)] if gap.why else BLANK])
        )
    title = "Against the figures one should come near"
    return Table(
        "gaps", title, ["Task", "theirs", "ours", "why the gap"], [Block("", rows)], [LEGEND], text_columns=(1, 2, 3)
    )


def _ours(board: Board, architecture: str, task: str, metric: str) -> Iterator[Part]:
    """A line for each configuration of an architecture that was scored on the real corpus."""
    found = [
        (result, summary)
        for section, results in board.sections.items()
        if section.tier != "mini" and section.protocol != "smoke"
        for result in results.get((architecture, task), [])
        if (summary := result.summary(metric))
    ]
    for result, summary in found:
        yield Part(f"{architecture} {format_score(metric, summary)}{_cap(result)}{_choice(result)}")
    if not found:
        yield Part(f"{architecture} not yet", "quiet")


def _cap(result: Result) -> str:
    limits = result.first.hyperparameters.get("limits", {})
    if not any(limits.get(name) for name in ("max_train", "max_epochs")):
        return ""
    examples = f"{limits['max_train']:,} examples" if limits.get("max_train") else "all examples"
    return f" [{examples}, {limits['max_epochs']} passes]" if limits.get("max_epochs") else f" [{examples}]"


def _choice(result: Result) -> str:
    """Hyperparameters in which a configuration differs from its siblings; caps are said already."""
    chosen = [setting for setting in result.settings.split(", ") if setting and not setting.startswith("limits.")]
    return f" with {', '.join(chosen)}" if chosen else ""

"""Mean ranks across the tasks of a section, as a plot and a table."""

from __future__ import annotations

import html
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness.errors import LeaderboardError
from harness.leaderboard.board import Board
from harness.leaderboard.over_tasks import (
    RANKED_SYSTEMS,
    RANKED_TASKS,
    Ranks,
    complete_block,
    critical_difference,
    normalised_means,
)
from harness.leaderboard.pages.page import Plot
from harness.leaderboard.ranking import ranked
from harness.leaderboard.results import Result, Section
from harness.leaderboard.tables.formatting import section_title
from harness.leaderboard.tables.table import Block, Part, Table, TableRow
from harness.metrics import display_info
from harness.records import Record


@dataclass(frozen=True)
class Ranking:
    """Mean ranks across the tasks of one section; without a plot if there are too few."""

    id: str
    title: str
    lead: list[str]
    plot: Plot | None = None
    table: Table | None = None


SectionRanks = Callable[[Section], Ranks | None]


@contextmanager
def rank_in_background(board: Board) -> Iterator[SectionRanks]:
    """Ranks every section in another process, because importing autorank takes seconds; calls wait
    for the result."""
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else None)
    ) as pool:
        ranks = {
            section: pool.submit(critical_difference, *_rank_arguments(board, section))
            for section in board.sections
            if section.ranked
        }
        yield lambda section: ranks[section].result()


def _rank_arguments(board: Board, section: Section) -> tuple[dict[str, dict[str, float]], set[str]]:
    """Arguments of :func:`critical_difference`."""
    scores, metrics = ranked_scores(board, section)
    return scores, {task for task, metric in metrics.items() if display_info(metric).lower_is_better}


def ranking_of(board: Board, section: Section, section_ranks: SectionRanks | None) -> Ranking:
    """Mean ranks with the critical difference, over the architectures that have a score on every
    task that is counted."""
    scores, metrics = ranked_scores(board, section)
    title = f"Across tasks: {section_title(section)}"
    id = f"ranks-{section.id}"
    ranks = section_ranks(section) if section_ranks else critical_difference(*_rank_arguments(board, section))
    if ranks is None:
        return Ranking(id, title, [_why_no_ranks(scores)])
    names = [board.name(architecture) for architecture in ranks.names]
    lead = _ranking_lead(board, ranks, len(scores), len(metrics))
    means, reason = _means(board, section, ranks, scores, metrics)
    table = _rank_table(f"{id}-table", names, ranks, means, reason)
    return Ranking(id, title, lead, _diagram(f"{id}-plot", names, ranks), table)


def _why_no_ranks(scores: dict[str, dict[str, float]]) -> str:
    """Lack of mean ranks explained: too few results, or no package that computes them."""
    if complete_block(scores, RANKED_TASKS, RANKED_SYSTEMS)[0]:
        return "No ranks: the package autorank is not installed; pip install 'archbench[stats]'."
    tasks = max((len(by_task) for by_task in scores.values()), default=0)
    return (
        f"No ranks: they need at least {RANKED_SYSTEMS} architectures that share at least {RANKED_TASKS} tasks."
        f" {len(scores)} architectures have scores here, on up to {tasks} tasks; results that are not ranked on their"
        " task do not count."
    )


def _means(
    board: Board, section: Section, ranks: Ranks, scores: dict[str, dict[str, float]], metrics: dict[str, str]
) -> tuple[dict[str, float], str]:
    """Normalised means of the ranked architectures over the same tasks, or the reason why there
    are none."""
    counted = {id: {task: scores[id][task] for task in ranks.tasks} for id in ranks.names}
    floors = {}
    for task in ranks.tasks:
        group = board.group(section, task)
        if group and (floor := board.floor(group, metrics[task])):
            floors[task] = floor[1]
    try:
        means = normalised_means(
            counted,
            floors,
            lower_is_better={task for task in ranks.tasks if display_info(metrics[task]).lower_is_better},
        )
    except LeaderboardError as error:
        return {}, str(error)
    return means, ""


def _ranking_lead(board: Board, ranks: Ranks, architectures: int, tasks: int) -> list[str]:
    names = ", ".join(map(board.task_name, ranks.tasks))
    return [
        (
            f"{len(ranks.names)} of {architectures} architectures have a score on each of {len(ranks.tasks)} of"
            f" {tasks} tasks ({names}); the others are left out, and so are results that are not ranked on their"
            " task. Rank 1 is the best."
        ),
        (
            f"Friedman's test that all are alike: p = {ranks.p:.3g}. Two architectures differ significantly if"
            f" their mean ranks are more than {ranks.cd:.2f} apart (Nemenyi, 5 %); bars join those that are not."
        ),
    ]


def _rank_table(id: str, names: Sequence[str], ranks: Ranks, means: dict[str, float], reason: str) -> Table:
    """Ranks, and means over the same tasks; ``reason`` says why there are no means."""
    rows = []
    for architecture, name, rank in zip(ranks.names, names, ranks.mean_ranks, strict=True):
        near = sum(abs(other - rank) <= ranks.cd for other in ranks.mean_ranks) - 1
        cells = [[Part(f"{rank:.2f}", order=rank)], [Part(str(near), order=near)]]
        if means:
            cells.append([Part(f"{means[architecture]:.3f}", order=means[architecture])])
        rows.append(TableRow(name, cells, title=architecture))
    columns = ["Architecture", "mean rank", "others within the critical difference"]
    if means:
        columns.append("mean of normalised scores")
        reason = "Normalised: 0 is the best floor of a task, 1 the best of these architectures."
    return Table(id, "Mean ranks", columns, [Block("", rows)], [reason])


def ranked_scores(board: Board, section: Section) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Main scores by architecture and task, and the metric of each task.

    Only :func:`~harness.leaderboard.ranking.ranked` results count. An architecture with several
    settings is represented by those that did best on dev, because the best on test would be a
    choice made on the test split.
    """
    scores: dict[str, dict[str, float]] = {}
    metrics: dict[str, str] = {}
    for task in board.recorded_tasks:
        metric = board.main_metric(task)
        configurations: dict[str, list[Result]] = {}
        for architecture, result in ranked(board, section, task, metric):
            configurations.setdefault(architecture, []).append(result)
        for architecture, results in configurations.items():
            summary = max(results, key=lambda result: _dev_quality(result.ok, metric)).summary(metric)
            assert summary
            scores.setdefault(architecture, {})[task] = summary.mean
            metrics[task] = metric
    return scores, metrics


def _dev_quality(records: Sequence[Record], metric: str) -> float:
    """Mean dev score with its sign such that more is better; minus infinity if there is none."""
    values = [record.scores["dev"][metric] for record in records if metric in record.scores.get("dev", {})]
    return display_info(metric).quality(sum(values) / len(values)) if values else float("-inf")


def _diagram(id: str, names: Sequence[str], ranks: Ranks) -> Plot:
    """Architectures at their mean ranks, best at the top, with a bar over each group within the
    critical difference."""
    rows = list(range(1, len(names) + 1))
    data: list[dict[str, Any]] = []
    for i, (start, end) in enumerate(groups(ranks.mean_ranks, ranks.cd)):
        height = (start + end) / 2 + 1
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": "no more than the critical difference apart",
                "legendgroup": "group",
                "x": [ranks.mean_ranks[start], ranks.mean_ranks[end]],
                "y": [height, height],
                "showlegend": i == 0,
                "hoverinfo": "skip",
                "line": {"color": "var(--series-2)", "width": 4},
                "marker": {"symbol": "line-ns-open", "size": 10},
            }
        )
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "mean rank",
            "x": [round(rank, 4) for rank in ranks.mean_ranks],
            "y": rows,
            "text": [html.escape(name) for name in names],
            "marker": {"size": 9, "color": "var(--series-1)"},
            "hovertemplate": "%{text}: %{x:.2f}<extra></extra>",
        }
    )
    layout = {
        "xaxis": {"title": {"text": f"mean rank over {len(ranks.tasks)} tasks (1 is the best)"}},
        "yaxis": {
            "tickvals": rows,
            "ticktext": [html.escape(name) for name in names],
            "autorange": "reversed",
            "automargin": True,
        },
        "hovermode": "closest",
        "showlegend": True,
        "height": max(416, 180 + 26 * len(names)),
    }
    return Plot(id, f"Mean ranks, critical difference {ranks.cd:.2f}", data, layout)


def groups(ranks: Sequence[float], cd: float) -> list[tuple[int, int]]:
    """First and last position of every longest run of neighbours (best first) within ``cd`` of each
    other; runs of one are left out."""
    runs: list[tuple[int, int]] = []
    for start in range(len(ranks)):
        end = max(i for i in range(start, len(ranks)) if ranks[i] - ranks[start] <= cd)
        if end > start and (not runs or end > runs[-1][1]):
            runs.append((start, end))
    return runs

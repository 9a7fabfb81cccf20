"""Tables of one task: every result with its metrics, its cost, and the significance of its rank."""

from __future__ import annotations

import bisect
from typing import Any

from harness.leaderboard.board import Board, Result, Section
from harness.leaderboard.comparison import Comparison, compare
from harness.leaderboard.tables.cost import COLUMNS, cost_cells
from harness.leaderboard.tables.formatting import (
    best_results,
    format_score,
    interval_part,
    metric_label,
    our_row,
    score_parts,
    section_title,
    text_cell,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Table
from harness.metrics import display_info


def task_tables(board: Board, task: str) -> list[Table]:
    """All results on one task, best first: a table for each section, so that sorting never mixes
    results that cannot be compared."""
    return [section_table(board, section, task) for section in board.sections if board.results(section, task)]


def metrics_of(board: Board, task: str) -> list[str]:
    """The metrics that records of a task have: the main one, then in the order that the task
    declares, then the rest."""
    main = board.main_metric(task)
    recorded = {
        metric
        for section in board.sections
        for _, result in board.results(section, task)
        for metric in result.summaries
    }
    declared = board.tasks[task].metrics if task in board.tasks else ()
    others = [metric for metric in declared if metric in recorded and metric != main]
    return [main, *others, *sorted(recorded - set(declared) - {main})]


def section_table(board: Board, section: Section, task: str) -> Table:
    """The results of one section's task."""
    main, *others = metrics_of(board, task)
    best = {metric: best_results(board, section, task, metric) for metric in (main, *others)}
    comparison = compare(board, section, task)
    places = ranks(board, section, task, main)
    rows = []
    for architecture, result in sorted(board.results(section, task), key=lambda pair: _order(board, main, *pair)):
        entry = board.architectures.get(architecture)
        rank = places.get(result)
        cells = [
            text_cell(entry and entry.family),
            text_cell(entry and entry.kind),
            score_parts(board, result, main, result in best[main]),
            [interval_part(comparison, result)],
            BLANK if rank is None else [Part(format_rank(rank, comparison, result), order=rank)],
            *(_score_cell(result, metric, result in best[metric]) for metric in others),
        ]
        rows.append(our_row(board, architecture, [*cells, *cost_cells(result)]))
    columns = [
        *("Architecture", "family", "kind", metric_label(main), "95 % interval", "rank"),
        *map(metric_label, others),
        *COLUMNS,
    ]
    return Table(
        f"results-{task}-{section.id}",
        f"{board.task_name(task)}: quality and cost, {section_title(section)}",
        columns,
        [Block("", rows)],
        [verdict(board, comparison)] if comparison else [],
        text_columns=(1, 2, len(columns) - 1),
        sortable=True,
        filters=(1, 2),
    )


def _score_cell(result: Result, metric: str, best: bool) -> list[Part]:
    summary = result.summary(metric)
    if summary is None:
        return BLANK
    order = display_info(metric).scale(summary.mean)
    return [Part(format_score(metric, summary), "best" if best else "", order=order)]


def ranks(board: Board, section: Section, task: str, metric: str) -> dict[Result, int]:
    """Ranks from 1 of :meth:`Board.rivals`; results with the same rounded score share the better
    rank."""
    info = display_info(metric)
    losses = {
        result: -info.quality(info.round(summary.mean))
        for _, result in board.rivals(section, task, metric)
        if (summary := result.summary(metric))
    }
    order = sorted(losses.values())
    return {result: 1 + bisect.bisect_left(order, loss) for result, loss in losses.items()}


def format_rank(rank: int, comparison: Comparison | None, result: Result) -> str:
    """A rank, with a remark if several results share the first place."""
    shared = comparison is not None and len(comparison.tie_group) > 1 and comparison.shares_first_place(result)
    return f"{rank}, shares first place" if shared else str(rank)


def verdict(board: Board, comparison: Comparison) -> str:
    """One sentence on the significance of the lead."""
    names = [board.name(comparison.results[i][0]) for i in sorted(comparison.tie_group)]
    tested = len(comparison.rivals)
    if tested < 2:
        return (
            "Fewer than two comparable results here have saved predictions, so the significance of a lead cannot be"
            " tested."
        )
    if len(names) == 1:
        return (
            f"The lead of {names[0]} is significant: each of the other results tested here ({tested - 1}) is"
            " significantly worse."
        )
    return (
        f"{len(names)} of {tested} results tested share the first place, because they are not significantly worse than"
        f" the best: {'; '.join(names)}."
    )


def _order(board: Board, metric: str, architecture: str, result: Result) -> tuple[Any, ...]:
    """Sorting key: best mean first, then results without a score, then skipped ones."""
    summary, info = result.summary(metric), display_info(metric)
    loss = -info.quality(info.round(summary.mean)) if summary else 0.0
    return result.skipped, summary is None, loss, board.order(architecture), result.settings

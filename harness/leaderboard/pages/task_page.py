"""One task: every result with its metrics, what it cost, and whether its place among the others is
more than chance."""

from __future__ import annotations

import bisect
from typing import Any

from harness.leaderboard.board import Board, Result, Section
from harness.leaderboard.comparison import Evidence, evidence
from harness.leaderboard.tables.cost import COLUMNS, cost_cells
from harness.leaderboard.tables.formatting import (
    best_results,
    format_interval,
    format_score,
    interval,
    metric_label,
    our_row,
    score_parts,
    section_title,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Table
from harness.metrics import display_info


def task_tables(board: Board, task: str) -> list[Table]:
    """Every result on one task, best first: a table for each section, so that sorting never mixes
    what cannot be compared."""
    return [section_table(board, section, task) for section in board.sections if board.results(section, task)]


def metrics_of(board: Board, task: str) -> list[str]:
    """The metrics that records of a task have, the main one first, then in the order that the task
    declares."""
    main = board.main_metric(task)
    seen = {
        metric
        for section in board.sections
        for _, result in board.results(section, task)
        for metric in result.summaries
    }
    declared = board.tasks[task].metrics if task in board.tasks else ()
    return [main, *(m for m in declared if m in seen and m != main), *sorted(seen - set(declared) - {main})]


def section_table(board: Board, section: Section, task: str) -> Table:
    """The results of one section's task."""
    main, *others = metrics_of(board, task)
    mine = board.results(section, task)
    best = {m: best_results(board, section, task, m) for m in (main, *others)}
    known = evidence(board, section, task)
    places = ranks(board, section, task, main)
    rows = []
    for architecture, result in sorted(mine, key=lambda pair: _quality(board, main, *pair)):
        entry = board.architectures.get(architecture)
        bounds = interval(known, result)
        cells = [
            [Part(entry.family if entry else "?")],
            [Part(entry.kind if entry else "?")],
            score_parts(board, result, main, result in best[main]),
            [Part(format_interval(main, bounds), order=display_info(main).shown(bounds[0]))] if bounds else BLANK,
            [Part(place(places[result], known, result), order=places[result])] if result in places else BLANK,
        ]
        for metric in others:
            summary = result.summary(metric)
            style = "best" if result in best[metric] else ""
            order = display_info(metric).shown(summary.mean) if summary else None
            cells.append([Part(format_score(metric, summary), style, order=order)] if summary else BLANK)
        rows.append(our_row(board, architecture, [*cells, *cost_cells(result)]))
    columns = [
        "Architecture",
        "family",
        "kind",
        metric_label(main),
        "95 % interval",
        "rank",
        *map(metric_label, others),
        *COLUMNS,
    ]
    title = f"{board.task_name(task)}: quality and cost, {section_title(section)}"
    lead = [verdict(board, known)] if known else []
    identity = f"results-{task}-{section.id}"
    return Table(
        identity, title, columns, [Block("", rows)], lead, (1, 2, len(columns) - 1), sortable=True, filters=(1, 2)
    )


def ranks(board: Board, section: Section, task: str, metric: str) -> dict[Result, int]:
    """Places from 1 of :meth:`Board.rivals`; equal ones as shown share the better place."""
    info = display_info(metric)
    losses = {
        result: -info.quality(info.rounded(summary.mean))
        for _, result in board.rivals(section, task, metric)
        if (summary := result.summary(metric))
    }
    order = sorted(losses.values())
    return {result: 1 + bisect.bisect_left(order, loss) for result, loss in losses.items()}


def place(rank: int, known: Evidence | None, result: Result) -> str:
    """A rank, and whether the row shares the first place with others."""
    shares = known is not None and len(known.tied) > 1 and known.row(result) in known.tied
    return f"{rank}, shares first place" if shares else str(rank)


def verdict(board: Board, known: Evidence) -> str:
    """Whether the lead is real, in a sentence."""
    names = [board.name(known.results[i][0]) for i in sorted(known.tied)]
    tested = len(known.rivals)
    if tested < 2:
        return (
            "Fewer than two comparable results here have saved predictions: whether a lead is more than chance cannot"
            " be said."
        )
    if len(names) == 1:
        return (
            f"The lead of {names[0]} is more than chance: "
            f"each of the other results tested here ({tested - 1}) differs from it significantly."
        )
    return (
        f"{len(names)} of {tested} results tested share the first place, since chance may explain their distance:"
        f" {'; '.join(names)}."
    )


def _quality(board: Board, metric: str, architecture: str, result: Result) -> tuple[Any, ...]:
    """Sorting key: best mean first, then what has no score, then what was skipped."""
    summary = result.summary(metric)
    info = display_info(metric)
    skipped = all(record.status == "skipped" for record in result.records)
    return (
        skipped,
        summary is None,
        -info.quality(info.rounded(summary.mean)) if summary else 0.0,
        board.order(architecture),
        result.settings,
    )

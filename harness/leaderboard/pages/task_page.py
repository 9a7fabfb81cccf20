"""Tables of one task: every result with its metrics, its cost, and the significance of its rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.leaderboard.board import Board
from harness.leaderboard.comparison import Comparison, compare
from harness.leaderboard.pages.compare_page import place_of, result_id
from harness.leaderboard.picture import row_id
from harness.leaderboard.ranking import best_results, floor_missing, ranks, remarks
from harness.leaderboard.results import Pairs, Result, Section
from harness.leaderboard.tables.cost import COLUMNS, MEASURES, QUIET, cost_cells, quiet_cells
from harness.leaderboard.tables.formatting import (
    format_p,
    format_score,
    interval_part,
    metric_label,
    our_row,
    score_parts,
    section_title,
    text_cell,
)
from harness.leaderboard.tables.overlap import overlap_lead
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow
from harness.metrics import display_info

MOST_NAMES = 6
"""Names that a sentence lists."""


def task_tables(board: Board, task: str) -> list[Table]:
    """All results on one task, best first: a table for each section, so that sorting does not mix
    budgets, protocols, or rows that see more than others. Sections without any score come last."""
    shown = {section: pairs for section in board.sections if (pairs := _shown(board, section, task))}
    order = sorted(shown, key=lambda section: not any(result.ok for _, result in shown[section]))
    return [section_table(board, section, task) for section in order]


SHOWN = ("95 % interval", "rank", "family", "parameters", *QUIET)
"""Columns that stand beside name and main score; a reader asks for the others."""
FILTERS = ("family", "kind")
TEXTS = ("family", "kind", "device")
MORE_IS_BETTER = (QUIET[1], "seeds ok", "training examples", *list(MEASURES)[:2])
"""Columns of numbers beside the metrics of which a reader wants the largest first."""


def section_table(board: Board, section: Section, task: str) -> Table:
    """The results of one section's task."""
    main, *others = board.metrics_of(task)
    # Two metrics of one unit, such as the perplexity and its logarithm, are one column.
    others = [metric for metric in others if metric_label(metric) != metric_label(main)]
    best = {metric: best_results(board, section, task, metric) for metric in (main, *others)}
    comparison = compare(board, section, task)
    places = ranks(board, section, task, main)
    rows: list[TableRow] = []
    columns: list[str] = []
    for architecture, result in sorted(_shown(board, section, task), key=lambda pair: _order(board, main, *pair)):
        entry, rank = board.architectures.get(architecture), places.get(result)
        cells = {
            metric_label(main): score_parts(board, result, main, result in best[main]),
            "95 % interval": [interval_part(comparison, result)],
            "rank": BLANK if rank is None else [Part(format_rank(rank, comparison, result), order=rank)],
            "family": text_cell(entry and entry.family),
            "kind": text_cell(entry and entry.kind),
            "± over seeds": _deviation_cell(result, main),
            **{metric_label(metric): _score_cell(result, metric, result in best[metric]) for metric in others},
            **quiet_cells(board.speeds.get(architecture)),
            **dict(zip(COLUMNS, cost_cells(result), strict=True)),
        }
        columns = [metric_label(main), *SHOWN]
        columns += [name for name in cells if name not in columns]
        row = our_row(board, architecture, [cells[name] for name in columns])
        compared = comparison is not None and comparison.row(result) is not None
        ticked = result_id(board, section, architecture, result) if compared else ""
        id = row_id(board, section, result)
        rows.append(replace(row, name=board.result_name(architecture, result), id=id, compare=ticked))
    names = ["Architecture", *columns]
    lower = {metric_label(metric) for metric in (main, *others) if display_info(metric).lower_is_better}
    lower |= {"rank", QUIET[0], *COLUMNS} - {*MORE_IS_BETTER, *TEXTS}
    return Table(
        f"results-{task}-{section.id}",
        f"{board.task_name(task)}: quality and cost, {section_title(section)}",
        names,
        [Block("", rows)],
        [
            *remarks(board, section, task),
            *([verdict(board, comparison)] if comparison and places else []),
            *overlap_lead(board.results(section, task)),
            *floor_missing(board, section, task),
        ],
        text_columns=tuple(map(names.index, TEXTS)),
        sortable=True,
        filters=tuple(map(names.index, FILTERS)),
        lower=tuple(i for i, name in enumerate(names) if name in lower),
        more=tuple(range(2 + len(SHOWN), len(names))),
        comparable=(place_of(section), task),
    )


def _shown(board: Board, section: Section, task: str) -> Pairs:
    """The results of a section's task without those that do not fit it."""
    return [(architecture, result) for architecture, result in board.results(section, task) if not result.unfit]


def _score_cell(result: Result, metric: str, best: bool) -> list[Part]:
    summary = result.summary(metric)
    if summary is None:
        return BLANK
    order = display_info(metric).scale(summary.mean)
    return [Part(format_score(metric, summary), "best" if best else "", order=order)]


def _deviation_cell(result: Result, metric: str) -> list[Part]:
    """The standard deviation over seeds, by which unsteady rows are found; a dash for one seed."""
    summary = result.summary(metric)
    if summary is None or summary.sd is None:
        return BLANK
    info = display_info(metric)
    order = info.scale_deviation(summary.mean, summary.sd)
    return [Part(info.format_deviation(summary.mean, summary.sd), order=order)]


def format_rank(rank: int, comparison: Comparison | None, result: Result) -> str:
    """A rank, with a remark if several results share the first place, and the corrected p of the
    distance to the best."""
    if comparison is None:
        return str(rank)
    shared = len(comparison.tie_group) > 1 and comparison.shares_first_place(result)
    p = comparison.corrected_p(result)
    return f"{rank}{', shares first place' if shared else ''}{'' if p is None else f' ({format_p(p)})'}"


def verdict(board: Board, comparison: Comparison) -> str:
    """Sentences on the significance of the lead, and on the pairs that are told apart at all."""
    names = [board.result_name(*comparison.results[i]) for i in sorted(comparison.tie_group)]
    tested = len(comparison.rivals)
    if tested < 2:
        return (
            "Fewer than two comparable results here have saved predictions, so the significance of a lead cannot be"
            " tested."
        )
    sentences = [_first_place(comparison, names, tested)]
    told, pairs = comparison.told_apart, comparison.pairs
    sentences.append(f"Pairs of these results that are told apart at all: {told:,} of {pairs:,}.")
    if comparison.untested:
        sentences.append(f"Not tested, because outcomes of these examples are missing: {comparison.untested}.")
    return " ".join(sentences)


def _first_place(comparison: Comparison, names: list[str], tested: int) -> str:
    if comparison.doubt:
        alone = "By the test examples alone" if max(comparison.seeds) == 1 else "As far as these seeds tell"
        place = (
            f"each of the other results tested here ({tested - 1}) is behind {names[0]}"
            if len(names) == 1
            else f"{len(names)} of {tested} results tested share the first place: {_some(names)}"
        )
        return f"{comparison.doubt[0].upper()}{comparison.doubt[1:]}. {alone}, {place}."
    if comparison.leads:
        return (
            f"The lead of {names[0]} is significant: each of the other results tested here ({tested - 1}) is"
            " significantly worse, on other test examples and with other seeds."
        )
    return (
        f"{len(names)} of {tested} results tested share the first place, because they are not significantly worse than"
        f" the best: {_some(names)}."
    )


def _some(names: list[str]) -> str:
    """The first names, and the number of the others."""
    more = len(names) - MOST_NAMES
    return "; ".join(names[:MOST_NAMES]) + (f"; and {more} more, which have rank 1 below" if more > 0 else "")


def _order(board: Board, metric: str, architecture: str, result: Result) -> tuple[Any, ...]:
    """Sorting key: best mean first, then results without a score, then skipped ones."""
    summary, info = result.summary(metric), display_info(metric)
    loss = -info.quality(info.round(summary.mean)) if summary else 0.0
    return result.skipped, summary is None, loss, board.order(architecture), result.settings

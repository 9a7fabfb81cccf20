"""The worth of pre-training: scores against the operations of the whole chain of trainings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.leaderboard.board import Board
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.pages.panels import Panel, over_logarithm, panels_page
from harness.leaderboard.pages.plots import line_with_deviations
from harness.leaderboard.results import Result, Section
from harness.leaderboard.summary import Summary
from harness.leaderboard.tables.formatting import (
    format_magnitude,
    format_points,
    marked_score,
    metric_label,
    section_title,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow
from harness.metrics import display_info
from harness.records import Record
from harness.records.groups import SMOKE, cell_without

NOTHING = "random weights"
"""Learnt before by an architecture that learns its task alone."""
LEAD = (
    (
        "Each point is an architecture that was tuned on a task: from weights that it learnt before, and from random"
        " ones. A line joins the points of one objective. The operations are those of the whole chain: of"
        " pre-training, pilots included, and of tuning. The tokens are those that the trainings before read, with"
        " labels or without; of recordings, frames."
    ),
    (
        "A difference is that to the same architecture with the same settings, labels and test, tuned from random"
        " weights; a dash where nobody ran that."
    ),
)


@dataclass(frozen=True)
class Chain:
    """All seeds of one tuning: what was learnt before (:data:`NOTHING`, or the objective), tokens
    read for it, operations in all, and points above random weights."""

    result: Result
    learnt: str
    tokens: float
    flops: float
    summary: Summary
    gain: float | None

    @property
    def architecture(self) -> str:
        return self.result.first.architecture

    @property
    def order(self) -> tuple[bool, str, str, float]:
        return self.learnt != NOTHING, self.architecture, self.learnt, self.flops


def pretraining_page(board: Board) -> list[Page]:
    """The page, if a record tells of a tuning from weights that were learnt before."""
    return panels_page("pretraining.html", "What pre-training is worth", LEAD, _panels(board))


def _panels(board: Board) -> Iterator[Panel]:
    """A panel for each task and section in which something was tuned; what was read before is no
    part of the section."""
    for task in board.recorded_tasks:
        metric = board.main_metric(task)
        places: dict[Section, list[Result]] = {}
        for section in board.sections:
            if section.protocol != SMOKE:
                found = [result for _, result in board.results(section, task)]
                places.setdefault(section._replace(sees=()), []).extend(found)
        for place, results in places.items():
            chains = sorted(_chains(board, results, metric), key=lambda chain: chain.order)
            if any(chain.learnt != NOTHING for chain in chains):
                shown = board, place, task, metric, chains
                yield Panel(_table(*shown), _plot(*shown))


def _chains(board: Board, results: Iterable[Result], metric: str) -> Iterator[Chain]:
    """The tunings among results: those from weights that were learnt before, and those from random
    weights of the same architectures."""
    info = display_info(metric)
    scored = [(result, summary) for result in results if (summary := result.summary(metric))]
    taught = {result.first.architecture for result, _ in scored if objective(result.first)}
    rest = [each for each in scored if each[0].first.architecture in taught and not each[0].first.lineage]
    plain = {_setting(board, result): summary.mean for result, summary in rest}
    for result, summary in scored:
        if result.first.architecture not in taught or (result.first.lineage and not objective(result.first)):
            continue
        base = plain.get(_setting(board, result)) if result.first.lineage else None
        yield Chain(
            result,
            objective(result.first) or NOTHING,
            fmean(sum(each.get("tokens", 0) for each in record.lineage or ()) for record in result.ok),
            fmean(_operations(record) for record in result.ok),
            summary,
            None if base is None else info.scale(summary.mean) - info.scale(base),
        )


def objective(record: Record) -> str:
    """The objectives, in their order, that the weights had learnt from which a record started;
    empty for random ones."""
    names = [each["objective"] for each in record.lineage or () if each["role"] == "weights" and each.get("objective")]
    return ", then ".join(map(words, names))


def words(name: str) -> str:
    """The name of a class in words.

    >>> words("ReplacedPieces")
    'replaced pieces'
    """
    return " ".join(re.findall("[A-Z][a-z0-9]*", name)).lower() or name


def _setting(board: Board, result: Result) -> tuple[str, str]:
    """All that is equal in two results of which only one has parents: its settings and test."""
    settings = cell_without(result.first, (("seed",), ("hyperparameters", "parents")))
    return board.json(settings), str(result.first.data.get("test"))


def _operations(record: Record) -> float:
    """Floating-point operations of a training and of all those before it."""
    return sum(each.get("flops", 0.0) for each in (*(record.lineage or ()), record.spent or {}))


def _table(board: Board, section: Section, task: str, metric: str, chains: Iterable[Chain]) -> Table:
    info = display_info(metric)
    rows = [
        TableRow(
            board.name(chain.architecture),
            [
                [Part(chain.learnt)],
                [Part(format_magnitude(chain.tokens), order=chain.tokens)] if chain.tokens else BLANK,
                [Part(format_magnitude(chain.flops), order=chain.flops)] if chain.flops else BLANK,
                [marked_score(board, chain.result, metric, chain.summary)],
                BLANK if chain.gain is None else [Part(format_points(chain.gain, info.digits))],
            ],
            link=board.page_of(chain.architecture),
        )
        for chain in chains
    ]
    columns = ["Architecture", "learnt before", "tokens read before", "operations", metric_label(metric)]
    title = f"{board.task_name(task)}: {section_title(section)}"
    return Table(
        f"pretraining-{task}-{section.id}",
        title,
        [*columns, f"difference to {NOTHING}"],
        [Block("", rows)],
        text_columns=(1,),
    )


def _plot(board: Board, section: Section, task: str, metric: str, chains: Iterable[Chain]) -> Plot:
    info = display_info(metric)
    lines: dict[tuple[str, str], list[Chain]] = {}
    for chain in chains:
        lines.setdefault((chain.architecture, chain.learnt), []).append(chain)
    data: list[dict[str, Any]] = []
    for place, ((architecture, learnt), members) in enumerate(lines.items()):
        known = [(chain.flops, chain.summary) for chain in members if chain.flops]
        data.append(line_with_deviations(f"{board.name(architecture)}, {learnt}", known, info, place))
    layout = over_logarithm("floating-point operations of all trainings", metric)
    title = f"{board.task_name(task)}, {section_title(section)}: bars are a standard deviation over seeds"
    return Plot(f"plot-pretraining-{task}-{section.id}", title, data, layout)

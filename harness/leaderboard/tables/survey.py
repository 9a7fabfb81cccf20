"""Methods x data sets: the survey's five tables with our rows below the published ones, then our
further tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from harness.leaderboard.board import Board, Published, Result, Section
from harness.leaderboard.tables.formatting import (
    best_results,
    counterpart,
    metric_label,
    our_row,
    score_parts,
    section_title,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Row, Table


@dataclass(frozen=True)
class Shape:
    """A table of methods x data sets: its data sets, further tasks by pattern or type, and metrics
    (none: each task's main one)."""

    id: str
    title: str
    datasets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


SHAPES = (
    Shape("1", "Table 1: sentiment", ("imdb", "sst2", "sst5", "amazon2", "amazon5", "yelp2", "yelp5"), ("accuracy",)),
    Shape("2", "Table 2: news and topics", ("ag_news", "20news", "sogou", "dbpedia", "ohsumed"), ("accuracy",)),
    Shape("3", "Table 3: question answering, SQuAD", ("squad1", "squad2"), ("exact_match", "f1")),
    Shape("4", "Table 4: question answering, WikiQA", ("wikiqa",), ("map", "mrr")),
    Shape("5", "Table 5: natural language inference", ("snli", "mnli_matched", "mnli_mismatched"), ("accuracy",)),
    Shape("tagging", "Tagging", patterns=("conll*",), types=("tag",)),
    Shape("speech", "Speech", patterns=("fsdd*", "an4*"), types=("transcribe",)),
    Shape("stories", "Stories", types=("answer",)),
    Shape("other", "Other tasks", patterns=("*",)),
)


def survey_tables(board: Board) -> list[Table]:
    """The survey's five tables with our rows, then tagging, speech and what belongs to none of
    them; every task is in one."""
    left = dict.fromkeys([*board.known_tasks, *(value.dataset for value in board.published)])
    printed_in = {value.dataset: value.table for value in board.published}
    tables = []
    for shape in SHAPES:
        datasets = [d for d in shape.datasets if d in left]
        datasets += [d for d in left if d not in datasets and (printed_in.get(d) == shape.id or _fits(board, shape, d))]
        for dataset in datasets:
            del left[dataset]
        if datasets:
            tables.append(survey_table(board, shape, datasets))
    return tables


def _fits(board: Board, shape: Shape, task: str) -> bool:
    kind = board.tasks[task].type if task in board.tasks else ""
    claimed = any(task in other.datasets for other in SHAPES)
    return not claimed and (kind in shape.types or any(fnmatchcase(task, pattern) for pattern in shape.patterns))


def survey_table(board: Board, shape: Shape, datasets: Sequence[str]) -> Table:
    """One table of methods x data sets: the published rows, then ours by tier and protocol."""
    columns = [(d, metric) for d in datasets for metric in shape.metrics or (board.main_metric(d),)]
    published = _published_rows(board, [value for value in board.published if value.table == shape.id], columns)
    blocks = [Block(f"Published in the survey, table {shape.id}", published)] if published else []
    ours = []
    for section, results in board.sections.items():
        chosen = {pair: found for pair, found in results.items() if pair[1] in datasets}
        if chosen:
            ours.append(Block(f"Ours: {section_title(section)}", _our_rows(board, section, chosen, columns)))
    lead = [] if ours else ["No record has a place in this table yet."]
    headings = ["Method", *(f"{board.task_name(d)} {metric_label(metric)}" for d, metric in columns)]
    return Table(f"table-{shape.id}", shape.title, headings, blocks + ours, lead)


def _published_rows(board: Board, values: Sequence[Published], columns: list[tuple[str, str]]) -> list[Row]:
    methods: dict[tuple[str, str], dict[tuple[str, str], Published]] = {}
    for value in values:
        methods.setdefault((value.method, value.architecture), {})[value.dataset, value.metric] = value
    rows = []
    for (method, architecture), printed in methods.items():
        first = next(iter(printed.values()))
        parts = {
            column: Part(value.percent, "", value.notes, f"printed as {value.printed}")
            for column, value in printed.items()
        }
        cells = [[parts[column]] if column in parts else BLANK for column in columns]
        rows.append(Row(method, cells, first.classical, title=architecture, link=board.page_of(first.counterpart)))
    return rows


def _our_rows(
    board: Board, section: Section, chosen: dict[tuple[str, str], list[Result]], columns: list[tuple[str, str]]
) -> list[Row]:
    best = {(task, metric): best_results(board, section, task, metric) for task, metric in columns}

    def cell(architecture: str, task: str, metric: str) -> list[Part]:
        if task not in board.known_tasks:
            return BLANK
        lines = []
        for result in chosen.get((architecture, task), []):
            lines += score_parts(
                board, result, metric, result in best[task, metric], counterpart(board, result, metric)
            )
        return lines or [Part("not run", "quiet")]

    def place(architecture: str) -> tuple[Any, ...]:
        mine = [
            record
            for (a, _), found in chosen.items()
            if a == architecture
            for result in found
            for record in result.records
        ]
        return all(record.status == "skipped" for record in mine), *board.order(architecture)

    architectures = sorted({architecture for architecture, _ in chosen}, key=place)
    return [our_row(board, a, [cell(a, task, metric) for task, metric in columns]) for a in architectures]

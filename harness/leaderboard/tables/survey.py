"""Methods x data sets: the survey's five tables with our rows below the published ones, then our
other tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from harness import registry
from harness.leaderboard.board import Board, Result, Section, SectionResults
from harness.leaderboard.published import SURVEY_TABLES, Published
from harness.leaderboard.ranking import best_results
from harness.leaderboard.tables.formatting import (
    counterpart,
    metric_label,
    our_row,
    score_parts,
    section_title,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow

Column = tuple[str, str]
"""Data set and metric."""


@dataclass(frozen=True)
class Shape:
    """A table of methods x data sets: its data sets, patterns of further task ids, and metrics
    (empty: the main one of each task)."""

    id: str
    title: str
    datasets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


SHAPES = (
    Shape("1", "Table 1: sentiment", ("imdb", "sst2", "sst5", "amazon2", "amazon5", "yelp2", "yelp5"), ("accuracy",)),
    Shape("2", "Table 2: news and topics", ("ag_news", "20news", "sogou", "dbpedia", "ohsumed"), ("accuracy",)),
    Shape("3", "Table 3: question answering, SQuAD", ("squad1", "squad2"), ("exact_match", "f1")),
    Shape("4", "Table 4: question answering, WikiQA", ("wikiqa",), ("map", "mrr")),
    Shape("5", "Table 5: natural language inference", ("snli", "mnli_matched", "mnli_mismatched"), ("accuracy",)),
    Shape("tagging", "Tagging", patterns=("conll*",)),
    Shape("speech", "Speech", patterns=("fsdd*", "an4*")),
    Shape("translation", "Translation"),
    Shape("stories", "Stories"),
    Shape("other", "Other tasks", patterns=("*",)),
)


def survey_tables(board: Board) -> list[Table]:
    """The survey's five tables with our rows, then tagging, speech, translation, stories and the
    rest; every task is in exactly one."""
    remaining = dict.fromkeys([*board.known_tasks, *(value.dataset for value in board.published)])
    printed_in = {value.dataset: value.table for value in board.published}
    tables = []
    for shape in _shapes():
        datasets = [d for d in shape.datasets if d in remaining]
        datasets += [
            d for d in remaining if d not in datasets and (printed_in.get(d) == shape.id or _fits(board, shape, d))
        ]
        for dataset in datasets:
            del remaining[dataset]
        if datasets:
            tables.append(survey_table(board, shape, datasets))
    return tables


def _shapes() -> list[Shape]:
    """The shapes here, and before the last one those that only a registered problem names."""
    ids = {shape.id for shape in SHAPES}
    others = dict.fromkeys(problem.survey for problem in registry.entries("problems").values() if problem.survey)
    return [*SHAPES[:-1], *(Shape(id, id.capitalize()) for id in others if id not in ids), SHAPES[-1]]


def _fits(board: Board, shape: Shape, task: str) -> bool:
    if any(task in other.datasets for other in SHAPES):
        return False
    problem = registry.entries("problems").get(board.tasks[task].type) if task in board.tasks else None
    by_type = problem is not None and problem.survey == shape.id
    return by_type or any(fnmatchcase(task, pattern) for pattern in shape.patterns)


def survey_table(board: Board, shape: Shape, datasets: Sequence[str]) -> Table:
    """One table of methods x data sets: the published rows, then ours by section. Beside published
    values stand only scores on the official test."""
    columns = [(d, metric) for d in datasets for metric in shape.metrics or (board.main_metric(d),)]
    published = _published_rows(board, [value for value in board.published if value.table == shape.id], columns)
    blocks = [Block(f"Published in the survey, table {shape.id}", published)] if published else []
    ours, left_out = [], 0
    for section, results in board.sections.items():
        in_columns = {pair: configurations for pair, configurations in results.items() if pair[1] in datasets}
        if shape.id in SURVEY_TABLES:
            shown = {pair: [r for r in each if not board.test_notes(r)] for pair, each in in_columns.items()}
            left_out += sum(len(each) - len(shown[pair]) for pair, each in in_columns.items())
            in_columns = {pair: each for pair, each in shown.items() if each}
        if in_columns:
            ours.append(Block(f"Ours: {section_title(section)}", _our_rows(board, section, in_columns, columns)))
    lead = [] if ours or left_out else ["There is no record for this table yet."]
    if left_out:
        lead.append(
            f"{left_out} of our results are left out, because they were not scored on the official test of their task:"
            " the pages of the tasks have them."
        )
    headings = ["Method", *(f"{board.task_name(d)} {metric_label(metric)}" for d, metric in columns)]
    return Table(f"table-{shape.id}", shape.title, headings, blocks + ours, lead)


def _published_rows(board: Board, values: Iterable[Published], columns: Sequence[Column]) -> list[TableRow]:
    methods: dict[tuple[str, str], dict[Column, Published]] = {}
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
        rows.append(TableRow(method, cells, first.classical, title=architecture, link=board.page_of(first.counterpart)))
    return rows


def _our_rows(board: Board, section: Section, results: SectionResults, columns: Sequence[Column]) -> list[TableRow]:
    best = {(task, metric): best_results(board, section, task, metric) for task, metric in columns}

    def cell(architecture: str, task: str, metric: str) -> list[Part]:
        if task not in board.known_tasks:
            return BLANK
        lines = []
        for result in results.get((architecture, task), []):
            published = counterpart(board, result, metric)
            lines += score_parts(board, result, metric, result in best[task, metric], published)
        return lines or [Part("not run", "quiet")]

    by_architecture: dict[str, list[Result]] = {}
    for (architecture, _), configurations in results.items():
        by_architecture.setdefault(architecture, []).extend(configurations)

    def order(architecture: str) -> tuple[Any, ...]:
        return all(result.skipped for result in by_architecture[architecture]), *board.order(architecture)

    return [
        our_row(board, architecture, [cell(architecture, task, metric) for task, metric in columns])
        for architecture in sorted(by_architecture, key=order)
    ]

"""The page of one architecture: facts, scores on every task, commands to run it again, and error
analyses."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from harness.leaderboard.board import Board, architecture_file, task_file
from harness.leaderboard.catalogue import CatalogueEntry
from harness.leaderboard.comparison import Comparison, compare
from harness.leaderboard.pages.architecture_facts import docstring, facts, paragraphs
from harness.leaderboard.pages.error_analysis import CURVES, Errors, Slices, curves, errors, mean_slices
from harness.leaderboard.pages.page import Page
from harness.leaderboard.ranking import ranks
from harness.leaderboard.repeat import repeat
from harness.leaderboard.results import Result, Section, flatten
from harness.leaderboard.tables.formatting import (
    interval_part,
    metric_label,
    score_parts,
    section_title,
    training_size,
)
from harness.leaderboard.tables.gaps import gap_table_of
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow
from harness.leaderboard.unregistered import is_installed
from harness.leaderboard.verified import verified
from harness.metrics import display_info
from harness.records import Record

RESULTS_LEAD = (
    "The interval is over other seeds and other test examples. A place is that among the results that may be compared:"
    " the same budget and data, above the floor. Bold results share the first place: they are not significantly worse"
    " than the best (paired test over seeds and examples, corrected)."
)


@dataclass(frozen=True)
class Rerun:
    """All that repeats one row: the commands, its settings, and for every seed its file and the
    command that ran it."""

    title: str
    commands: list[str]
    settings: list[tuple[str, str]]
    records: list[tuple[str, str, str]]


TaskResults = tuple[Section, str, list[Result]]
"""The configurations of one architecture on one task of one section."""


def architecture_page(board: Board, architecture: str) -> Page:
    """The page of an architecture that has a record."""
    return _page(board, architecture, _all_results(board)[architecture], board.catalogue.get(architecture))


@functools.cache  # each page asks for its own
def _all_results(board: Board) -> dict[str, list[TaskResults]]:
    """The results of each architecture that has a record, in the order of the tasks."""
    results: dict[str, list[TaskResults]] = {}
    tasks = {task: i for i, task in enumerate(board.known_tasks)}
    for section, pairs in board.sections.items():
        for architecture, task in sorted(pairs, key=lambda pair: tasks[pair[1]]):
            fitting = [result for result in pairs[architecture, task] if not result.unfit]
            of_architecture = results.setdefault(architecture, [])
            if fitting:
                of_architecture.append((section, task, fitting))
    return results


def _page(board: Board, architecture: str, results: list[TaskResults], described: CatalogueEntry | None) -> Page:
    entry = board.architectures.get(architecture)
    analyses: list[Errors] = []
    lines: dict[str, list[tuple[str, str, Slices]]] = {name: [] for name in CURVES}
    for section, task, configurations in results:
        comparison = compare(board, section, task)
        for result in configurations:
            row = comparison.row(result) if comparison else None
            if comparison is None or row is None:
                continue
            title, outcomes = _title(board, section, task, result), comparison.outcomes[row]
            analysis = errors(title, comparison.metric, result, outcomes)
            if analysis.slices or analysis.confusion:
                analyses.append(analysis)
            for name in CURVES:
                label = f"{title}, {metric_label(comparison.metric)}"
                lines[name].append((label, comparison.metric, mean_slices(outcomes, name)))
    parts = {
        "facts": facts(architecture, entry),
        "verified": verified(board, architecture),
        "mechanism": described.mechanism if described else "",
        "docstring": paragraphs(docstring(entry)) if entry and is_installed(entry) else [],
        "deviations": list(entry.deviations) if entry else [],
        "tables": [
            *_results(board, results),
            *filter(None, [gap_table_of(board, architecture)]),
            *_published(board, architecture, results),
        ],
        "reruns": [_rerun(board, task, section, result) for section, task, each in results for result in each],
        "errors": analyses,
        "plots": [plot for i, name in enumerate(CURVES) for plot in curves(f"curve-{i}", name, lines[name])],
    }
    return Page(architecture_file(architecture), board.name(architecture), "architecture.html", parts)


def _results(board: Board, results: list[TaskResults]) -> Iterator[Table]:
    for section in dict.fromkeys(section for section, _, _ in results):
        rows = [
            _row(board, section, task, result)
            for other, task, configurations in results
            if other == section
            for result in configurations
        ]
        columns = ["Task", "metric", "score", "95 % interval", "place", "by seed", "training examples"]
        title = f"Results: {section_title(section)}"
        yield Table(f"results-{section.id}", title, columns, [Block("", rows)], [RESULTS_LEAD], text_columns=(1, 5))


def _row(board: Board, section: Section, task: str, result: Result) -> TableRow:
    metric = board.main_metric(task)
    comparison = compare(board, section, task)
    scores = ((record.seed, record.scores.get("test", {}).get(metric)) for record in result.ok)
    seeds = [f"{seed}: {display_info(metric).format(score)}" for seed, score in scores if score is not None]
    cells = [
        [Part(metric_label(metric))],
        score_parts(board, result, metric, bool(comparison and comparison.shares_first_place(result))),
        [interval_part(comparison, result)],
        _place(board, section, comparison, result),
        [Part(", ".join(seeds))] if seeds else BLANK,
        training_size(result),
    ]
    return TableRow(board.task_name(task), cells, title=task, link=task_file(task))


def _place(board: Board, section: Section, comparison: Comparison | None, result: Result) -> list[Part]:
    task = result.first.task
    places = ranks(board, section, task, board.main_metric(task))
    if result not in places:
        return BLANK
    shared = comparison is not None and len(comparison.tie_group) > 1 and comparison.shares_first_place(result)
    return [Part(f"{places[result]} of {len(places)}{', shares the first' if shared else ''}")]


def _published(board: Board, architecture: str, results: list[TaskResults]) -> list[Table]:
    values = [value for value in board.published if architecture in (value.architecture, value.counterpart)]
    if not values:
        return []
    sections = [section for section in dict.fromkeys(section for section, _, _ in results) if section.tier != "mini"]
    ours = {(section, task): configurations for section, task, configurations in results}
    rows = []
    for value in values:
        published = value if value.counterpart == architecture else None
        cells = [
            [Part(value.table)],
            [Part(value.method)],
            [Part(value.percent, "", value.notes, f"printed as {value.printed}")],
        ]
        for section in sections:
            configurations = ours.get((section, value.dataset), [])
            parts = [
                score_parts(board, result, value.metric, False, published if board.beside_published(result) else None)
                for result in configurations
            ]
            cells.append([part for lines in parts for part in lines] or BLANK)
        rows.append(TableRow(f"{board.task_name(value.dataset)} {metric_label(value.metric)}", cells))
    columns = [
        "Data set",
        "table of the survey",
        "method as printed",
        "published",
        *(f"ours: {section_title(section)}" for section in sections),
    ]
    return [Table("published", "Published values", columns, [Block("", rows)], text_columns=(2,))]


def _rerun(board: Board, task: str, section: Section, result: Result) -> Rerun:
    settings = [(name, str(value)) for name, value in flatten(result.first.hyperparameters)]
    store = board.store
    records = [
        (_made(record), store.path(record).relative_to(store.folder).as_posix(), record.command)
        for record in result.records
    ]
    return Rerun(_title(board, section, task, result), repeat(result.ok or result.records), settings, records)


def _made(record: Record) -> str:
    """Seed and status of a record, with its day and its commit where they are known."""
    day = record.started[:10] and f"on {record.started[:10]}"
    commit = record.commit and f"at commit {record.commit[:12]}{' with local changes' if record.dirty else ''}"
    return ", ".join(filter(None, (f"seed {record.seed}", record.status, day, commit)))


def _title(board: Board, section: Section, task: str, result: Result) -> str:
    return f"{board.task_name(task)}{f' ({result.settings})' if result.settings else ''}: {section_title(section)}"

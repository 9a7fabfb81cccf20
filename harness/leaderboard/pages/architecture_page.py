"""The page of one architecture: facts, scores on every task, commands to run it again, and error
analyses."""

from __future__ import annotations

import ast
import dataclasses
import functools
import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.leaderboard.board import ROOT, Board, architecture_file, task_file
from harness.leaderboard.catalogue import CatalogueEntry
from harness.leaderboard.comparison import Comparison, compare
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.ranking import ranks
from harness.leaderboard.repeat import checkout, repeat
from harness.leaderboard.results import Result, Section, flatten
from harness.leaderboard.setting_words import in_words
from harness.leaderboard.significance import summarise
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
from harness.metrics.information import PERCENT
from harness.records import Record
from harness.records.outcomes import Outcomes
from harness.registry import ArchitectureEntry
from harness.settings import Recipe

CURVES = {"length in words": "length, words", "unknown words": "share of words that the training data does not hold"}
"""Properties with ordered parts, drawn as curves as well as tables; the value is the axis title."""
SOURCE_TEXTS = {
    "M": "Minaee et al. 2020",
    "R": "Russell & Norvig 2020",
    "X": "Xiao & Zhu",
    "Z": "Zhang & Teng 2021",
}
"""The texts from which the catalogue's systems are taken, by the letter before a place in them."""
CHOSEN = ("optimizer", "lr", "batch_size", "epochs", "patience", "vector_dims")
"""Settings of a recipe that are told even where they are those of most recipes."""
PLAIN = Recipe()
MIN_UNITS = 20
"""Smallest number of units of a part on a curve; the scores of smaller parts are too uncertain."""
RESULTS_LEAD = (
    "The interval is over other seeds and other test examples. A place is that among the results that may be compared:"
    " the same budget and data, above the floor. Bold results share the first place: they are not significantly worse"
    " than the best (paired test over seeds and examples, corrected)."
)


@dataclass(frozen=True)
class SliceScores:
    """Scores of the parts of the test data by one property: (part, units, score as shown, score as
    a share of a bar)."""

    title: str
    rows: list[tuple[str, str, str, str]]


@dataclass(frozen=True)
class Confusion:
    """Counts by actual and predicted class, each with its share of the actual class; ``title``
    names the seeds."""

    title: str
    labels: list[str]
    rows: list[list[tuple[int, str]]]


@dataclass(frozen=True)
class Errors:
    """Error analysis of one result."""

    title: str
    lead: str
    slices: list[SliceScores]
    confusion: Confusion | None


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
Slices = list[tuple[str, int, float | None]]
"""Parts of the test data: name, units, score."""


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
    errors: list[Errors] = []
    curves: dict[str, list[tuple[str, str, Slices]]] = {name: [] for name in CURVES}
    for section, task, configurations in results:
        comparison = compare(board, section, task)
        for result in configurations:
            row = comparison.row(result) if comparison else None
            if comparison is None or row is None:
                continue
            title, outcomes = _title(board, section, task, result), comparison.outcomes[row]
            analysis = _errors(title, comparison.metric, result, outcomes)
            if analysis.slices or analysis.confusion:
                errors.append(analysis)
            for name in CURVES:
                label = f"{title}, {metric_label(comparison.metric)}"
                curves[name].append((label, comparison.metric, mean_slices(outcomes, name)))
    parts = {
        "facts": _facts(architecture, entry),
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
        "errors": errors,
        "plots": [plot for i, name in enumerate(CURVES) for plot in _curves(f"curve-{i}", name, curves[name])],
    }
    return Page(architecture_file(architecture), board.name(architecture), "architecture.html", parts)


# --- facts ---


def _facts(architecture: str, entry: ArchitectureEntry | None) -> list[tuple[str, str]]:
    if entry is None:
        return [("id", architecture), ("registered", "no: only its records are known here")]
    facts = [
        ("id", architecture),
        ("paper", entry.paper),
        ("year", str(entry.year or "")),
        ("source", source_in_words(entry.source)),
        ("family", entry.family),
        ("kind", entry.kind),
    ]
    if not is_installed(entry):
        facts.append(("registered", "not here: these are the words of its records"))
        return [(name, text) for name, text in facts if text]
    facts += [("file", _path(entry.file)), ("class", entry.class_name), ("version", str(entry.version))]
    facts.append(("settings of this id", ", ".join(in_words(*setting) for setting in entry.hyperparameters.items())))
    facts.append(("training in protocol paper", _recipe(entry.recipe)))
    facts += [(f"the same on tasks of type {type}", _recipe(recipe)) for type, recipe in entry.recipes.items()]
    return [(name, text) for name, text in facts if text]


def _recipe(recipe: Recipe) -> str:
    """A recipe in words: what every recipe chooses, and what else it has otherwise than most."""
    chosen = {name: value for name, value in dataclasses.asdict(recipe).items() if value is not None}
    told = (n for n, value in chosen.items() if n in CHOSEN or value != getattr(PLAIN, n))
    return ", ".join(in_words(f"training.{name}", chosen[name]) for name in told)


def source_in_words(source: str) -> str:
    """The places of a system in the source texts, with the names of these.

    >>> source_in_words("X4.2.4 M-T5[209]")
    'Xiao & Zhu: 4.2.4; Minaee et al. 2020: T5[209]'
    """
    places: list[str] = []
    for word in source.split():
        if found := re.fullmatch(r"([MRXZ])-?((?:\d|T\d|A\.).*)", word):
            places.append(f"{SOURCE_TEXTS[found[1]]}: {found[2]}")
        else:  # more on the place before, such as the number of an equation
            places[-1:] = [" ".join([*places[-1:], word])]
    return "; ".join(places)


def _path(file: Path) -> str:
    """Path of a file in this repository; for a plugin from elsewhere only the name, which is the
    same on all machines."""
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.name


def docstring(entry: ArchitectureEntry) -> str:
    """Docstring of the class, read from its file without importing it; empty if the file cannot be
    read."""
    try:
        tree = ast.parse(entry.file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return ""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == entry.class_name)
    return next((ast.get_docstring(node) or "" for node in classes), "")


def paragraphs(text: str) -> list[list[tuple[bool, str]]]:
    """Paragraphs of a docstring as pieces: (true for code, text)."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"``\1``", text)
    return [
        [(i % 2 == 1, piece) for i, piece in enumerate(each.split("``")) if piece]
        for each in re.split(r"\n\s*\n", text)
        if each.strip()
    ]


# --- scores ---


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
    commands = [checkout(result.first), repeat(result.ok or result.records)]
    store = board.store
    records = [
        (_made(record), store.path(record).relative_to(store.folder).as_posix(), record.command)
        for record in result.records
    ]
    return Rerun(_title(board, section, task, result), list(filter(None, commands)), settings, records)


def _made(record: Record) -> str:
    """Seed and status of a record, with its day and its commit where they are known."""
    day = record.started[:10] and f"on {record.started[:10]}"
    commit = record.commit and f"at commit {record.commit[:12]}{' with local changes' if record.dirty else ''}"
    return ", ".join(filter(None, (f"seed {record.seed}", record.status, day, commit)))


def _title(board: Board, section: Section, task: str, result: Result) -> str:
    return f"{board.task_name(task)}{f' ({result.settings})' if result.settings else ''}: {section_title(section)}"


# --- errors ---


def _errors(title: str, metric: str, result: Result, outcomes: Sequence[Outcomes]) -> Errors:
    info = display_info(metric)
    unit = {PERCENT: " in percent", "": ""}.get(info.unit, f" {info.unit}")
    seeds = f"Mean over {len(outcomes)} seeds" if len(outcomes) > 1 else "One seed"
    lead = f"Scores of parts of the test data: {metric_label(metric)}{unit}. {seeds}."
    slices = []
    for name in dict.fromkeys(name for each in outcomes for name in each.slices):
        parts = mean_slices(outcomes, name)
        largest = max((score for _, _, score in parts if score is not None), default=0) if info.lower_is_better else 1
        rows = [
            (part, f"{units:,}", "–" if score is None else info.format(score), f"{_share(score, largest):.3f}")
            for part, units, score in parts
        ]
        if rows:
            slices.append(SliceScores(name, rows))
    return Errors(title, lead, slices, _confusion(result, outcomes))


def _share(score: float | None, largest: float) -> float:
    return min(1.0, max(0.0, score / largest)) if score and largest else 0.0


def mean_slices(outcomes: Sequence[Outcomes], name: str) -> list[tuple[str, int, float | None]]:
    """Parts by one property in their order: name, units (of the first seed that has the part) and
    the score averaged over seeds."""
    scores: dict[str, list[float]] = {}
    units: dict[str, int] = {}
    for each in outcomes:
        for part, n, score in each.slices.get(name, ()):
            units.setdefault(part, n)
            scores.setdefault(part, []).extend([] if score is None else [score])
    return [(part, n, summarise(scores[part]).mean if scores[part] else None) for part, n in units.items()]


def _confusion(result: Result, outcomes: Sequence[Outcomes]) -> Confusion | None:
    """The counts summed over seeds, with a row and a column for every class of any seed."""
    matrices = [each.confusion for each in outcomes if each.confusion]
    if not matrices:
        return None
    labels = sorted({name for names, _ in matrices for name in names})
    number = {name: i for i, name in enumerate(labels)}
    counts = [[0] * len(labels) for _ in labels]
    for names, rows in matrices:
        for name, row in zip(names, rows, strict=True):
            for other, n in zip(names, row, strict=True):
                counts[number[name]][number[other]] += n
    rows = [[(n, f"{n / (sum(row) or 1):.3f}") for n in row] for row in counts]
    if len(matrices) > 1:
        title = f"Sum over {len(matrices)} seeds"
    else:
        title = f"Seed {result.ok[0].seed}" if len(result.ok) == 1 else "One seed"
    return Confusion(title, labels, rows)


def _curves(id: str, name: str, results: Iterable[tuple[str, str, Slices]]) -> list[Plot]:
    """Score against the ordered parts of a property, one line per result; empty if no result has
    two parts."""
    lines = [
        (title, metric, [part for part in parts if part[2] is not None and part[1] >= MIN_UNITS])
        for title, metric, parts in results
        if display_info(metric).unit == PERCENT
    ]
    lines = [(title, metric, parts) for title, metric, parts in lines if len(parts) > 1]
    if not lines:
        return []
    order = sorted({part for _, _, parts in lines for part, _, _ in parts}, key=_first_number)
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": html.escape(title),
            "x": [html.escape(part) for part, _, _ in parts],
            "y": [round(display_info(metric).scale(score or 0.0), 2) for _, _, score in parts],
            "text": [f"{units:,} units" for _, units, _ in parts],
            "hovertemplate": "%{x}: %{y:.1f} % (%{text})<extra></extra>",
        }
        for title, metric, parts in lines
    ]
    remark = " (error rates: less is better)" if any(display_info(m).lower_is_better for _, m, _ in lines) else ""
    layout = {
        "xaxis": {
            "title": {"text": CURVES[name]},
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [html.escape(part) for part in order],
        },
        "yaxis": {"title": {"text": f"score, %{remark}"}, "rangemode": "tozero"},
        "showlegend": True,
        "height": 420 + 20 * len(data),
    }
    return [Plot(id, f"Score by {name}, parts of {MIN_UNITS} units and more", data, layout)]


def _first_number(part: str) -> tuple[float, str]:
    """Sorting key of parts: "none" before "up to 10 %", "more than 40" after "21 to 40"."""
    digits = re.search(r"\d+", part)
    return (float(digits[0]) + (0.5 if part.startswith("more") else 0.0) if digits else -1.0), part

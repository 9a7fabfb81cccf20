"""One architecture: what it is, what it scored everywhere, how to run it again, and where its
errors lie."""

from __future__ import annotations

import ast
import dataclasses
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.leaderboard.board import ROOT, Board, Result, Section, architecture_file, task_file
from harness.leaderboard.catalogue import Described, read_catalogue
from harness.leaderboard.comparison import evidence
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.significance import summarise
from harness.leaderboard.tables.formatting import (
    format_interval,
    interval,
    metric_label,
    score_parts,
    section_title,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Row, Table
from harness.metrics import display_info
from harness.metrics.information import PERCENT
from harness.records.outcomes import Outcomes
from harness.registry import Entry

CURVES = {"length in words": "length, words", "unknown words": "share of words that the training data does not hold"}
"""Properties whose parts have an order, with the title of their axis: drawn as curves besides being
tables."""
FEWEST = 20
"""A part of fewer units is in the tables alone: a point of a curve would say more than it knows."""
RESULTS = (
    (
        "The interval is over the test examples. A place counts all results of the section's task whose predictions"
        " were saved, those trained on a part of the data too; bold ones share the first place: they differ from the"
        " best by no more than chance (paired randomisation test with Holm's correction)."
    ),
)


@dataclass(frozen=True)
class Sliced:
    """Scores of the parts of the test data by one property: (part, units, score as shown, score as
    a share of a bar)."""

    title: str
    rows: list[tuple[str, str, str, str]]


@dataclass(frozen=True)
class Confusion:
    """Counts by actual and predicted class, each with its share of the actual class; ``title`` says
    of which seeds."""

    title: str
    labels: list[str]
    rows: list[list[tuple[int, str]]]


@dataclass(frozen=True)
class Errors:
    """Where one result's errors lie."""

    title: str
    lead: str
    slices: list[Sliced]
    confusion: Confusion | None


@dataclass(frozen=True)
class Rerun:
    """What one result was made with and, for every seed, its file and its command."""

    title: str
    settings: str
    records: list[tuple[str, str, str]]


Found = tuple[Section, str, list[Result]]


def architecture_pages(board: Board) -> Iterator[Page]:
    """A page for every architecture that has a record, in the order of the tables."""
    found: dict[str, list[Found]] = {}
    for section, results in board.sections.items():
        for (architecture, task), mine in results.items():
            found.setdefault(architecture, []).append((section, task, mine))
    catalogue = read_catalogue(board)
    for architecture in sorted(found, key=board.order):
        yield _page(board, architecture, found[architecture], catalogue.get(architecture))


def _page(board: Board, architecture: str, found: list[Found], described: Described | None) -> Page:
    entry = board.architectures.get(architecture)
    place = {task: i for i, task in enumerate(board.known_tasks)}
    found = sorted(found, key=lambda each: (list(board.sections).index(each[0]), place[each[1]]))
    errors, curves = [], {name: [] for name in CURVES}
    for section, task, mine in found:
        known = evidence(board, section, task)
        for result in mine if known else ():
            row = known.row(result)
            if row is not None:
                title = _titled(board, section, task, result)
                each = _errors(title, known.metric, result, known.outcomes[row])
                errors += [each] if each.slices or each.confusion else []
                for name in CURVES:
                    curves[name].append(
                        (f"{title}, {metric_label(known.metric)}", known.metric, mean_slices(known.outcomes[row], name))
                    )
    parts = {
        "known": _facts(architecture, entry),
        "mechanism": described.mechanism if described else "",
        "docstring": paragraphs(docstring(entry)) if entry else [],
        "deviations": list(entry.deviations) if entry else [],
        "shown": [*_results(board, architecture, found), *_published(board, architecture, found)],
        "reruns": [_rerun(board, task, section, result) for section, task, mine in found for result in mine],
        "errors": errors,
        "plots": [plot for i, name in enumerate(CURVES) for plot in _curves(f"curve-{i}", name, curves[name])],
    }
    return Page(architecture_file(architecture), board.name(architecture), "architecture.html", parts)


# --- what it is ---


def _facts(architecture: str, entry: Entry | None) -> list[tuple[str, str]]:
    if entry is None:
        return [("id", architecture), ("registered", "no: only its records are known here")]
    facts = [
        ("id", architecture),
        ("paper", entry.paper),
        ("year", str(entry.year)),
        ("source", entry.source),
        ("family", entry.family),
    ]
    facts += [
        ("kind", entry.kind),
        ("file", _place(entry.file)),
        ("class", entry.class_name),
        ("version", str(entry.version)),
    ]
    if fixed := entry.options.get("hyperparameters"):
        facts.append(("settings of this id", _named(fixed)))
    if recipe := entry.options.get("recipe"):
        facts.append(
            (
                "training in protocol paper",
                _named({k: v for k, v in dataclasses.asdict(recipe).items() if v is not None}),
            )
        )
    return [(name, text) for name, text in facts if text]


def _place(file: Path) -> str:
    """A file's path in this repository; of a plugin from elsewhere only the name, which is the same
    on all machines."""
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.name


def _named(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def docstring(entry: Entry) -> str:
    """What the class says of itself, read from its file without importing it; empty where the file
    cannot be read."""
    try:
        tree = ast.parse(entry.file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return ""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == entry.class_name)
    return next((ast.get_docstring(node) or "" for node in classes), "")


def paragraphs(text: str) -> list[list[tuple[bool, str]]]:
    """Paragraphs of a docstring as pieces: (whether it is code, text)."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"``\1``", text)
    return [
        [(i % 2 == 1, piece) for i, piece in enumerate(each.split("``")) if piece]
        for each in re.split(r"\n\s*\n", text)
        if each.strip()
    ]


# --- what it scored ---


def _results(board: Board, architecture: str, found: list[Found]) -> Iterator[Table]:
    for section in dict.fromkeys(section for section, _, _ in found):
        rows = [
            _row(board, section, task, result) for other, task, mine in found if other == section for result in mine
        ]
        columns = ["Task", "metric", "score", "95 % interval", "place", "by seed", "training examples"]
        title = f"Results: {section_title(section)}"
        yield Table(f"results-{section.id}", title, columns, [Block("", rows)], list(RESULTS), text_columns=(1, 5))


def _row(board: Board, section: Section, task: str, result: Result) -> Row:
    metric = board.main_metric(task)
    known = evidence(board, section, task)
    row = known.row(result) if known else None
    first = known is not None and row in known.tied
    place = BLANK
    if known is not None and row is not None:
        place = [
            Part(f"{row + 1} of {len(known.results)}{', shares the first' if first and len(known.tied) > 1 else ''}")
        ]
    bounds = interval(known, result)
    seeds = [
        f"{r.seed}: {display_info(metric).format(r.scores['test'][metric])}"
        for r in result.ok
        if metric in r.scores.get("test", {})
    ]
    cells = [
        [Part(metric_label(metric))],
        score_parts(board, result, metric, first),
        [Part(format_interval(metric, bounds))] if bounds else BLANK,
        place,
        [Part(", ".join(seeds))] if seeds else BLANK,
        [Part(f"{result.trained_on:,}")] if result.trained_on else BLANK,
    ]
    return Row(board.task_name(task), cells, title=task, link=task_file(task))


def _published(board: Board, architecture: str, found: list[Found]) -> list[Table]:
    values = [value for value in board.published if architecture in (value.architecture, value.counterpart)]
    if not values:
        return []
    sections = [section for section in dict.fromkeys(section for section, _, _ in found) if section.tier != "mini"]
    ours = {(section, task): mine for section, task, mine in found}
    rows = []
    for value in values:
        cells = [
            [Part(value.table)],
            [Part(value.method)],
            [Part(value.percent, "", value.notes, f"printed as {value.printed}")],
        ]
        for section in sections:
            mine = ours.get((section, value.dataset), [])
            beside = value if value.counterpart == architecture else None
            cells.append(
                [part for result in mine for part in score_parts(board, result, value.metric, False, beside)] or BLANK
            )
        rows.append(Row(f"{board.task_name(value.dataset)} {metric_label(value.metric)}", cells))
    columns = [
        "Data set",
        "table of the survey",
        "method as printed",
        "published",
        *(f"ours: {section_title(s)}" for s in sections),
    ]
    return [Table("published", "Published values", columns, [Block("", rows)], text_columns=(2,))]


def _rerun(board: Board, task: str, section: Section, result: Result) -> Rerun:
    settings = json.dumps(result.first.hyperparameters, sort_keys=True, ensure_ascii=False)
    store = board.store
    records = [
        (f"seed {r.seed}, {r.status}", store.path(r).relative_to(store.folder).as_posix(), r.command)
        for r in result.records
    ]
    return Rerun(_titled(board, section, task, result), settings, records)


def _titled(board: Board, section: Section, task: str, result: Result) -> str:
    return f"{board.task_name(task)}{f' ({result.settings})' if result.settings else ''}: {section_title(section)}"


# --- where its errors lie ---


def _errors(title: str, metric: str, result: Result, outcomes: Sequence[Outcomes]) -> Errors:
    seeds = f"Mean over {len(outcomes)} seeds" if len(outcomes) > 1 else "One seed"
    info = display_info(metric)
    unit = {PERCENT: " in percent", "": ""}.get(info.unit, f" {info.unit}")
    lead = f"Scores of parts of the test data: {metric_label(metric)}{unit}. {seeds}."
    slices = []
    for name in dict.fromkeys(name for each in outcomes for name in each.slices):
        parts = mean_slices(outcomes, name)
        most = max((score for _, _, score in parts if score is not None), default=0) if info.lower_is_better else 1
        rows = [
            (part, f"{units:,}", "–" if score is None else info.format(score), f"{_share(score, most):.3f}")
            for part, units, score in parts
        ]
        if rows:
            slices.append(Sliced(name, rows))
    return Errors(title, lead, slices, _confusion(result, outcomes))


def _share(score: float | None, most: float) -> float:
    return min(1.0, max(0.0, score / most)) if score and most else 0.0


def mean_slices(outcomes: Sequence[Outcomes], name: str) -> list[tuple[str, int, float | None]]:
    """Parts by one property in their order: units (of the first seed that has the part) and the
    score, averaged over seeds."""
    scores: dict[str, list[float]] = {}
    units: dict[str, int] = {}
    for each in outcomes:
        for part, n, score in each.slices.get(name, ()):
            units.setdefault(part, n)
            scores.setdefault(part, []).extend([] if score is None else [score])
    return [(part, n, summarise(scores[part]).mean if scores[part] else None) for part, n in units.items()]


def _confusion(result: Result, outcomes: Sequence[Outcomes]) -> Confusion | None:
    """The counts summed over seeds; a class that one seed alone predicted has its row and
    column."""
    found = [each.confusion for each in outcomes if each.confusion]
    if not found:
        return None
    labels = sorted({name for names, _ in found for name in names})
    number = {name: i for i, name in enumerate(labels)}
    counts = [[0] * len(labels) for _ in labels]
    for names, rows in found:
        for name, row in zip(names, rows, strict=True):
            for other, n in zip(names, row, strict=True):
                counts[number[name]][number[other]] += n
    rows = [[(n, f"{n / (sum(row) or 1):.3f}") for n in row] for row in counts]
    title = (
        f"Sum over {len(found)} seeds"
        if len(found) > 1
        else f"Seed {result.ok[0].seed}"
        if len(result.ok) == 1
        else "One seed"
    )
    return Confusion(title, labels, rows)


def _curves(id: str, name: str, results: Iterable[tuple[str, str, list[tuple[str, int, float | None]]]]) -> list[Plot]:
    """Score against the ordered parts of a property, one line per result; nothing where no result
    has two parts."""
    drawn = [
        (title, metric, [part for part in parts if part[2] is not None and part[1] >= FEWEST])
        for title, metric, parts in results
        if display_info(metric).unit == PERCENT
    ]
    drawn = [(title, metric, parts) for title, metric, parts in drawn if len(parts) > 1]
    if not drawn:
        return []
    order = sorted({part for _, _, parts in drawn for part, _, _ in parts}, key=_first_number)
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": html.escape(title),
            "x": [html.escape(part) for part, _, _ in parts],
            "y": [round(display_info(metric).shown(score or 0.0), 2) for _, _, score in parts],
            "text": [f"{units:,} units" for _, units, _ in parts],
            "hovertemplate": "%{x}: %{y:.1f} % (%{text})<extra></extra>",
        }
        for title, metric, parts in drawn
    ]
    down = any(display_info(metric).lower_is_better for _, metric, _ in drawn)
    names = [html.escape(part) for part in order]
    layout = {
        "xaxis": {
            "title": {"text": CURVES[name]},
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names,
        },
        "yaxis": {
            "title": {"text": "score, %" + (" (error rates: less is better)" if down else "")},
            "rangemode": "tozero",
        },
        "showlegend": True,
        "height": 420 + 20 * len(data),
    }
    return [Plot(id, f"Score by {name}, parts of {FEWEST} units and more", data, layout)]


def _first_number(part: str) -> tuple[float, str]:
    """Places "none" before "up to 10 %" and "more than 40" after "21 to 40"."""
    digits = re.search(r"\d+", part)
    return (float(digits[0]) + (0.5 if part.startswith("more") else 0.0) if digits else -1.0), part

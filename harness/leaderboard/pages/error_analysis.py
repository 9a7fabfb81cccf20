"""The error analyses on the page of an architecture: scores of parts of the test data, and which
class was taken for which."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.leaderboard.pages.page import Plot
from harness.leaderboard.results import Result
from harness.leaderboard.summary import summarise
from harness.leaderboard.tables.formatting import metric_label
from harness.metrics import display_info
from harness.metrics.information import PERCENT
from harness.records.outcomes import Outcomes

CURVES = {"length in words": "length, words", "unknown words": "share of words that the training data does not hold"}
"""Properties with ordered parts, drawn as curves as well as tables; the value is the axis title."""
MIN_UNITS = 20
"""Smallest number of units of a part on a curve; the scores of smaller parts are too uncertain."""

Slices = list[tuple[str, int, float | None]]
"""Parts of the test data: name, units, score."""


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


def errors(title: str, metric: str, result: Result, outcomes: Sequence[Outcomes]) -> Errors:
    """The error analysis of a result, whose seeds came out as ``outcomes`` say."""
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
    shares = [[(n, f"{n / (sum(row) or 1):.3f}") for n in row] for row in counts]
    if len(matrices) > 1:
        title = f"Sum over {len(matrices)} seeds"
    else:
        title = f"Seed {result.ok[0].seed}" if len(result.ok) == 1 else "One seed"
    return Confusion(title, labels, shares)


def curves(id: str, name: str, results: Iterable[tuple[str, str, Slices]]) -> list[Plot]:
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
            "y": [display_info(metric).plotted(score or 0.0) for _, _, score in parts],
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

"""Scores by year of publication as plots, and the page that shows them above the mean ranks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.leaderboard.board import Board
from harness.leaderboard.pages.families import marker
from harness.leaderboard.pages.mean_ranks import SectionRanks, ranking_of
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.ranking import ranked, scored
from harness.leaderboard.results import Result, Section
from harness.leaderboard.tables.formatting import metric_label, section_title
from harness.metrics import display_info
from harness.records.groups import SMOKE

MIN_POINTS = 3
"""Smallest number of results and published values for a plot; they must span two years."""
LEAD = (
    (
        "Each point is one architecture at the year of its paper. Filled points are ours, open ones the values that the"
        " survey prints; colour and shape stand for the family. The lines are the best so far by year. Pointing at a"
        " point names it; a click on a family in the legend hides it."
    ),
    (
        "Ours and published values of one plot are scores on the same data set by the same metric, but of different"
        " training: the pages of tasks and architectures list the differences (no pretrained vectors, a part of the"
        " data)."
    ),
)


class YearPoint(NamedTuple):
    """One score of one architecture; ``ranked`` is false for results that may not be compared with
    the others and for likely misprints, which the best-so-far lines leave out."""

    year: int
    score: float
    name: str
    family: str
    paper: str
    origin: str
    ranked: bool

    @property
    def ours(self) -> bool:
        """True unless the value is printed in the survey."""
        return self.origin != "published"


@dataclass(frozen=True)
class Story:
    """Scores on one task of one section by year, which are written with so many ``digits``."""

    id: str
    title: str
    lead: str
    axis: str
    digits: int
    plot: Plot
    rows: list[YearPoint]


def story_page(board: Board, section_ranks: SectionRanks | None = None) -> Page:
    """All plots, in the order of the tasks; ``section_ranks`` returns the ranks of a section if
    they are computed elsewhere (:mod:`~harness.leaderboard.pages.mean_ranks`)."""
    rankings = [ranking_of(board, section, section_ranks) for section in board.sections if section.ranked]
    parts = {
        "lead": LEAD,
        "tasks": list(_stories(board)),
        "rankings": [each for each in rankings if each.plot],
        "unranked": [each for each in rankings if not each.plot],
    }
    return Page("story.html", "Families over time", "story.html", parts)


def _stories(board: Board) -> Iterator[Story]:
    for task in dict.fromkeys([*board.known_tasks, *(value.dataset for value in board.published)]):
        metric = _metric(board, task)
        published, without_year = _published(board, task, metric)
        published_shown = False
        for section in (section for section in board.sections if board.results(section, task)):
            if section.protocol == SMOKE:
                continue
            ours, ours_without_year = _ours(board, section, task, metric)
            beside = all(board.beside_published(result) for _, result in scored(board, section, task, metric))
            points = [*ours, *published] if beside else ours
            if ours and _enough(points):
                published_shown = published_shown or (beside and bool(published))
                title, id = f"{board.task_name(task)}: {section_title(section)}", f"{task}-{section.id}"
                missing = ours_without_year + (without_year if beside else 0)
                yield _story(board, id, title, metric, points, missing)
        if not published_shown and _enough(published):
            title = f"{board.task_name(task)}: published values alone"
            yield _story(board, f"{task}-published", title, metric, published, without_year)


def _metric(board: Board, task: str) -> str:
    """The metric that ranks a task; for a data set that is no task here, the one with most
    published values."""
    if task in board.tasks or task in board.recorded_tasks:
        return board.main_metric(task)
    metrics = [value.metric for value in board.published if value.dataset == task]
    return max(dict.fromkeys(metrics), key=metrics.count)


def _enough(points: Sequence[YearPoint]) -> bool:
    return len(points) >= MIN_POINTS and len({point.year for point in points}) > 1


def _published(board: Board, task: str, metric: str) -> tuple[list[YearPoint], int]:
    """Points of the survey's values, and the number of values without a year."""
    values = [value for value in board.published if (value.dataset, value.metric) == (task, metric)]
    points = []
    for value in values:
        entry = board.architectures.get(value.architecture) or board.catalogue.get(value.architecture)
        if entry and entry.year is not None:
            score = float(value.percent)
            printed = not value.misprint
            points.append(YearPoint(entry.year, score, value.method, entry.family, entry.paper, "published", printed))
    return points, len(values) - len(points)


def _ours(board: Board, section: Section, task: str, metric: str) -> tuple[list[YearPoint], int]:
    """Points of our results, and the number of results without a year (of references, and of
    architectures that neither the registry nor their records tell of)."""
    scores = [
        (architecture, result, summary)
        for architecture, result in scored(board, section, task, metric)
        if (summary := result.summary(metric))
    ]
    members = {result for _, result in ranked(board, section, task, metric)}
    points = []
    for architecture, result, summary in scores:
        entry = board.architectures.get(architecture)
        if entry and entry.year:
            name, origin = board.result_name(architecture, result), _origin(result)
            score = display_info(metric).plotted(summary.mean)
            points.append(YearPoint(entry.year, score, name, entry.family, entry.paper, origin, result in members))
    return points, len(scores) - len(points)


def _origin(result: Result) -> str:
    """Seeds and training examples behind a point of ours, as far as they are known."""
    seeds = f"{len(result.ok)} seed{'s' * (len(result.ok) > 1)}"
    examples = f"{result.trained_on:,} examples" if result.trained_on else ""
    return ", ".join(filter(None, ("ours", "partial" * result.partial, seeds, examples)))


def _story(board: Board, id: str, title: str, metric: str, points: Iterable[YearPoint], without_year: int) -> Story:
    points = sorted(points)
    info = display_info(metric)
    axis = ", ".join(filter(None, (metric_label(metric), info.unit)))
    data = [*_lines(points, info.lower_is_better), *_families(board, points, info.digits)]
    layout = {
        "xaxis": {"title": {"text": "year of the paper"}, "dtick": 1 + (points[-1].year - points[0].year) // 12},
        "yaxis": {"title": {"text": html.escape(axis)}},
        "hovermode": "closest",
        "showlegend": True,
        "height": 460 + 8 * len(data),
    }
    plot = Plot(f"plot-{id}", f"{metric_label(metric)} by the year of the paper", data, layout)
    return Story(f"story-{id}", title, _lead(points, without_year), axis, info.digits, plot, points)


def _lead(points: Sequence[YearPoint], without_year: int) -> str:
    ours = sum(point.ours for point in points)
    sentences = [f"{ours} results of ours, {len(points) - ours} published values."]
    if without_year == 1:
        sentences.append("1 more has no known year and is left out.")
    elif without_year:
        sentences.append(f"{without_year} more have no known year and are left out.")
    if not all(point.ranked for point in points):
        sentences.append(
            "Results that are not ranked with the others, and values that are likely misprints, are points, but not"
            " part of the line."
        )
    return " ".join(sentences)


def _lines(points: Sequence[YearPoint], lower_is_better: bool) -> Iterator[dict[str, Any]]:
    """The best score so far by year, of the survey's values and of our results."""
    for name, dash, members in (
        ("best published so far", "dot", [point for point in points if not point.ours]),
        ("best of ours so far", "solid", [point for point in points if point.ours]),
    ):
        steps = best_so_far([point for point in members if point.ranked], lower=lower_is_better)
        if len(steps) > 1:
            yield {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": [year for year, _ in steps],
                "y": [score for _, score in steps],
                "line": {"shape": "hv", "color": "var(--quiet)", "dash": dash, "width": 2},
                "hoverinfo": "skip",
            }


def _families(board: Board, points: Sequence[YearPoint], digits: int) -> Iterator[dict[str, Any]]:
    """Markers of each family, ours and published apart."""
    for family in board.families:
        for ours in (True, False):
            members = [point for point in points if point.family == family and point.ours == ours]
            if members:
                yield _markers(marker(board, family), family, ours, members, digits)


def _markers(look: dict[str, str], family: str, ours: bool, points: Sequence[YearPoint], digits: int) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": html.escape(f"{family}, {'ours' if ours else 'published'}"),
        "legendgroup": html.escape(family),
        "x": [point.year for point in points],
        "y": [point.score for point in points],
        "text": [
            html.escape(f"{p.name} ({p.origin})") + (f"<br>{html.escape(p.paper)}" if p.paper else "") for p in points
        ],
        "marker": {
            "size": 10,
            "symbol": look["symbol"] if ours else f"{look['symbol']}-open",
            "color": look["color"],
        },
        "cliponaxis": False,
        "hovertemplate": f"%{{text}}<br>%{{x}}: %{{y:.{digits}f}}<extra></extra>",
    }


def best_so_far(points: Iterable[YearPoint], *, lower: bool) -> list[tuple[int, float]]:
    """The best score up to each year that has a point."""
    better = min if lower else max
    best: dict[int, float] = {}
    so_far: float | None = None
    for point in sorted(points):
        so_far = point.score if so_far is None else better(so_far, point.score)
        best[point.year] = so_far
    return list(best.items())

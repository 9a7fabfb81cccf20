"""Scores by year of publication, and mean ranks across tasks, as plots."""

from __future__ import annotations

import html
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.errors import LeaderboardError
from harness.leaderboard.board import Board, Result, Section
from harness.leaderboard.pages.families import marker
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.ranking import ranked, scored
from harness.leaderboard.significance import (
    RANKED_SYSTEMS,
    RANKED_TASKS,
    Ranks,
    complete_block,
    critical_difference,
    normalised_means,
)
from harness.leaderboard.tables.formatting import metric_label, section_title
from harness.leaderboard.tables.table import Block, Part, Table, TableRow
from harness.metrics import display_info
from harness.records import Record
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
    the others, which the best-so-far line leaves out."""

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
    """Scores on one task of one section by year."""

    id: str
    title: str
    lead: str
    axis: str
    plot: Plot
    rows: list[YearPoint]


@dataclass(frozen=True)
class Ranking:
    """Mean ranks across the tasks of one section; without a plot if there are too few."""

    id: str
    title: str
    lead: list[str]
    plot: Plot | None = None
    table: Table | None = None


SectionRanks = Callable[[Section], Ranks | None]


def story_page(board: Board, section_ranks: SectionRanks | None = None) -> Page:
    """All plots, in the order of the tasks; ``section_ranks`` returns the ranks of a section if
    they are computed elsewhere (:func:`rank_in_background`)."""
    parts = {
        "lead": LEAD,
        "tasks": list(_stories(board)),
        "rankings": [_ranking(board, section, section_ranks) for section in board.sections if section.ranked],
    }
    return Page("story.html", "Families over time", "story.html", parts)


# --- year against score ---


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
            points.append(YearPoint(entry.year, score, value.method, entry.family, entry.paper, "published", True))
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
            score = round(display_info(metric).scale(summary.mean), 2)
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
    data = [*_lines(points, info.lower_is_better), *_families(board, points)]
    layout = {
        "xaxis": {"title": {"text": "year of the paper"}, "dtick": 1 + (points[-1].year - points[0].year) // 12},
        "yaxis": {"title": {"text": html.escape(axis)}},
        "hovermode": "closest",
        "showlegend": True,
        "height": 460 + 8 * len(data),
    }
    plot = Plot(f"plot-{id}", f"{metric_label(metric)} by the year of the paper", data, layout)
    return Story(f"story-{id}", title, _lead(points, without_year), axis, plot, points)


def _lead(points: Sequence[YearPoint], without_year: int) -> str:
    ours = sum(point.ours for point in points)
    sentences = [f"{ours} results of ours, {len(points) - ours} published values."]
    if without_year == 1:
        sentences.append("1 more has no known year and is left out.")
    elif without_year:
        sentences.append(f"{without_year} more have no known year and are left out.")
    if not all(point.ranked for point in points):
        sentences.append("Results that are not ranked with the others are points, but not part of the line.")
    return " ".join(sentences)


def _lines(points: Sequence[YearPoint], lower_is_better: bool) -> Iterator[dict[str, Any]]:
    """The best score so far by year, of the survey's values and of our results."""
    for name, dash, members in (
        ("best published so far", "dot", [point for point in points if not point.ours]),
        ("best of ours so far", "solid", [point for point in points if point.ours and point.ranked]),
    ):
        steps = best_so_far(members, lower=lower_is_better)
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


def _families(board: Board, points: Sequence[YearPoint]) -> Iterator[dict[str, Any]]:
    """Markers of each family, ours and published apart."""
    for family in board.families:
        for ours in (True, False):
            members = [point for point in points if point.family == family and point.ours == ours]
            if members:
                yield _markers(marker(board, family), family, ours, members)


def _markers(look: dict[str, str], family: str, ours: bool, points: Sequence[YearPoint]) -> dict[str, Any]:
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
        "hovertemplate": "%{text}<br>%{x}: %{y:.1f}<extra></extra>",
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


# --- ranks across tasks ---


@contextmanager
def rank_in_background(board: Board) -> Iterator[SectionRanks]:
    """Ranks every section in another process, because importing autorank takes seconds; calls wait
    for the result."""
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else None)
    ) as pool:
        ranks = {
            section: pool.submit(critical_difference, *_rank_arguments(board, section))
            for section in board.sections
            if section.ranked
        }
        yield lambda section: ranks[section].result()


def _rank_arguments(board: Board, section: Section) -> tuple[dict[str, dict[str, float]], set[str]]:
    """Arguments of :func:`critical_difference`."""
    scores, metrics = ranked_scores(board, section)
    return scores, {task for task, metric in metrics.items() if display_info(metric).lower_is_better}


def _ranking(board: Board, section: Section, section_ranks: SectionRanks | None) -> Ranking:
    """Mean ranks with the critical difference, over the architectures that have a score on every
    task that is counted."""
    scores, metrics = ranked_scores(board, section)
    title = f"Across tasks: {section_title(section)}"
    id = f"ranks-{section.id}"
    ranks = section_ranks(section) if section_ranks else critical_difference(*_rank_arguments(board, section))
    if ranks is None:
        return Ranking(id, title, [_why_no_ranks(scores)])
    names = [board.name(architecture) for architecture in ranks.names]
    lead = _ranking_lead(board, ranks, len(scores), len(metrics))
    means, reason = _means(board, section, ranks, scores, metrics)
    table = _rank_table(f"{id}-table", names, ranks, means, reason)
    return Ranking(id, title, lead, _diagram(f"{id}-plot", names, ranks), table)


def _why_no_ranks(scores: dict[str, dict[str, float]]) -> str:
    """Lack of mean ranks explained: too few results, or no package that computes them."""
    if complete_block(scores, RANKED_TASKS, RANKED_SYSTEMS)[0]:
        return "No ranks: the package autorank is not installed; pip install 'archbench[stats]'."
    tasks = max((len(by_task) for by_task in scores.values()), default=0)
    return (
        f"No ranks: they need at least {RANKED_SYSTEMS} architectures that share at least {RANKED_TASKS} tasks."
        f" {len(scores)} architectures have scores here, on up to {tasks} tasks; results that are not ranked on their"
        " task do not count."
    )


def _means(
    board: Board, section: Section, ranks: Ranks, scores: dict[str, dict[str, float]], metrics: dict[str, str]
) -> tuple[dict[str, float], str]:
    """Normalised means of the ranked architectures over the same tasks, or the reason why there
    are none."""
    counted = {id: {task: scores[id][task] for task in ranks.tasks} for id in ranks.names}
    floors = {}
    for task in ranks.tasks:
        group = board.group(section, task)
        if group and (floor := board.floor(group, metrics[task])):
            floors[task] = floor[1]
    try:
        means, _ = normalised_means(
            counted,
            floors,
            lower_is_better={task for task in ranks.tasks if display_info(metrics[task]).lower_is_better},
        )
    except LeaderboardError as error:
        return {}, str(error)
    return means, ""


def _ranking_lead(board: Board, ranks: Ranks, architectures: int, tasks: int) -> list[str]:
    names = ", ".join(map(board.task_name, ranks.tasks))
    return [
        (
            f"{len(ranks.names)} of {architectures} architectures have a score on each of {len(ranks.tasks)} of"
            f" {tasks} tasks ({names}); the others are left out, and so are results that are not ranked on their"
            " task. Rank 1 is the best."
        ),
        (
            f"Friedman's test that all are alike: p = {ranks.p:.3g}. Two architectures differ significantly if"
            f" their mean ranks are more than {ranks.cd:.2f} apart (Nemenyi, 5 %); bars join those that are not."
        ),
    ]


def _rank_table(id: str, names: Sequence[str], ranks: Ranks, means: dict[str, float], reason: str) -> Table:
    """Ranks, and means over the same tasks; ``reason`` says why there are no means."""
    rows = []
    for architecture, name, rank in zip(ranks.names, names, ranks.mean_ranks, strict=True):
        near = sum(abs(other - rank) <= ranks.cd for other in ranks.mean_ranks) - 1
        cells = [[Part(f"{rank:.2f}", order=rank)], [Part(str(near), order=near)]]
        if means:
            cells.append([Part(f"{means[architecture]:.3f}", order=means[architecture])])
        rows.append(TableRow(name, cells, title=architecture))
    columns = ["Architecture", "mean rank", "others within the critical difference"]
    if means:
        columns.append("mean of normalised scores")
        reason = "Normalised: 0 is the best floor of a task, 1 the best of these architectures."
    return Table(id, "Mean ranks", columns, [Block("", rows)], [reason])


def ranked_scores(board: Board, section: Section) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Main scores by architecture and task, and the metric of each task.

    Only :func:`~harness.leaderboard.ranking.ranked` results count. An architecture with several
    settings is represented by those that did best on dev, because the best on test would be a
    choice made on the test split.
    """
    scores: dict[str, dict[str, float]] = {}
    metrics: dict[str, str] = {}
    for task in board.recorded_tasks:
        metric = board.main_metric(task)
        configurations: dict[str, list[Result]] = {}
        for architecture, result in ranked(board, section, task, metric):
            configurations.setdefault(architecture, []).append(result)
        for architecture, results in configurations.items():
            summary = max(results, key=lambda result: _dev_quality(result.ok, metric)).summary(metric)
            assert summary
            scores.setdefault(architecture, {})[task] = summary.mean
            metrics[task] = metric
    return scores, metrics


def _dev_quality(records: Sequence[Record], metric: str) -> float:
    """Mean dev score with its sign such that more is better; minus infinity if there is none."""
    values = [record.scores["dev"][metric] for record in records if metric in record.scores.get("dev", {})]
    return display_info(metric).quality(sum(values) / len(values)) if values else float("-inf")


def _diagram(id: str, names: Sequence[str], ranks: Ranks) -> Plot:
    """Architectures at their mean ranks, best at the top, with a bar over each group within the
    critical difference."""
    rows = list(range(1, len(names) + 1))
    data: list[dict[str, Any]] = []
    for i, (start, end) in enumerate(groups(ranks.mean_ranks, ranks.cd)):
        height = (start + end) / 2 + 1
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": "no more than the critical difference apart",
                "legendgroup": "group",
                "x": [ranks.mean_ranks[start], ranks.mean_ranks[end]],
                "y": [height, height],
                "showlegend": i == 0,
                "hoverinfo": "skip",
                "line": {"color": "var(--series-2)", "width": 4},
                "marker": {"symbol": "line-ns-open", "size": 10},
            }
        )
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "mean rank",
            "x": [round(rank, 4) for rank in ranks.mean_ranks],
            "y": rows,
            "text": [html.escape(name) for name in names],
            "marker": {"size": 9, "color": "var(--series-1)"},
            "hovertemplate": "%{text}: %{x:.2f}<extra></extra>",
        }
    )
    layout = {
        "xaxis": {"title": {"text": f"mean rank over {len(ranks.tasks)} tasks (1 is the best)"}},
        "yaxis": {
            "tickvals": rows,
            "ticktext": [html.escape(name) for name in names],
            "autorange": "reversed",
            "automargin": True,
        },
        "hovermode": "closest",
        "showlegend": True,
        "height": max(416, 180 + 26 * len(names)),
    }
    return Plot(id, f"Mean ranks, critical difference {ranks.cd:.2f}", data, layout)


def groups(ranks: Sequence[float], cd: float) -> list[tuple[int, int]]:
    """First and last position of every longest run of neighbours (best first) within ``cd`` of each
    other; runs of one are left out."""
    runs: list[tuple[int, int]] = []
    for start in range(len(ranks)):
        end = max(i for i in range(start, len(ranks)) if ranks[i] - ranks[start] <= cd)
        if end > start and (not runs or end > runs[-1][1]):
            runs.append((start, end))
    return runs

"""The survey's story as pictures: what each year's architectures score, task by task, and who leads
across tasks."""

from __future__ import annotations

import html
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.leaderboard.board import Board, Result, Section
from harness.leaderboard.catalogue import Described, read_catalogue
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.significance import Ranks, critical_difference
from harness.leaderboard.tables.formatting import metric_label, section_title
from harness.leaderboard.tables.table import Block, Part, Row, Table
from harness.metrics import display_info
from harness.records import Record

FEWEST = 3
"""A picture takes so many results and published values, of two years at least."""
SHAPES = ("circle", "square", "diamond")
SERIES = 8
"""Colours of the style sheet; families beyond that take the next shape."""
LEAD = (
    (
        "Each point is one architecture at the year of its paper. Filled points are ours, open ones the values that the"
        " survey prints; colour and shape tell the families apart. The lines are the best so far by year. Pointing at a"
        " point names it; a click on a family in the legend hides it."
    ),
    (
        "Ours and published values of one picture are scores on the same data set by the same metric, but not of the"
        " same training: what sets ours apart (no pretrained vectors, a part of the data) stands on the pages of the"
        " tasks and architectures."
    ),
)


class Point(NamedTuple):
    """One score of one architecture; ``full`` says whether it takes part in the best so far:
    trained on as much as the others."""

    year: int
    score: float
    name: str
    family: str
    paper: str
    origin: str
    full: bool


@dataclass(frozen=True)
class Story:
    """One task of one section over time."""

    id: str
    title: str
    lead: str
    axis: str
    plot: Plot
    rows: list[Point]


@dataclass(frozen=True)
class Ranking:
    """Mean ranks across the tasks of one section; without a plot where there are too few."""

    id: str
    title: str
    lead: list[str]
    plot: Plot | None = None
    table: Table | None = None


Ranked = Callable[[Section], Ranks | None]


def story_page(board: Board, ranked: Ranked | None = None) -> Page:
    """All pictures, in the order of the tasks; ``ranked`` knows the ranks of a section already
    (:func:`rank_in_background`)."""
    catalogue = read_catalogue(board)
    families = sorted(
        {*(entry.family for entry in board.architectures.values()), *(each.family for each in catalogue.values())}
    )
    parts = {
        "lead": LEAD,
        "tasks": list(_stories(board, catalogue, families)),
        "rankings": [_ranking(board, section, ranked) for section in board.sections],
    }
    return Page("story.html", "Families over time", "story.html", parts)


# --- year against score ---


def _stories(board: Board, catalogue: dict[str, Described], families: Sequence[str]) -> Iterator[Story]:
    for task in dict.fromkeys([*board.known_tasks, *(value.dataset for value in board.published)]):
        metric = _metric(board, task)
        published, undated = _published(board, catalogue, task, metric)
        recorded = [section for section in board.sections if board.results(section, task)]
        drawn = False
        for section in recorded:
            ours, unknown = _ours(board, section, task, metric)
            beside = [] if section.tier == "mini" else published
            if ours and _enough([*ours, *beside]):
                drawn = drawn or bool(beside)
                missing = unknown + (0 if section.tier == "mini" else undated)
                yield _story(
                    board,
                    task,
                    metric,
                    section_title(section),
                    f"{task}-{section.id}",
                    [*ours, *beside],
                    missing,
                    families,
                )
        if not drawn and _enough(published):
            yield _story(
                board, task, metric, "published values alone", f"{task}-published", published, undated, families
            )


def _metric(board: Board, task: str) -> str:
    """The metric that ranks a task; of a data set that is no task here, the one it has most
    published values of."""
    if task in board.tasks or task in board.recorded_tasks:
        return board.main_metric(task)
    found = [value.metric for value in board.published if value.dataset == task]
    return max(dict.fromkeys(found), key=found.count)


def _enough(points: Sequence[Point]) -> bool:
    return len(points) >= FEWEST and len({point.year for point in points}) > 1


def _published(board: Board, catalogue: dict[str, Described], task: str, metric: str) -> tuple[list[Point], int]:
    """Points of the survey's values, and how many of those have no year."""
    values = [value for value in board.published if (value.dataset, value.metric) == (task, metric)]
    points = []
    for value in values:
        entry, described = board.architectures.get(value.architecture), catalogue.get(value.architecture)
        year = entry.year if entry else described.year if described else None
        if year is not None:
            family, paper = (
                (entry.family, entry.paper) if entry else (described.family, described.paper) if described else ("", "")
            )
            points.append(Point(year, float(value.percent), value.method, family, paper, "published", True))
    return points, len(values) - len(points)


def _ours(board: Board, section: Section, task: str, metric: str) -> tuple[list[Point], int]:
    """Points of our results, and how many of those are of architectures that are not registered
    here and so have no year."""
    scored = [(a, result, summary) for a, result in board.results(section, task) if (summary := result.summary(metric))]
    rivals = {result for _, result in board.rivals(section, task, metric)}
    points = []
    for architecture, result, summary in scored:
        entry = board.architectures.get(architecture)
        if entry:
            name = entry.name + (f" ({result.settings})" if result.settings else "")
            partial = any(record.partial for record in result.ok)
            full = result in rivals
            score = round(display_info(metric).shown(summary.mean), 2)
            points.append(
                Point(entry.year, score, name, entry.family, entry.paper, "ours, partial" if partial else "ours", full)
            )
    return points, len(scored) - len(points)


def _story(
    board: Board,
    task: str,
    metric: str,
    where: str,
    key: str,
    points: list[Point],
    undated: int,
    families: Sequence[str],
) -> Story:
    points = sorted(points)
    info = display_info(metric)
    data = []
    for name, dash, chosen in (
        ("best published so far", "dot", [p for p in points if p.origin == "published"]),
        ("best of ours so far", "solid", [p for p in points if p.origin != "published" and p.full]),
    ):
        steps = best_so_far(chosen, lower=info.lower_is_better)
        if len(steps) > 1:
            trace = {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": [year for year, _ in steps],
                "y": [score for _, score in steps],
            }
            data.append(
                trace
                | {
                    "line": {"shape": "hv", "color": "var(--quiet)", "dash": dash, "width": 2},
                    "hoverinfo": "skip",
                }
            )
    for family in families:
        for ours in (True, False):
            mine = [point for point in points if point.family == family and (point.origin != "published") == ours]
            if mine:
                data.append(_markers(family, ours, mine, families.index(family)))
    axis = ", ".join(filter(None, (metric_label(metric), info.unit)))
    layout = {
        "xaxis": {"title": {"text": "year of the paper"}, "dtick": 1 + (points[-1].year - points[0].year) // 12},
        "yaxis": {"title": {"text": html.escape(axis)}},
        "hovermode": "closest",
        "showlegend": True,
        "height": 460 + 8 * len(data),
    }
    title = f"{board.task_name(task)}: {where}"
    ours = sum(point.origin != "published" for point in points)
    lead = f"{ours} results of ours, {len(points) - ours} published values."
    if undated:
        lead += (
            f" {undated} more {'has' if undated == 1 else 'have'} no known year and {'is' if undated == 1 else 'are'}"
            " left out."
        )
    if any(not point.full for point in points):
        lead += " Results with less training data than others of the section are points, but no part of the line."
    return Story(
        f"story-{key}",
        title,
        lead,
        axis,
        Plot(f"plot-{key}", f"{metric_label(metric)} by the year of the paper", data, layout),
        points,
    )


def _markers(family: str, ours: bool, points: Sequence[Point], number: int) -> dict[str, Any]:
    shape = SHAPES[number // SERIES % len(SHAPES)]
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
            "symbol": shape if ours else f"{shape}-open",
            "color": f"var(--series-{number % SERIES + 1})",
        },
        "cliponaxis": False,
        "hovertemplate": "%{text}<br>%{x}: %{y:.1f}<extra></extra>",
    }


def best_so_far(points: Iterable[Point], *, lower: bool) -> list[tuple[int, float]]:
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
def rank_in_background(board: Board) -> Iterator[Ranked]:
    """Ranks every section in a process beside this one, as what autorank imports takes seconds; the
    result waits for it."""
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else None)
    ) as pool:
        begun = {section: pool.submit(critical_difference, *_to_rank(board, section)) for section in board.sections}
        yield lambda section: begun[section].result()


def _to_rank(board: Board, section: Section) -> tuple[dict[str, dict[str, float]], set[str]]:
    """What :func:`critical_difference` takes."""
    scores, metrics = ranked_scores(board, section)
    return scores, {task for task, metric in metrics.items() if display_info(metric).lower_is_better}


def _ranking(board: Board, section: Section, ranked: Ranked | None) -> Ranking:
    """Mean ranks with the critical difference, of the architectures that have a score on every task
    that is counted."""
    scores, metrics = ranked_scores(board, section)
    title = f"Across tasks: {section_title(section)}"
    id = f"ranks-{section.id}"
    ranks = ranked(section) if ranked else critical_difference(*_to_rank(board, section))
    if ranks is None:
        most = max((len(mine) for mine in scores.values()), default=0)
        lead = (
            "No ranks: they take 3 architectures or more that share 5 tasks or more, and the package autorank (extra"
            " stats)."
        )
        lead += (
            f" {len(scores)} architectures have scores here, on up to {most} tasks; results trained on less data than"
            " others do not count."
        )
        return Ranking(id, title, [lead])
    tasks = ", ".join(map(board.task_name, ranks.tasks))
    lead = [
        (
            f"{len(ranks.names)} of {len(scores)} architectures have a score on each of {len(ranks.tasks)} of"
            f" {len(metrics)} tasks ({tasks}); the others are left out, and so are results trained on less data than"
            " others of their task. Rank 1 is the best."
        ),
        (
            f"Friedman's test that all are alike: p = {ranks.p:.3g}. Two architectures differ by more than chance where"
            f" their mean ranks are more than {ranks.cd:.2f} apart (Nemenyi, 5 %); bars join those that are not."
        ),
    ]
    names = [board.name(architecture) for architecture in ranks.names]
    rows = []
    for architecture, name, rank in zip(ranks.names, names, ranks.mean_ranks, strict=True):
        near = sum(abs(other - rank) <= ranks.cd for other in ranks.mean_ranks) - 1
        rows.append(Row(name, [[Part(f"{rank:.2f}", order=rank)], [Part(str(near), order=near)]], title=architecture))
    table = Table(
        f"{id}-table",
        "Mean ranks",
        ["Architecture", "mean rank", "others within the critical difference"],
        [Block("", rows)],
    )
    return Ranking(id, title, lead, _diagram(f"{id}-plot", names, ranks), table)


def ranked_scores(board: Board, section: Section) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Main scores by architecture and task, and each task's metric.

    Only results trained on the largest training set of the task count. Where an architecture has
    several settings, those that did best on dev stand for it: the best on test would be a choice
    made on the test split.
    """
    scores: dict[str, dict[str, float]] = {}
    metrics: dict[str, str] = {}
    for task in board.recorded_tasks:
        metric = board.main_metric(task)
        chosen: dict[str, list[Result]] = {}
        for architecture, result in board.rivals(section, task, metric):
            chosen.setdefault(architecture, []).append(result)
        for architecture, results in chosen.items():
            summary = max(results, key=lambda result: _dev(result.ok, metric)).summary(metric)
            assert summary
            scores.setdefault(architecture, {})[task] = summary.mean
            metrics[task] = metric
    return scores, metrics


def _dev(records: Sequence[Record], metric: str) -> float:
    """Mean dev score with its sign such that more is better; what has none comes last."""
    values = [record.scores["dev"][metric] for record in records if metric in record.scores.get("dev", {})]
    if not values:
        return float("-inf")
    return display_info(metric).quality(sum(values) / len(values))


def _diagram(id: str, names: Sequence[str], ranks: Ranks) -> Plot:
    """Architectures at their mean ranks, best at the top, and a bar over each group that the
    critical difference does not part."""
    rows = list(range(1, len(names) + 1))
    data: list[dict[str, Any]] = []
    for i, (start, end) in enumerate(groups(ranks.mean_ranks, ranks.cd)):
        height = (start + end) / 2 + 1
        trace = {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "no more than the critical difference apart",
            "legendgroup": "group",
        }
        trace |= {
            "x": [ranks.mean_ranks[start], ranks.mean_ranks[end]],
            "y": [height, height],
            "showlegend": i == 0,
            "hoverinfo": "skip",
        }
        data.append(
            trace | {"line": {"color": "var(--series-2)", "width": 4}, "marker": {"symbol": "line-ns-open", "size": 10}}
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
    """First and last of every longest run of neighbours (best first) that lie within ``cd`` of each
    other; none of one alone."""
    found: list[tuple[int, int]] = []
    for start in range(len(ranks)):
        end = max(i for i in range(start, len(ranks)) if ranks[i] - ranks[start] <= cd)
        if end > start and (not found or end > found[-1][1]):
            found.append((start, end))
    return found

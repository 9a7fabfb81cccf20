"""A task's plots: quality against speed and size with the Pareto front, learning curves, and how
far seeds lie apart."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from harness.leaderboard.board import Board, Result, Section
from harness.leaderboard.pages.page import Plot
from harness.leaderboard.significance import summarise
from harness.leaderboard.tables.cost import COUNTS, MEASURES, by_device, mean_of, most_beside
from harness.leaderboard.tables.formatting import axis_title, section_title
from harness.metrics import display_info

COLOURS = 8  # those of archbench.css; where they are used up, symbols and dashes tell groups apart
SYMBOLS = ("circle", "square", "diamond", "cross")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
NAMED = 12
"""Up to so many points carry their names; more would cover each other, and hovering names them."""


class Point(NamedTuple):
    """One result: its cost, its score as shown, the deviation over seeds, its name, and the family
    that gives it its colour."""

    cost: float
    score: float
    sd: float
    name: str
    family: str


def task_plots(board: Board, task: str) -> list[Plot]:
    """The plots of every section of a task."""
    return [plot for section in board.sections for plot in _section_plots(board, section, task)]


def _section_plots(board: Board, section: Section, task: str) -> Iterator[Plot]:
    metric = board.main_metric(task)
    mine = [(a, result) for a, result in board.results(section, task) if result.ok]
    where = section_title(section)
    key = f"{task}-{section.id}"
    for i, (machine, points) in enumerate(sorted(_by_speed(board, metric, mine).items())):
        speed = {
            "title": {
                "text": (
                    "training speed"
                    f" (examples/s{'; †: beside other cells' if any('†' in p.name for p in points) else ''})"
                )
            }
        }
        title = f"Quality against training speed on {machine}: {where}"
        yield Plot(f"speed-{key}-{i}", title, *_scatter(metric, points, speed, more_is_better=True))
    if sized := list(_by_size(board, metric, mine)):
        size = {"title": {"text": "trainable parameters"}}
        yield Plot(
            f"size-{key}",
            f"Quality against number of parameters: {where}",
            *_scatter(metric, sized, size, more_is_better=False),
        )
    quality: dict[str, Any] = {"title": {"text": f"dev {html.escape(axis_title(metric))}"}}
    for name, column, show, axis in (
        ("dev", metric, display_info(metric).shown, quality),
        ("loss", "train_loss", float, {"title": {"text": "training loss (logarithmic)"}, "type": "log"}),
    ):
        lines = list(_curves(board, mine, column, show))
        if lines:
            what = "Learning curves, score on dev" if name == "dev" else "Learning curves, training loss"
            layout: dict[str, Any] = {
                "xaxis": {"title": {"text": "epoch"}, "rangemode": "tozero"},
                "yaxis": axis,
                "hovermode": "closest",
            }
            layout |= {"height": 420 + 8 * len(lines), "showlegend": True}
            yield Plot(f"{name}-{key}", f"{what}, first seed of each: {where}", lines, layout)
    if seeds := _seeds(board, metric, mine):
        yield Plot(f"seeds-{key}", f"Every seed of what has several: {where}", *seeds)


def _by_speed(board: Board, metric: str, mine: Iterable[tuple[str, Result]]) -> dict[str, list[Point]]:
    """Points by machine: the speeds of two machines are not comparable."""
    found: dict[str, list[Point]] = {}
    for architecture, result in mine:
        summary = result.summary(metric)
        for machine, records in by_device(result).items() if summary else ():
            rate = mean_of(records, MEASURES["training examples/s"])
            if rate:
                point = _point(board, metric, architecture, result, rate)
                found.setdefault(machine, []).append(
                    point._replace(name=f"{point.name} †") if most_beside(records) else point
                )
    return found


def _by_size(board: Board, metric: str, mine: Iterable[tuple[str, Result]]) -> Iterator[Point]:
    for architecture, result in mine:
        size = mean_of(result.ok, COUNTS["parameters"][0])
        if size and result.summary(metric):
            yield _point(board, metric, architecture, result, size)


def _point(board: Board, metric: str, architecture: str, result: Result, cost: float) -> Point:
    summary, entry = result.summary(metric), board.architectures.get(architecture)
    assert summary
    info = display_info(metric)
    partial = ", partial" if any(record.partial for record in result.ok) else ""
    return Point(
        float(f"{cost:.4g}"),
        round(info.shown(summary.mean), 2),
        round(info.shown_deviation(summary.mean, summary.sd or 0.0), 2),
        _named(board, architecture, result) + partial,
        html.escape(entry.family if entry else "not registered here"),
    )


def _scatter(
    metric: str, points: Sequence[Point], axis: dict[str, Any], *, more_is_better: bool
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Points coloured by family, with the Pareto front as a line; the axis of costs is
    logarithmic."""
    edge = front(points, more_is_better=more_is_better, lower_is_better=display_info(metric).lower_is_better)
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "Pareto front",
            "x": [p.cost for p in edge],
            "y": [p.score for p in edge],
            "line": {"color": "var(--quiet)", "dash": "dot", "width": 2},
            "hoverinfo": "skip",
        }
    ]
    for i, family in enumerate(sorted({point.family for point in points})):
        mine = sorted(point for point in points if point.family == family)
        data.append(
            {
                "type": "scatter",
                "mode": "markers+text" if len(points) <= NAMED else "markers",
                "name": family,
                "x": [p.cost for p in mine],
                "y": [p.score for p in mine],
                "error_y": {"type": "data", "array": [p.sd for p in mine], "thickness": 1},
                "text": [p.name for p in mine],
                "textposition": "top center",
                "cliponaxis": False,
                "marker": {"size": 9, "symbol": SYMBOLS[i // COLOURS % len(SYMBOLS)], "color": _colour(i)},
                "hovertemplate": "%{text}<br>%{y:.1f} at %{x:,.4g}<extra></extra>",
            }
        )
    scores = {"title": {"text": f"test {html.escape(axis_title(metric))}"}}
    return data, {"xaxis": axis | {"type": "log"}, "yaxis": scores, "showlegend": True, "hovermode": "closest"}


def front(points: Iterable[Point], *, more_is_better: bool, lower_is_better: bool) -> list[Point]:
    """The points that no other beats in both: the best score there is at that cost or a better one;
    cheapest first.

    ``more_is_better``: of the cost (a speed); ``lower_is_better``: of the score (an error rate).
    """
    dear = -1 if more_is_better else 1
    bad = 1 if lower_is_better else -1
    edge: list[Point] = []
    for point in sorted(points, key=lambda p: (dear * p.cost, bad * p.score, p.name)):
        if not edge or bad * point.score < bad * edge[-1].score:
            edge.append(point)
    return edge


def _curves(
    board: Board, mine: Iterable[tuple[str, Result]], column: str, show: Callable[[float], float]
) -> Iterator[dict[str, Any]]:
    """One line per result: a column of the curve of its first seed that has one."""
    drawn = 0
    for architecture, result in mine:
        for record in result.ok:
            both = ((row.get("epoch"), row.get(column)) for row in record.training.get("curve", ()))
            rows = [(epoch, value) for epoch, value in both if epoch is not None and value is not None]
            if rows:
                name = f"{_named(board, architecture, result)}, seed {record.seed}"
                yield {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": name,
                    "x": [epoch for epoch, _ in rows],
                    "y": [float(f"{show(value):.4g}") for _, value in rows],
                    "marker": {"size": 5},
                    "line": {"color": _colour(drawn), "dash": DASHES[drawn // COLOURS % len(DASHES)], "width": 1.5},
                    "text": name,  # not in the template, where a name could hold a %{field}
                    "hovertemplate": "%{text}<br>epoch %{x}: %{y:.4g}<extra></extra>",
                }
                drawn += 1
                break


def _colour(i: int) -> str:
    return f"var(--series-{i % COLOURS + 1})"


def _seeds(
    board: Board, metric: str, mine: Iterable[tuple[str, Result]]
) -> tuple[list[dict[str, Any]], dict[str, Any]] | None:
    """A row of points for each result with several seeds, best mean at the top; None where there is
    none."""
    rows = [
        (_named(board, architecture, result), values)
        for architecture, result in mine
        if len(values := _scores(result, metric)) > 1
    ]
    if not rows:
        return None
    quality = display_info(metric).quality
    rows.sort(key=lambda row: (quality(summarise([value for _, value in row[1]]).mean), row[0]))
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [round(value, 2) for _, values in rows for _, value in values],
        "y": [name for name, values in rows for _ in values],
        "text": [f"seed {seed}" for _, values in rows for seed, _ in values],
        "marker": {"size": 8, "opacity": 0.75},
        "hovertemplate": "%{y}, %{text}: %{x:.1f}<extra></extra>",
    }
    layout = {
        "height": 140 + 24 * len(rows),
        "xaxis": {"title": {"text": f"test {html.escape(axis_title(metric))}"}},
        "yaxis": {"type": "category", "automargin": True},
        "showlegend": False,
        "hovermode": "closest",
    }
    return [trace], layout


def _scores(result: Result, metric: str) -> list[tuple[int, float]]:
    """Seeds and their test scores as shown."""
    tests = [(record.seed, record.scores.get("test", {})) for record in result.ok]
    return [(seed, display_info(metric).shown(test[metric])) for seed, test in tests if metric in test]


def _named(board: Board, architecture: str, result: Result) -> str:
    """A result's name for plotly, which reads markup."""
    return html.escape(board.name(architecture) + (f" ({result.settings})" if result.settings else ""))

"""Plots of a task: quality against speed and size with the Pareto front, learning curves, and the
spread over seeds."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from harness.leaderboard import sizes
from harness.leaderboard.board import Board, Pairs, Result, Section
from harness.leaderboard.pages.page import Plot
from harness.leaderboard.ranking import ranked
from harness.leaderboard.significance import summarise
from harness.leaderboard.tables.cost import COUNTS, MEASURES, by_device, max_other_cells, mean_of
from harness.leaderboard.tables.formatting import axis_title, section_title
from harness.metrics import display_info

COLOURS = 8  # as in archbench.css; beyond these, groups differ by symbol or dash
SYMBOLS = ("circle", "square", "diamond", "cross")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MAX_LABELS = 12
"""Largest number of points with printed names; more names would overlap. Hovering shows all."""


class CostPoint(NamedTuple):
    """One result: cost, shown score, deviation over seeds, name, the family that sets its colour,
    and true if it may stand on the front."""

    cost: float
    score: float
    sd: float
    name: str
    family: str
    ranked: bool = True


def task_plots(board: Board, task: str) -> list[Plot]:
    """The plots of every section of a task, and those over its numbers of training examples."""
    of_sections = [plot for section in board.sections for plot in _section_plots(board, section, task)]
    return of_sections + [
        _size_plot(board, task, place, of_place) for place, of_place in sizes.lines(board, task).items()
    ]


def _section_plots(board: Board, section: Section, task: str) -> Iterator[Plot]:
    metric = board.main_metric(task)
    results = [(architecture, result) for architecture, result in board.results(section, task) if result.ok]
    members = {result for _, result in ranked(board, section, task, metric)}
    title, id = section_title(section), f"{task}-{section.id}"
    for i, (machine, points) in enumerate(sorted(_by_speed(board, metric, results, members).items())):
        shared = "; †: other cells ran on the machine" if any("†" in point.name for point in points) else ""
        axis = {"title": {"text": f"training speed (examples/s{shared})"}}
        scatter = _scatter(metric, points, axis, more_is_better=True)
        yield Plot(f"speed-{id}-{i}", f"Quality against training speed on {machine}: {title}", *scatter)
    if points := list(_by_size(board, metric, results, members)):
        scatter = _scatter(metric, points, {"title": {"text": "trainable parameters"}}, more_is_better=False)
        yield Plot(f"size-{id}", f"Quality against number of parameters: {title}", *scatter)
    if lines := list(_curves(board, results, metric, display_info(metric).scale)):
        axis = {"title": {"text": f"dev {html.escape(axis_title(metric))}"}}
        layout = _curve_layout(axis, len(lines))
        yield Plot(f"dev-{id}", f"Learning curves, score on dev, first seed of each: {title}", lines, layout)
    if lines := list(_curves(board, results, "train_loss", float)):
        layout = _curve_layout({"title": {"text": "training loss (logarithmic)"}, "type": "log"}, len(lines))
        yield Plot(f"loss-{id}", f"Learning curves, training loss, first seed of each: {title}", lines, layout)
    if seeds := _seeds(board, metric, results):
        yield Plot(f"seeds-{id}", f"All seeds of results with several: {title}", *seeds)


def _curve_layout(axis: dict[str, Any], lines: int) -> dict[str, Any]:
    return {
        "xaxis": {"title": {"text": "epoch"}, "rangemode": "tozero"},
        "yaxis": axis,
        "hovermode": "closest",
        "height": 420 + 8 * lines,
        "showlegend": True,
    }


def _by_speed(board: Board, metric: str, results: Pairs, members: Collection[Result]) -> dict[str, list[CostPoint]]:
    """Points by machine; the speeds of two machines are not comparable."""
    points: dict[str, list[CostPoint]] = {}
    for architecture, result in results:
        summary = result.summary(metric)
        for machine, records in by_device(result).items() if summary else ():
            rate = mean_of(records, MEASURES["training examples/s"])
            if rate:
                point = _point(board, metric, architecture, result, rate, members)
                if max_other_cells(records):
                    point = point._replace(name=f"{point.name} †")
                points.setdefault(machine, []).append(point)
    return points


def _by_size(board: Board, metric: str, results: Pairs, members: Collection[Result]) -> Iterator[CostPoint]:
    for architecture, result in results:
        size = mean_of(result.ok, COUNTS["parameters"][0])
        if size and result.summary(metric):
            yield _point(board, metric, architecture, result, size, members)


def _point(
    board: Board, metric: str, architecture: str, result: Result, cost: float, members: Collection[Result]
) -> CostPoint:
    summary, entry = result.summary(metric), board.architectures.get(architecture)
    assert summary
    info = display_info(metric)
    return CostPoint(
        float(f"{cost:.4g}"),
        round(info.scale(summary.mean), 2),
        round(info.scale_deviation(summary.mean, summary.sd or 0.0), 2),
        _name(board, architecture, result) + (", partial" if result.partial else ""),
        html.escape(entry.family if entry else "not registered here"),
        result in members,
    )


def _scatter(
    metric: str, points: Sequence[CostPoint], axis: dict[str, Any], *, more_is_better: bool
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Points coloured by family, with the Pareto front of those that are ranked as a line; the axis
    of costs is logarithmic."""
    members = [point for point in points if point.ranked]
    edge = front(members, more_is_better=more_is_better, lower_is_better=display_info(metric).lower_is_better)
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "Pareto front",
        "x": [p.cost for p in edge],
        "y": [p.score for p in edge],
        "line": {"color": "var(--quiet)", "dash": "dot", "width": 2},
        "hoverinfo": "skip",
    }
    data: list[dict[str, Any]] = [line] if edge else []
    for i, family in enumerate(sorted({point.family for point in points})):
        members = sorted(point for point in points if point.family == family)
        data.append(
            {
                "type": "scatter",
                "mode": "markers+text" if len(points) <= MAX_LABELS else "markers",
                "name": family,
                "x": [p.cost for p in members],
                "y": [p.score for p in members],
                "error_y": {"type": "data", "array": [p.sd for p in members], "thickness": 1},
                "text": [p.name for p in members],
                "textposition": "top center",
                "cliponaxis": False,
                "marker": {"size": 9, "symbol": SYMBOLS[i // COLOURS % len(SYMBOLS)], "color": _colour(i)},
                "hovertemplate": "%{text}<br>%{y:.1f} at %{x:,.4g}<extra></extra>",
            }
        )
    scores = {"title": {"text": f"test {html.escape(axis_title(metric))}"}}
    return data, {"xaxis": axis | {"type": "log"}, "yaxis": scores, "showlegend": True, "hovermode": "closest"}


def front(points: Iterable[CostPoint], *, more_is_better: bool, lower_is_better: bool) -> list[CostPoint]:
    """The Pareto front, cheapest first: points whose score no other reaches at that cost or a
    better one.

    ``more_is_better`` holds for costs that are speeds, ``lower_is_better`` for scores that are
    error rates.
    """
    expense = -1 if more_is_better else 1
    loss = 1 if lower_is_better else -1
    edge: list[CostPoint] = []
    for point in sorted(points, key=lambda p: (expense * p.cost, loss * p.score, p.name)):
        if not edge or loss * point.score < loss * edge[-1].score:
            edge.append(point)
    return edge


def _curves(board: Board, results: Pairs, column: str, show: Callable[[float], float]) -> Iterator[dict[str, Any]]:
    """One line per result: a column of the curve of its first seed that has one."""
    lines = ((_name(board, architecture, result), _first_curve(result, column)) for architecture, result in results)
    for i, (result_name, (seed, points)) in enumerate((name, curve) for name, curve in lines if curve):
        name = f"{result_name}, seed {seed}"
        yield {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": [epoch for epoch, _ in points],
            "y": [float(f"{show(value):.4g}") for _, value in points],
            "marker": {"size": 5},
            "line": {"color": _colour(i), "dash": DASHES[i // COLOURS % len(DASHES)], "width": 1.5},
            "text": name,  # not in the template, where a name could hold a %{field}
            "hovertemplate": "%{text}<br>epoch %{x}: %{y:.4g}<extra></extra>",
        }


def _first_curve(result: Result, column: str) -> tuple[int, list[tuple[float, float]]] | None:
    """Seed and (epoch, value) of the first record whose curve has the column."""
    for record in result.ok:
        pairs = ((row.get("epoch"), row.get(column)) for row in record.training.get("curve", ()))
        points = [(epoch, value) for epoch, value in pairs if epoch is not None and value is not None]
        if points:
            return record.seed, points
    return None


def _size_plot(board: Board, task: str, place: sizes.Place, of_place: sizes.Lines) -> Plot:
    """Test score by the number of training examples; classical architectures are dotted."""
    metric = board.main_metric(task)
    show = display_info(metric).scale
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": html.escape(board.name(architecture)),
            "x": list(points),
            "y": [float(f"{show(score):.4g}") for score in points.values()],
            "line": {"color": _colour(i), "dash": "dot" if board.is_classical(architecture) else "solid", "width": 1.5},
        }
        for i, (architecture, points) in enumerate(of_place.items())
    ]
    layout = _curve_layout({"title": {"text": html.escape(axis_title(metric))}}, len(traces))
    layout["xaxis"] = {"title": {"text": "training examples (logarithmic)"}, "type": "log"}
    return Plot(place.id(task), f"Quality by training examples: {place.words}", traces, layout)


def _colour(i: int) -> str:
    return f"var(--series-{i % COLOURS + 1})"


def _seeds(board: Board, metric: str, results: Pairs) -> tuple[list[dict[str, Any]], dict[str, Any]] | None:
    """A row of points for each result with several seeds, best mean at the top; None if there is no
    such result."""
    rows = [
        (_name(board, architecture, result), values)
        for architecture, result in results
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
    """Seeds and their test scores on the scale of the pages."""
    tests = [(record.seed, record.scores.get("test", {})) for record in result.ok]
    return [(seed, display_info(metric).scale(test[metric])) for seed, test in tests if metric in test]


def _name(board: Board, architecture: str, result: Result) -> str:
    """A result's name, escaped for plotly."""
    return html.escape(board.result_name(architecture, result))

"""Plots of a task: quality against cost with the Pareto front, learning curves, and the spread over
seeds."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from harness.leaderboard import sizes
from harness.leaderboard.board import Board
from harness.leaderboard.pages.families import COLOURS, colour, marker, series
from harness.leaderboard.pages.page import Plot
from harness.leaderboard.ranking import ranked
from harness.leaderboard.results import Pairs, Result, Section
from harness.leaderboard.summary import Summary, summarise
from harness.leaderboard.tables.cost import COUNTS, mean_of
from harness.leaderboard.tables.formatting import axis_title, section_title
from harness.metrics import MetricInfo, display_info
from harness.records import Record

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MAX_CURVES = 8
"""Learning curves that are shown before a reader chooses: those of the best."""


class CostPoint(NamedTuple):
    """One result: cost, shown score, deviation over seeds, name, the family that sets its colour,
    true if it may stand on the front, and its number of seeds."""

    cost: float
    score: float
    sd: float
    name: str
    family: str
    ranked: bool = True
    seeds: int = 1


Cost = Callable[[str, Result], float | None]
"""Cost of a result of an architecture; None where nobody measured it."""


def costs(board: Board) -> dict[str, tuple[str, Cost]]:
    """The costs that pages compare, by id: the title of the axis, and the measure. Times are those
    of a quiet machine: cells of a grid are timed beside each other."""

    def latency(architecture: str, _: Result) -> float | None:
        speed = board.speeds.get(architecture)
        return speed.latency_ms if speed else None

    return {
        "latency": ("milliseconds of one answer on a quiet machine", latency),
        "flops": ("FLOPs of one example", lambda _, result: mean_of(result.ok, COUNTS["FLOPs/example"].measure)),
        "size": ("parameters", lambda _, result: mean_of(result.ok, COUNTS["parameters"].measure)),
    }


def task_plots(board: Board, task: str) -> list[Plot]:
    """The plots of every section of a task, and those over its numbers of training examples."""
    of_sections = [plot for section in board.sections for plot in _section_plots(board, section, task)]
    return of_sections + [
        _size_plot(board, task, place, of_place) for place, of_place in sizes.lines(board, task).items()
    ]


def line_with_deviations(
    name: str, points: Sequence[tuple[float, Summary]], info: MetricInfo, place: int
) -> dict[str, Any]:
    """Plotly's trace of summaries over numbers: a mark for each mean, its deviation over seeds as a
    bar, and a line through them; ``place`` is that of its colour and symbol."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": html.escape(name),
        "x": [number for number, _ in points],
        "y": [info.plotted(summary.mean) for _, summary in points],
        "error_y": {"array": [_deviation(info, summary) for _, summary in points], "thickness": 1},
        "marker": {"size": 9, **series(place)},
        "line": {"color": series(place)["color"]},
    }


def floor_across(height: float) -> dict[str, Any]:
    """The parts of a layout that draw the floor over the whole width of a plot."""
    style = {"color": "var(--edge)", "width": 1, "dash": "dash"}
    name = {"text": "floor", "showarrow": False, "xanchor": "left", "yanchor": "bottom"}
    return {
        "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height, "line": style}],
        "annotations": [{"x": 0, "y": height, "xref": "paper", **name}],
    }


def _deviation(info: MetricInfo, summary: Summary) -> float:
    """The shown deviation over seeds; 0 of one seed."""
    return round(info.scale_deviation(summary.mean, summary.sd or 0.0), info.digits + 1)


def _section_plots(board: Board, section: Section, task: str) -> Iterator[Plot]:
    metric = board.main_metric(task)
    info = display_info(metric)
    results = [
        (architecture, result)
        for architecture, result in board.results(section, task)
        if result.ok and not board.is_floor(architecture)
    ]
    members = {result for _, result in ranked(board, section, task, metric)}
    title, id, group = section_title(section), f"{task}-{section.id}", board.group(section, task)
    floor = board.floor(group, metric) if group else None
    for name, (axis, cost) in costs(board).items():
        points = [
            _point(board, metric, architecture, result, value, members)
            for architecture, result in results
            if result.summary(metric) and (value := cost(architecture, result))
        ]
        if len(points) > 1:  # one says nothing of quality against cost
            scatter = _scatter(board, metric, points, axis, floor and info.plotted(floor[1]))
            yield Plot(f"{name}-{id}", f"Quality against {axis}: {title}", *scatter)
    best_first = sorted(results, key=lambda pair: _quality(metric, pair[1]), reverse=True)
    score = {"title": {"text": f"dev {html.escape(axis_title(metric))}"}}
    loss = {"title": {"text": "training loss (logarithmic)"}, "type": "log"}
    if lines := list(_curves(board, best_first, metric, info.scale)):
        yield Plot(f"dev-{id}", f"Learning curves, score on dev: {title}", lines, _curve_layout(score, len(lines)))
    if lines := list(_curves(board, best_first, "train_loss", float)):
        yield Plot(f"loss-{id}", f"Learning curves, training loss: {title}", lines, _curve_layout(loss, len(lines)))
    if seeds := _seeds(board, metric, results):
        yield Plot(f"seeds-{id}", f"All seeds of results with several: {title}", *seeds)


def _quality(metric: str, result: Result) -> float:
    """Mean test score of a result with its sign such that more is better; lowest without one."""
    summary = result.summary(metric)
    return display_info(metric).quality(summary.mean) if summary else float("-inf")


def _curve_layout(axis: dict[str, Any], lines: int) -> dict[str, Any]:
    return {
        "xaxis": {"title": {"text": "passes over the training examples"}, "rangemode": "tozero"},
        "yaxis": axis,
        "hovermode": "closest",
        "height": 420 + 8 * lines,
        "showlegend": True,
    }


def _point(
    board: Board, metric: str, architecture: str, result: Result, cost: float, members: Collection[Result]
) -> CostPoint:
    summary, entry = result.summary(metric), board.architectures.get(architecture)
    assert summary
    info = display_info(metric)
    return CostPoint(
        float(f"{cost:.4g}"),
        info.plotted(summary.mean),
        _deviation(info, summary),
        _name(board, architecture, result),
        entry.family if entry else "not registered here",
        result in members,
        summary.n,
    )


def _scatter(
    board: Board, metric: str, points: Sequence[CostPoint], axis: str, floor: float | None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Points coloured by family, with the Pareto front of those that are ranked as a line that
    names its points, and the floor as a line; the axis of costs is logarithmic."""
    unit, digits = html.escape(axis_title(metric)), display_info(metric).digits
    edge = front([point for point in points if point.ranked], lower_is_better=display_info(metric).lower_is_better)
    line = {
        "type": "scatter",
        "mode": "lines+text",
        "name": "Pareto front",
        "x": [p.cost for p in edge],
        "y": [p.score for p in edge],
        "text": [p.name for p in edge],
        "textposition": "top center",
        "cliponaxis": False,
        "line": {"color": "var(--quiet)", "dash": "dot", "width": 2},
        "hoverinfo": "skip",
    }
    data: list[dict[str, Any]] = [line] if edge else []
    for family in sorted({point.family for point in points}):
        members = sorted(point for point in points if point.family == family)
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": html.escape(family),
                "x": [p.cost for p in members],
                "y": [p.score for p in members],
                "error_y": {"type": "data", "array": [p.sd for p in members], "thickness": 1},
                "text": [f"{p.name} ({p.seeds} seed{'s' * (p.seeds > 1)})<br>{unit}" for p in members],
                "marker": {"size": 9, **marker(board, family)},
                "hovertemplate": f"%{{text}}: %{{y:.{digits}f}}<br>%{{x:,.4g}} {axis}<extra></extra>",
            }
        )
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": axis}, "type": "log"},
        "yaxis": {"title": {"text": f"test {html.escape(axis_title(metric))}"}},
        "showlegend": True,
        "hovermode": "closest",
    }
    if floor is not None:
        layout |= floor_across(floor)
    return data, layout


def front(points: Iterable[CostPoint], *, lower_is_better: bool) -> list[CostPoint]:
    """The Pareto front, cheapest first: points whose score no other reaches at that cost or a lower
    one. ``lower_is_better`` holds for scores that are error rates."""
    loss = 1 if lower_is_better else -1
    edge: list[CostPoint] = []
    for point in sorted(points, key=lambda p: (p.cost, loss * p.score, p.name)):
        if not edge or loss * point.score < loss * edge[-1].score:
            edge.append(point)
    return edge


def _curves(board: Board, results: Pairs, column: str, show: Callable[[float], float]) -> Iterator[dict[str, Any]]:
    """One line per result, the mean of a column of its seeds' curves, and for several seeds a band
    from the lowest to the highest. All but the first are hidden until a reader asks for them."""
    shown = 0
    for architecture, result in results:
        seeds = [curve for record in result.ok if (curve := _curve(record, column))]
        if not seeds:
            continue
        epochs = sorted(set.intersection(*map(set, seeds)))
        name, look = _name(board, architecture, result), colour(shown)
        values = [[show(curve[epoch]) for curve in seeds] for epoch in epochs]
        visible: bool | str = True if shown < MAX_CURVES else "legendonly"
        if len(seeds) > 1:
            yield {
                "type": "scatter",
                "mode": "lines",
                "x": [*epochs, *reversed(epochs)],
                "y": [_rounded(max(each)) for each in values] + [_rounded(min(each)) for each in reversed(values)],
                "fill": "toself",
                "line": {"width": 0, "color": look},
                "opacity": 0.25,
                "hoverinfo": "skip",
                "legendgroup": name,
                "showlegend": False,
                "visible": visible,
            }
        yield {
            "type": "scatter",
            "mode": "lines+markers",
            "name": f"{name} ({len(seeds)} seeds)" if len(seeds) > 1 else name,
            "x": epochs,
            "y": [_rounded(summarise(each).mean) for each in values],
            "marker": {"size": 5},
            "line": {"color": look, "dash": DASHES[shown // COLOURS % len(DASHES)], "width": 1.5},
            "legendgroup": name,
            "visible": visible,
            "text": name,  # not in the template, where a name could hold a %{field}
            "hovertemplate": "%{text}<br>after %{x} passes: %{y:.4g}<extra></extra>",
        }
        shown += 1


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _curve(record: Record, column: str) -> dict[float, float]:
    """Values of a column by the passes after which they were: those of whole epochs, or of parts
    where no epoch was whole. An epoch has several passes where there are few examples."""
    pairs = ((row.get("epoch"), row.get(column)) for row in record.training.get("curve", ()))
    points = {epoch: value for epoch, value in pairs if epoch is not None and value is not None}
    whole = {epoch: value for epoch, value in points.items() if epoch == int(epoch)} or points
    passes = record.training.get("passes_per_epoch", 1)
    return {passes * epoch: value for epoch, value in whole.items()}


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
            "line": {"color": colour(i), "dash": "dot" if board.is_classical(architecture) else "solid", "width": 1.5},
        }
        for i, (architecture, points) in enumerate(of_place.items())
    ]
    layout = _curve_layout({"title": {"text": html.escape(axis_title(metric))}}, len(traces))
    layout["xaxis"] = {"title": {"text": "training examples (logarithmic)"}, "type": "log"}
    return Plot(f"plot-{place.id}", f"Quality by training examples: {place.words}", traces, layout)


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
        "x": [value for _, values in rows for _, value in values],
        "y": [name for name, values in rows for _ in values],
        "text": [f"seed {seed}" for _, values in rows for seed, _ in values],
        "marker": {"size": 8, "opacity": 0.75},
        "hovertemplate": f"%{{y}}, %{{text}}: %{{x:.{display_info(metric).digits}f}}<extra></extra>",
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
    """Seeds and their test scores as they are plotted."""
    tests = [(record.seed, record.scores.get("test", {})) for record in result.ok]
    return [(seed, display_info(metric).plotted(test[metric])) for seed, test in tests if metric in test]


def _name(board: Board, architecture: str, result: Result) -> str:
    """A result's name, escaped for plotly."""
    return html.escape(board.result_name(architecture, result))

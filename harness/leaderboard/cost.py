"""One task: every result with its metrics, speed and size, and quality against training speed as a plot."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from harness.leaderboard.board import Board, Result
from harness.leaderboard.cells import best_results, digits, label, magnitude, number, our_row, score_parts, section_title, show_score
from harness.leaderboard.table import BLANK, Block, Part, Table
from harness.metrics import LOWER_IS_BETTER
from harness.records import Record
from harness.statistics import summarise


def device(record: Record) -> str:
    """Where a record was made, in words."""
    environment = record.environment
    name = str(environment.get("device") or "cpu")
    if name == "cpu":
        name = f"{environment.get('cpu') or 'CPU'}, {environment.get('threads', '?')} threads"
    return f"{record.devices} x {name}" if record.devices > 1 else name


Measure = Callable[[Record], float | None]
MEASURES: dict[str, Measure] = {
    "training examples/s": lambda r: r.speed.get("train_examples_per_second"),
    "training tokens/s": lambda r: r.speed.get("train_tokens_per_second"),
    "latency p50 ms": lambda r: r.speed.get("latency_ms_p50"),
    "latency p95 ms": lambda r: r.speed.get("latency_ms_p95"),
    "peak RSS MiB": lambda r: r.memory.get("peak_rss_mib"),
    "peak GPU MiB": lambda r: r.memory.get("peak_gpu_mib"),
    "training s": lambda r: r.seconds.get("train"),
}
COUNTS: dict[str, tuple[Measure, Callable[[float], str]]] = {
    "parameters": (lambda r: r.parameters.get("total"), lambda value: f"{value:,.0f}"),
    "FLOPs/example": (lambda r: r.flops_per_example, magnitude),
}


def by_device(result: Result) -> dict[str, list[Record]]:
    """Records that ended ok by the machine they ran on: speed is never averaged over two kinds of machine."""
    found: dict[str, list[Record]] = {}
    for record in result.ok:
        found.setdefault(device(record), []).append(record)
    return dict(sorted(found.items()))


def mean_of(records: Iterable[Record], measure: Measure) -> float | None:
    """Mean of a measurement over the records that have it."""
    values = [value for record in records if (value := measure(record)) is not None]
    return summarise(values).mean if values else None


def task_table(board: Board, task: str) -> Table:
    """Every result on one task with all its metrics, its speed and its size, best first within each section."""
    main = board.main_metric(task)
    seen = {metric for record in board.records if record.task == task for metric in record.scores.get("test", {})}
    declared = board.tasks[task].metrics if task in board.tasks else ()
    others = [m for m in declared if m in seen and m != main] + sorted(seen - set(declared) - {main})
    blocks = []
    for section, results in board.sections.items():
        mine = [(a, result) for (a, other), found in results.items() if other == task for result in found]
        if not mine:
            continue
        best = {m: best_results([result for _, result in mine], m) for m in (main, *others)}
        rows = []
        for i in sorted(range(len(mine)), key=lambda i: _quality(board, main, *mine[i])):
            architecture, result = mine[i]
            scores = [score_parts(board, result, main, i in best[main])]
            for metric in others:
                summary = result.summary(metric)
                scores.append([Part(show_score(metric, summary), "best" if i in best[metric] else "")] if summary else BLANK)
            rows.append(our_row(board, architecture, [[Part(section[1])], *scores, *_costs(result)]))
        blocks.append(Block(section_title(section), rows))
    columns = ["Architecture", "protocol", *map(label, (main, *others)), "seeds ok", "training examples", *MEASURES, *COUNTS, "device"]
    title = f"{board.task_name(task)}: quality and cost"
    return Table(f"results-{task}", title, columns, blocks, text_columns=(1, len(columns) - 1))


def _quality(board: Board, metric: str, architecture: str, result: Result) -> tuple[Any, ...]:
    """Sorting key: best mean first, then what has no score, then what was skipped."""
    summary = result.summary(metric)
    mean = round(summary.mean, digits(metric)) if summary else 0.0
    skipped = all(record.status == "skipped" for record in result.records)
    return skipped, summary is None, mean if metric in LOWER_IS_BETTER else -mean, board.order(architecture), result.settings


def _costs(result: Result) -> list[list[Part]]:
    machines = by_device(result)
    if not machines:
        return [BLANK] * (len(MEASURES) + len(COUNTS) + 3)
    cells = [[Part(", ".join(str(record.seed) for record in result.ok))], [Part(f"{result.trained_on:,}")] if result.trained_on else BLANK]
    for name, measure in MEASURES.items():
        shaky = (
            ("the spread of this measurement is too wide to quote its median alone",) if name.startswith(("training e", "latency")) else ()
        )
        lines = []
        for records in machines.values():
            value = mean_of(records, measure)
            notes = shaky if value is not None and any(record.speed.get("unstable") for record in records) else ()
            lines.append(Part(number(value) + (" unstable" if notes else ""), "", notes) if value is not None else BLANK[0])
        cells.append(lines)
    for measure, show in COUNTS.values():
        value = mean_of(result.ok, measure)
        cells.append([Part(show(value))] if value is not None else BLANK)
    return [*cells, [Part(name) for name in machines]]


class Plot(NamedTuple):
    """A plot as a piece of HTML."""

    title: str
    html: str


def task_plots(board: Board, task: str) -> list[Plot]:
    """Quality against training speed, one plot per section, one colour per machine."""
    import plotly.graph_objects as go

    metric = board.main_metric(task)
    speed = MEASURES["training examples/s"]
    plots: list[Plot] = []
    for section, results in board.sections.items():
        points: dict[str, list[tuple[float, float, float, str]]] = {}
        for (architecture, other), found in results.items():
            for result in found if other == task else ():
                summary = result.summary(metric)
                for machine, records in by_device(result).items() if summary else ():
                    rate = mean_of(records, speed)
                    if rate:
                        text = html.escape(board.name(architecture) + (f" ({result.settings})" if result.settings else ""))
                        points.setdefault(machine, []).append((rate, summary.mean, summary.sd or 0.0, text))
        if not points:
            continue
        scale = 1 if metric == "perplexity" else 100
        figure = go.Figure(
            [
                go.Scatter(
                    x=[p[0] for p in rows],
                    y=[scale * p[1] for p in rows],
                    error_y={"type": "data", "array": [scale * p[2] for p in rows], "thickness": 1},
                    text=[p[3] for p in rows],
                    name=html.escape(machine),
                    mode="markers+text",
                    textposition="top center",
                    cliponaxis=False,
                    hovertemplate="%{text}<br>%{y:.1f} at %{x:,.0f} examples/s<extra></extra>",
                )
                for machine, rows in sorted(points.items())
            ]
        )
        axis = {"gridcolor": "rgba(128,128,128,.3)", "zeroline": False}
        figure.update_layout(
            template="none",
            height=420,
            margin={"l": 60, "r": 20, "t": 20, "b": 50},
            font={"color": "#808890"},
            paper_bgcolor="rgba(0,0,0,0)",
            plot_bgcolor="rgba(0,0,0,0)",
            showlegend=True,
            modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#808890"},
            legend={"orientation": "h", "y": 1.1},
            xaxis={**axis, "type": "log", "title": "training examples/s"},
            yaxis={**axis, "title": html.escape(label(metric)) + ("" if metric == "perplexity" else " %")},
        )
        text = figure.to_html(
            full_html=False,
            include_plotlyjs=False if plots else "directory",
            div_id=f"plot-{len(plots)}",
            config={"responsive": True, "displaylogo": False},
        )
        plots.append(Plot(f"Quality against training speed: {section_title(section)}", text))
    return plots

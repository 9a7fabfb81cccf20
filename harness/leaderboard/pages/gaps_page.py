"""The page on the distances between our results and those that others report."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from harness.leaderboard.board import Board, task_file
from harness.leaderboard.pages.families import series
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.tables.gaps import LEGEND, TITLE, Gap, gap_tables, name
from harness.leaderboard.tables.table import Table, markdown
from harness.metrics import display_info

TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def gaps_page(board: Board, found: Sequence[Gap], missing: int) -> Page:
    """A picture of all gaps, and a table of each task; ``missing`` pairs have values of others
    alone."""
    tables = gap_tables(board, found)
    plot = gap_plot(board, found)
    parts = {
        "lead": [LEGEND, *_counts(found, missing)],
        "tables": [(table, task_file(task) if task in board.recorded_tasks else "") for task, table in tables.items()],
        "plots": [plot] if plot else [],
    }
    return Page("gaps.html", TITLE, "gaps.html", parts)


def gaps_document(board: Board, found: Sequence[Gap]) -> str:
    """The same tables as Markdown, which is committed as ``results/gaps.md``: without the number of
    missing pairs, which would be another with each new architecture."""
    made = "Made by `python leaderboard.py` from gaps.csv, the survey's values and the records."
    tables: list[Table] = list(gap_tables(board, found).values())
    return markdown(TITLE, [made, LEGEND, *_counts(found, missing=0)], tables)


def _counts(found: Sequence[Gap], missing: int) -> list[str]:
    sentences = [] if found else ["No score of ours has one of others beside it yet."]
    if missing:
        sentences.append(
            f"{missing} more pairs of an architecture and a task have values of others, and no score of ours on the"
            " official test yet."
        )
    return sentences


def gap_plot(board: Board, found: Sequence[Gap]) -> Plot | None:
    """Ours minus theirs (the first value of a gap that is no likely misprint) against the share of
    the training data, a colour for each task; None without a gap whose share is known.

    Differences of error rates are turned round, so that up is better in all tasks.
    """
    points: dict[str, list[tuple[float, float, str]]] = {}
    for gap in found:
        theirs = next((each for each in gap.theirs if not each.misprint), None)
        share = gap.share(board)
        if theirs and share:
            difference = display_info(gap.metric).quality(theirs.difference(gap.shown))
            lines = f"{board.task_name(gap.task)}: {name(board, gap)}", f"theirs {theirs.text}, {theirs.source}"
            text = "<br>".join(map(html.escape, lines))
            points.setdefault(gap.task, []).append((float(f"{100 * share:.4g}"), difference, text))
    if not points:
        return None
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": html.escape(board.task_name(task)),
            "x": [share for share, _, _ in of_task],
            "y": [difference for _, difference, _ in of_task],
            "text": [text for _, _, text in of_task],
            "marker": {"size": 9} | series(i),
            "cliponaxis": False,
            "hovertemplate": "%{text}<br>%{y:+.1f} points with %{x:.3g} % of the data<extra></extra>",
        }
        for i, (task, of_task) in enumerate(points.items())
    ]
    lowest = min(share for of_task in points.values() for share, _, _ in of_task)
    layout = {
        "xaxis": {
            "title": {"text": "share of the training examples (%)"},
            "type": "log",
            "tickvals": TICKS,
            "range": [round(math.log10(lowest) - 0.1, 3), 2.05],  # the right end is all data, as theirs have
        },
        "yaxis": {
            "title": {"text": "ours minus theirs (points; up is better)"},
            "zerolinecolor": "var(--ink)",
            "rangemode": "tozero",
        },
        "hovermode": "closest",
        "showlegend": True,
    }
    return Plot("plot-gaps", "Ours minus theirs against the share of the data, likely misprints left out", data, layout)

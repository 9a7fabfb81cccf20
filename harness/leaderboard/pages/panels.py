"""Pages of panels: tables, each with the plot of the same scores over a number."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.tables.formatting import axis_title
from harness.leaderboard.tables.table import Table


class Panel(NamedTuple):
    """A table and the plot that shows it."""

    table: Table
    plot: Plot


def panels_page(file: str, title: str, lead: Sequence[str], panels: Iterable[Panel]) -> list[Page]:
    """The page of some panels: all tables, then all plots. None where there is no panel."""
    found = list(panels)
    if not found:
        return []
    tables, plots = [panel.table for panel in found], [panel.plot for panel in found]
    return [Page(file, title, "content.html", {"lead": lead, "tables": tables, "plots": plots})]


def over_logarithm(number: str, metric: str) -> dict[str, Any]:
    """Plotly's layout of scores over a number, whose axis is logarithmic."""
    return {
        "xaxis": {"title": {"text": number}, "type": "log"},
        "yaxis": {"title": {"text": html.escape(axis_title(metric))}},
        "hovermode": "closest",
        "showlegend": True,
        "height": 450,
    }

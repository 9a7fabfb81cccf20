"""What a page of the leaderboard consists of, apart from how it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plot:
    """An interactive plot as plotly's own JSON (``data`` and ``layout``), drawn in the reader's
    browser.

    Plotly reads markup in texts: escape every text that comes from a record, a plugin or a task.
    """

    id: str
    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """One HTML file: a template of this folder with its ``parts``; ``beside`` holds further files
    (name to text) that it loads."""

    file: str
    title: str
    template: str
    parts: dict[str, Any]
    beside: dict[str, str] = field(default_factory=dict)

"""Content of a page, independent of how it is written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

FOLDER = Path(__file__).resolve().parents[1]
"""Folder of the templates, and of the files beside the pages (``static``)."""


def templates() -> jinja2.Environment:
    """The templates of pages; a name that they lack is an error. Their filter ``prose`` is
    :func:`prose`."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = prose
    return environment


def prose(text: str) -> Markup:
    """A text as HTML, escaped; what stands between backquotes, one or two, is code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(``?)([^`]+)\1", r"<code>\2</code>", str(escape(text))))


@dataclass(frozen=True)
class Plot:
    """An interactive plot as plotly's own JSON (``data`` and ``layout``), drawn by the browser.

    Plotly reads markup in texts: escape every text that comes from a record, a plugin or a task.
    """

    id: str
    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """One HTML file: a template with its ``parts``, and further files that it loads (``beside``,
    text by name)."""

    file: str
    title: str
    template: str
    parts: dict[str, Any]
    beside: dict[str, str] = field(default_factory=dict)

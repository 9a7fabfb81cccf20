"""Tables independent of their output format: HTML (``table.html``), Markdown or LaTeX."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Part(NamedTuple):
    """One line of a table cell.

    ``style`` is a CSS class, ``notes`` become numbered notes below the table, ``link`` is a file of
    the same folder. ``order`` is the sorting key of the cell in a sortable table; that of the first
    line counts.
    """

    text: str
    style: str = ""
    notes: tuple[str, ...] = ()
    title: str = ""
    link: str = ""
    order: float | None = None


BLANK = [Part("–", "quiet")]


@dataclass(frozen=True)
class TableRow:
    """One method: its name and a list of lines for every further column.

    ``id`` is an HTML id that links lead to. A search finds the row by its ``words`` too, such as a
    paper. ``compare`` is what the page that compares calls it, where it can be compared.
    """

    name: str
    cells: list[list[Part]]
    classical: bool = False
    title: str = ""
    link: str = ""
    id: str = ""
    words: str = ""
    compare: str = ""


@dataclass(frozen=True)
class Block:
    """Rows that can be compared with each other."""

    title: str
    rows: list[TableRow]


@dataclass(frozen=True)
class Table:
    """A table of blocks.

    ``text_columns`` are the columns (0 is the row's name) of words rather than numbers. A
    ``sortable`` table has a single block without a title, because sorting mixes rows; its
    ``filters`` are the columns with a select box, ``lower`` those that the first click sorts with
    the smallest number first, ``more`` those that a reader must ask for. ``comparable`` are the
    section and the task, as the page that compares names them, of rows that can be ticked. ``over``
    are headings above the columns from 1 on, each with the number of columns that it spans.
    """

    id: str
    title: str
    columns: list[str]
    blocks: list[Block]
    lead: list[str] = field(default_factory=list)
    text_columns: tuple[int, ...] = ()
    sortable: bool = False
    filters: tuple[int, ...] = ()
    lower: tuple[int, ...] = ()
    more: tuple[int, ...] = ()
    comparable: tuple[str, str] | None = None
    over: tuple[tuple[str, int], ...] = ()

    @property
    def full_columns(self) -> list[str]:
        """The columns, each with the heading above it."""
        above = [text for text, count in self.over for _ in range(count)]
        names = [f"{text}: {name}" for text, name in zip(above, self.columns[1:], strict=False)]
        return [self.columns[0], *names, *self.columns[1 + len(names) :]]

    @property
    def first_of_heading(self) -> set[int]:
        """The columns that are the first below a heading."""
        return {1 + sum(count for _, count in self.over[:i]) for i in range(len(self.over))}

    @functools.cached_property
    def notes(self) -> dict[str, int]:
        """The distinct notes with their numbers, from 1 in the order of first mention."""
        texts: dict[str, None] = {}
        for row in (row for block in self.blocks for row in block.rows):
            texts |= dict.fromkeys(note for cell in row.cells for part in cell for note in part.notes)
        return {note: i for i, note in enumerate(texts, 1)}


def markdown(title: str, legend: Iterable[str], tables: Iterable[Table]) -> str:
    """Tables as a Markdown document with numbered notes below each."""
    lines = [f"# {_plain(title)}", "", *(f"{_plain(text)}\n" for text in legend)]
    for table in tables:
        lines += [f"## {_plain(table.title)}", "", *(f"{_plain(text)}\n" for text in table.lead)]
        lines += [
            _line(map(_plain, table.full_columns)),
            _line(["---" if i == 0 or i in table.text_columns else "---:" for i in range(len(table.columns))]),
        ]
        for block in table.blocks:
            if block.title:
                lines.append(_line([f"**{_plain(block.title)}**", *[""] * (len(table.columns) - 1)]))
            for row in block.rows:
                name = f"*{_plain(row.name)}*" if row.classical else _plain(row.name)
                lines.append(
                    _line(
                        [
                            name,
                            *("<br>".join(_part(table, p) for p in cell) for cell in row.cells),
                        ]
                    )
                )
        lines += ["", *(f"{i}. {_plain(note)}" for note, i in table.notes.items()), ""]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _part(table: Table, part: Part) -> str:
    text = f"**{_plain(part.text)}**" if part.style == "best" else _plain(part.text)
    return text + _marks(table, part.notes)


def _marks(table: Table, notes: Sequence[str]) -> str:
    return f"<sup>{','.join(str(table.notes[note]) for note in notes)}</sup>" if notes else ""


def _plain(text: str) -> str:
    """Text on one line, with all Markdown and HTML markup escaped but code between backquotes."""
    pieces = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(piece.replace("|", r"\|") if i % 2 else _escaped(piece) for i, piece in enumerate(pieces))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", html.escape(text, quote=False))

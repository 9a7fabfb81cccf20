"""The list of all architectures, recorded here or not."""

from __future__ import annotations

from harness.leaderboard.board import Board
from harness.leaderboard.pages.page import Page
from harness.leaderboard.tables.formatting import our_row, text_cell
from harness.leaderboard.tables.table import BLANK, Block, Part, Table


def index_page(board: Board) -> Page:
    """One table with a row for each architecture; a name leads to its page where it has records."""
    rows = []
    for architecture in board.known_architectures:
        if board.is_floor(architecture):
            continue
        entry = board.architectures.get(architecture)
        year, tasks = entry.year if entry else 0, _scored(board, architecture)
        cells = [
            [Part(architecture)],
            text_cell(entry and entry.family),
            text_cell(entry and entry.kind),
            text_cell(entry and entry.paper),
            [Part(str(year), order=year)] if year else BLANK,
            [Part(str(tasks), order=tasks)],
        ]
        rows.append(our_row(board, architecture, cells))
    lead = [
        "Names lead to a page with scores, deviations from the paper, errors, and the commands that repeat each row."
    ]
    table = Table(
        "architectures",
        "All architectures",
        ["Architecture", "id", "family", "kind", "paper", "year", "tasks with a score"],
        [Block("", rows)],
        lead,
        text_columns=(1, 2, 3, 4),
        sortable=True,
        filters=(2, 3),
    )
    return Page("architectures.html", "Architectures", "content.html", {"tables": [table]})


def _scored(board: Board, architecture: str) -> int:
    """Number of the tasks on which a cell of an architecture ended well."""
    return len({record.task for record in board.by_architecture.get(architecture, ()) if record.status == "ok"})

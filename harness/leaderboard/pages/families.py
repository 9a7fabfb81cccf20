"""One colour and one symbol for each family, the same on every page, and those of other series."""

from __future__ import annotations

from harness.leaderboard.board import Board

COLOURS = 8
"""Colours of the style sheet; series beyond that take the next symbol."""
SYMBOLS = ("circle", "square", "diamond", "cross")


def marker(board: Board, family: str) -> dict[str, str]:
    """Plotly's colour and symbol of a family's points; grey circles for an unknown one."""
    if family not in board.families:
        return {"color": "var(--quiet)", "symbol": "circle"}
    return series(board.families.index(family))


def series(place: int) -> dict[str, str]:
    """Plotly's colour and symbol of the points of a series, by its place in a list."""
    return {"color": colour(place), "symbol": SYMBOLS[place // COLOURS % len(SYMBOLS)]}


def colour(place: int) -> str:
    """Colour of the style sheet for a place in a list; after the last the first again."""
    return f"var(--series-{place % COLOURS + 1})"

"""Facts of the source texts about every system they name, registered here or not."""

from __future__ import annotations

import csv
from dataclasses import dataclass

from harness.leaderboard.board import Board
from harness.leaderboard.published import source_file


@dataclass(frozen=True)
class CatalogueEntry:
    """One line of ``catalogue.csv``; ``year`` is None if missing."""

    name: str
    year: int | None
    paper: str
    family: str
    mechanism: str


def read_catalogue(board: Board) -> dict[str, CatalogueEntry]:
    """The catalogue by id, from the results folder or else from this package."""
    with source_file(board.store.folder, "catalogue.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: _entry(row) for row in csv.DictReader(file) if row.get("id")}


def _entry(row: dict[str, str | None]) -> CatalogueEntry:
    year = row.get("year") or ""
    texts = [row.get(column) or "" for column in ("name", "paper", "family", "defining_mechanism")]
    return CatalogueEntry(texts[0], int(year) if year.isdecimal() else None, *texts[1:])

"""What the source texts say of every system they name, whether it is built here or not."""

from __future__ import annotations

import csv
from dataclasses import dataclass

from harness.leaderboard.board import ROOT, Board


@dataclass(frozen=True)
class Described:
    """One line of ``results/catalogue.csv``; ``year`` is None where the line has no number
    there."""

    name: str
    year: int | None
    paper: str
    family: str
    mechanism: str


def read_catalogue(board: Board) -> dict[str, Described]:
    """The catalogue by id, from the results folder or else from this repository; empty where
    neither has one."""
    folders = (board.store.folder, ROOT / "results")
    path = next((folder / "catalogue.csv" for folder in folders if (folder / "catalogue.csv").is_file()), None)
    if path is None:
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["id"]: _described(row) for row in csv.DictReader(file) if row.get("id")}


def _described(row: dict[str, str | None]) -> Described:
    year = row.get("year") or ""
    texts = [row.get(column) or "" for column in ("name", "paper", "family", "defining_mechanism")]
    return Described(texts[0], int(year) if year.isdecimal() else None, *texts[1:])

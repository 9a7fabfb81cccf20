"""Evidence, from the files at hand, that an architecture is what its name says."""

from __future__ import annotations

import csv
import functools
import tomllib

from harness.leaderboard.board import Board
from harness.leaderboard.unregistered import is_installed
from harness.registry.sorts import ROOT

WORDS = {
    "learns": "At its default size it learns its small generated task",
    "chance": "At its default size it did not learn its small generated task",
    "skipped": "Whether it learns at its default size could not be tried",
}
"""Meaning of the words of ``default_size.csv``."""


def verified(board: Board, architecture: str) -> list[str]:
    """Sentences, one for each sort of evidence; empty for what is not installed here."""
    entry = board.architectures.get(architecture)
    if entry is None or not is_installed(entry) or board.is_floor(architecture):
        return []
    tested = _tested(entry.file.stem) if entry.shipped else []
    return [*tested, *_default_size(board, architecture), *_recorded(board, architecture)]


def _tested(module: str) -> list[str]:
    """The test of its mechanism, where the repository is at hand."""
    test = ROOT / "tests" / "architectures" / f"test_{module}.py"
    breaks = ROOT / "tests" / "breaks" / f"{module}.toml"
    if not test.is_file():
        return []
    found = f"Its mechanism has a test: {test.relative_to(ROOT).as_posix()}"
    if breaks.is_file():
        listed = tomllib.loads(breaks.read_text(encoding="utf-8")).values()  # a table each
        number = sum(isinstance(each, dict) for each in listed)
        errors = "error is" if number == 1 else "errors are"
        found += f"; {number} deliberate {errors} listed that it must catch (`make breaks`)"
    return [f"{found}."]


def _default_size(board: Board, architecture: str) -> list[str]:
    """A sentence for each small task on which it was tried."""
    sentences = []
    for row in _default_sizes(board).get(architecture, ()):
        told = WORDS.get(row["word"], f"At its default size: {row['word']}")
        scores = f", {row['metric']} {row['test']}, floor {row['floor']}" if row["test"] else ""
        sentences.append(f"{told} ({board.task_name(row['task'])}{scores}).")
    return sentences or ["Whether it learns at its default size was not tried yet (`archbench check --default-size`)."]


@functools.cache
def _default_sizes(board: Board) -> dict[str, list[dict[str, str]]]:
    """Rows of ``default_size.csv`` by architecture."""
    rows: dict[str, list[dict[str, str]]] = {}
    file = board.store.folder / "default_size.csv"
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                rows.setdefault(row["architecture"], []).append(row)
    return rows


def _recorded(board: Board, architecture: str) -> list[str]:
    """Its own recipe, seeds and machines, as far as records tell."""
    ok = [record for record in board.by_architecture.get(architecture, ()) if record.status == "ok"]
    paper = {record.task for record in ok if record.protocol == "paper"}
    processors = {str(record.environment.get("cpu") or record.environment.get("device") or "?") for record in ok}
    recipe = f"run on {', '.join(map(board.task_name, sorted(paper)))}" if paper else "never run to its end"
    return [
        f"The recipe of its paper (protocol paper): {recipe}.",
        f"Cells that ended well: {len(ok)}, on {len(processors)} kind{'s' * (len(processors) != 1)} of processor.",
    ]

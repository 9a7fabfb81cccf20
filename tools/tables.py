"""Tables that tools write into ``results/`` and go on with: lines of texts by column."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.files import taking_the_place_of

Line = dict[str, str]


def read(table: Path) -> list[Line]:
    """The lines of a table; none where there is no table."""
    if not table.is_file():
        return []
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_lines(lines: Iterable[Line], columns: Sequence[str], table: Path) -> None:
    """Write a table, whole or not at all."""
    with taking_the_place_of(table) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)

"""The table of all architectures at default size: who is asked again, and what is an error."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness import registry
from tools import check_all


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Asked architectures with their minutes; ``dan`` learns in fifteen, ``han`` never, ``cnn`` at
    once."""
    asked: list[tuple[str, float]] = []

    def row_of(id: str, minutes: float) -> dict[str, str]:
        asked.append((id, minutes))
        learns = id == "cnn" or (id == "dan" and minutes == 15)
        return dict.fromkeys(check_all.COLUMNS, "") | {
            "architecture": id, "minutes": f"{minutes:g}", "word": "learns" if learns else "chance"
        }  # fmt: skip

    monkeypatch.setattr(check_all, "checked", lambda ids, minutes, jobs: [row_of(id, minutes) for id in ids])
    return asked


def rows(table: Path) -> dict[str, str]:
    with table.open(newline="") as file:
        return {row["architecture"]: f"{row['word']} {row['minutes']}" for row in csv.DictReader(file)}


def test_who_stands_at_chance_gets_more_time_once(told, tmp_path):
    table = tmp_path / "table.csv"
    assert check_all.main(["cnn", "dan", "han", "--table", str(table)]) == 0
    assert told == [("han", 2), ("cnn", 2), ("dan", 2), ("han", 15), ("dan", 15)]
    assert rows(table) == {"cnn": "learns 2", "dan": "learns 15", "han": "chance 15"}


def test_a_further_call_goes_on_where_one_stopped(told, tmp_path):
    table = tmp_path / "table.csv"
    check_all.main(["cnn", "--table", str(table)])
    check_all.main(["cnn", "dan", "--table", str(table)])
    assert told == [("cnn", 2), ("dan", 2), ("dan", 15)]
    check_all.main(["cnn", "--table", str(table), "--anew"])
    assert told[3:] == [("cnn", 2)]


def test_too_many_at_chance_are_an_error(told, tmp_path):
    ids = list(registry.entries("architectures"))
    many = [id for id in ids if id not in ("cnn", "dan")][: check_all.MOST_AT_CHANCE + 1]
    assert check_all.main([*many[:-1], "--table", str(tmp_path / "few.csv")]) == 0
    assert check_all.main([*many, "--table", str(tmp_path / "many.csv")]) == 1

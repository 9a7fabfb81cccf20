"""Values of the source texts: they come with the package, wherever it is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import harness
from harness.leaderboard.board import read
from harness.leaderboard.catalogue import read_catalogue

PACKAGE = Path(harness.__file__).parent
PROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())


def test_a_new_results_folder_has_published_values_beside_its_own(tmp_path, monkeypatch):
    """An installed wheel knew none: they lay in the checkout's results folder."""
    monkeypatch.chdir(tmp_path)
    board = read(tmp_path)
    assert len(board.published) == 192 and any(value.notes for value in board.published)
    assert len(read_catalogue(board.store.folder)) > 200
    assert not [notice for notice in board.notices if "published" in notice]


def test_files_beside_the_records_take_the_place_of_the_package_s(tmp_path):
    header = "survey_table,architecture,method_as_printed,dataset,metric,value,kind"
    (tmp_path / "published.csv").write_text(f"{header}\n1,dan,Deep Averaging,sst2,accuracy,12.5,neural\n")
    (tmp_path / "published_notes.csv").write_text(
        "survey_table,architecture,dataset,metric,note,counterpart,misprint\n"
    )
    assert [value.printed for value in read(tmp_path).published] == ["12.5"]


def test_every_file_that_pages_are_made_of_is_packed():
    """One of another kind would be missing from the wheel alone, where no test of a checkout
    looks."""
    packed = set(PROJECT["tool"]["setuptools"]["package-data"]["*"]) | {"*.py", "*.pyc"}
    files = [path for path in (PACKAGE / "leaderboard").rglob("*") if path.is_file()]
    assert {f"*{path.suffix}" for path in files} <= packed
    assert "*.csv" in packed

"""Faults done for real, on grids of real cells: ``make test-faults``. The plain suite leaves this
folder out, since it takes minutes.

What was injected and what was lost is counted, and written as a table to the file that
``ARCHBENCH_RELIABILITY`` names.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.grids import CELLS, GRID, Row, document, finish, results_of

_rows: list[Row] = []


@pytest.fixture(scope="session")
def table() -> list[Row]:
    """Rows in which tests enter what they did; written at the end of the session."""
    return _rows


@pytest.hookimpl(trylast=True)  # after the counts of tests/fuzz, which the document shows too
def pytest_sessionfinish() -> None:
    path = os.environ.get("ARCHBENCH_RELIABILITY")
    if path and _rows:
        Path(path).write_text(document(_rows), encoding="utf-8")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """The grid's results when nothing happens to it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    code, told = finish(folder, *GRID)
    assert code == 0, told
    found = results_of(folder)
    assert len(found) == CELLS and all(status == "ok" for status, *_ in found.values())
    return found


@pytest.fixture
def completed(undisturbed: dict, table: list[Row]) -> Callable[..., None]:
    """Runs the same command again until all is done, compares with the undisturbed run bit by bit,
    and enters the row."""

    def complete(folder: Path, kind: str, injected: int, *arguments: str) -> None:
        for _ in range(3):
            code, told = finish(folder, *GRID, *arguments)
            if code == 0:
                break
        assert code == 0, told
        found = results_of(folder)
        table.append(
            Row(
                kind,
                injected,
                CELLS,
                lost=len(undisturbed.keys() - found.keys()),
                doubled=len(found.keys() - undisturbed.keys()),
            )
        )
        assert found == undisturbed

    return complete


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with hardly any room."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting a tmpfs needs to be root, with the right to mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)

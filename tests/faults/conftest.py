"""Faults done for real, on grids of real cells: ``make test-faults``. The plain suite leaves this folder out, since it takes minutes.

What was injected and what was lost is counted, and written as a table to the file that ``ARCHBENCH_RELIABILITY`` names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from harness.records import Record, Store

ROOT = Path(__file__).resolve().parents[2]
GRID = (
    *("run", "-a", "avg_vectors,naive_bayes,dan,birnn", "-t", "sst2", "--seeds", "0,1,2", "--protocol", "equal"),
    *("--max-train", "300", "--max-epochs", "3", "--workers", "2", "--mlflow", "none", "-o", "birnn.hidden=32"),
)
CELLS = 12


@dataclass
class Row:
    """One line of the table: faults of a kind, and what they cost."""

    kind: str
    injected: int
    cells: int
    lost: int = 0
    doubled: int = 0
    damaged: int = 0


@pytest.fixture(scope="session")
def table() -> Iterator[list[Row]]:
    """Where tests enter what they did; written at the end of the session."""
    rows: list[Row] = []
    yield rows
    if path := os.environ.get("ARCHBENCH_RELIABILITY"):
        Path(path).write_text(document(rows), encoding="utf-8")


def document(rows: list[Row]) -> str:
    """The Markdown text of ``results/reliability.md``."""
    lines = ["# Reliability", "", "Made by `make test-faults`: every fault was done for real to grids of real cells (tests/faults/)."]
    lines += ["After each, the same command was run again until all cells had ended.", ""]
    lines += ["| fault | injected | cells | lost | doubled | damaged files |", "|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        lines.append(f"| {row.kind} | {row.injected} | {row.cells} | {row.lost} | {row.doubled} | {row.damaged} |")
    fuzz = os.environ.get("ARCHBENCH_FUZZ_REPORT")
    if fuzz and Path(fuzz).is_file():
        lines += ["", "Bad inputs (tests/fuzz/): refused with an error that names the file, or read; anything else is uncaught.", ""]
        lines += ["| parser | tried | refused | uncaught |", "|---|---:|---:|---:|"]
        for parser, counts in sorted(json.loads(Path(fuzz).read_text()).items()):
            lines.append(f"| {parser} | {counts['tried']:,} | {counts['refused']:,} | {counts['uncaught']} |")
    return "\n".join(lines) + "\n"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from harness.cli import main; main()", *arguments]


def start(results: Path, *arguments: str, **options) -> subprocess.Popen[str]:
    """Start `archbench` on a results folder."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | options.pop("env", {})
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command(*arguments, "--results", str(results)), env=environment, **pipes | options)


def finish(results: Path, *arguments: str, **options) -> tuple[int, str]:
    """Run `archbench` to its end; exit code and what it printed."""
    process = start(results, *arguments, **options)
    told, _ = process.communicate(timeout=600)
    return process.returncode, told


def cells_of(run: subprocess.Popen) -> list[psutil.Process]:
    """The processes in which a run's cells are at this moment: each leads a session of its own."""
    found = []
    for process in psutil.Process(run.pid).children(recursive=True):
        try:
            if os.getsid(process.pid) == process.pid:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def results_of(folder: Path) -> dict[tuple[str, int], tuple[str, dict, str]]:
    """Status, test scores and digest of the predictions of every record, by architecture and seed; nothing damaged is passed over."""
    store = Store(folder)
    records: list[Record] = list(store.all())
    assert not store.damaged
    assert not [path for path in (folder / "records").rglob(".*.tmp")], "a half-written file"
    found = {(r.architecture, r.seed): (r.status, r.scores.get("test", {}), (r.predictions or {}).get("sha256", "")) for r in records}
    assert len(found) == len(records), "a cell has two records"
    return found


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
    """Runs the same command again until all is done, compares with the undisturbed run bit by bit, and enters the row."""

    def complete(folder: Path, kind: str, injected: int, *arguments: str) -> None:
        for _ in range(3):
            code, told = finish(folder, *GRID, *arguments)
            if code == 0:
                break
        assert code == 0, told
        found = results_of(folder)
        table.append(
            Row(kind, injected, CELLS, lost=len(undisturbed.keys() - found.keys()), doubled=len(found.keys() - undisturbed.keys()))
        )
        assert found == undisturbed

    return complete

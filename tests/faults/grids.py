"""A grid of real cells, started as a user starts it, and what is left of it afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.records import Record, Store

ROOT = Path(__file__).resolve().parents[2]
GRID = (
    *("run", "-a", "avg_vectors,naive_bayes,mean_last,birnn", "-t", "sst2", "--seeds", "0,1,2", "--protocol", "equal"),
    *("--plugin", str(ROOT / "tests" / "support" / "inheriting.py")),
    *("--max-train", "300", "--max-epochs", "3", "--workers", "2", "--mlflow", "none", "-o", "birnn.hidden=32"),
)
CELLS = 18
"""Three seeds of each; ``mean_last`` starts from ``mean_after``, and that from ``mean_words``."""


@dataclass
class Row:
    """One line of the table: faults of a kind, and what they cost."""

    kind: str
    injected: int
    cells: int
    lost: int = 0
    doubled: int = 0


def document(rows: list[Row]) -> str:
    """The Markdown text of ``results/reliability.md``."""
    lines = [
        "# Reliability",
        "",
        "Made by `make test-faults`: every fault was done for real to grids of real cells (tests/faults/).",
    ]
    lines += ["After each, the same command was run again until all cells had ended.", ""]
    lines += ["| fault | injected | cells | lost | doubled |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        lines.append(f"| {row.kind} | {row.injected} | {row.cells} | {row.lost} | {row.doubled} |")
    fuzz = os.environ.get("ARCHBENCH_FUZZ_REPORT")
    if fuzz and Path(fuzz).is_file():
        lines += [
            "",
            "Damaged inputs (tests/fuzz/): accepted, with a second reading that equals the first; or refused with an"
            " error that names the file. Anything else is uncaught.",
            "",
        ]
        columns = ("tried", "accepted", "refused", "uncaught")
        lines += [f"| parser | {' | '.join(columns)} |", "|---|---:|---:|---:|---:|"]
        found = json.loads(Path(fuzz).read_text())
        whole = {name: sum(counts[name] for counts in found.values()) for name in columns}
        for parser, counts in [*sorted(found.items()), ("all", whole)]:
            lines.append(f"| {parser} | " + " | ".join(f"{counts[name]:,}" for name in columns) + " |")
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


def resize(disk: Path, options: str) -> None:
    """Mount a file system of its own again, with other options."""
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)


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


def ray_workers_of(run: subprocess.Popen) -> list[psutil.Process]:
    """The Ray workers that have a cell at this moment: Ray writes the name of their task, "birnn on
    sst2, seed 0", into their titles."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        title = " ".join(process.info["cmdline"] or [])
        if title.startswith("ray::") and " on sst2" in title:
            found.append(process)
    return found


def results_of(folder: Path) -> dict[tuple[str, int], tuple[str, dict, str]]:
    """Status, test scores and digest of the predictions of every record, by architecture and seed;
    nothing damaged is passed over."""
    store = Store(folder)
    records: list[Record] = list(store.all())
    assert not store.damaged
    assert not list((folder / "records").rglob(".*.tmp")), "a half-written file"
    found = {
        (r.architecture, r.seed): (r.status, r.scores.get("test", {}), (r.predictions or {}).get("sha256", ""))
        for r in records
    }
    assert len(found) == len(records), "a cell has two records"
    return found

"""What every architecture costs on this machine, measured alone: ``python tests/bench/models.py results/speed.json``.

Each trains for some steps at its paper's sizes on the mini tier of its home task (protocol smoke: the scores mean nothing and are not
kept). Texts of the mini tier are short; within one task the figures compare. Takes about a quarter of an hour on a quiet machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import grid, registry
from harness.records import Record, Store, environment

HOMES = ("sst2", "wikiqa", "conll2003_ner", "fsdd", "squad1", "babi")
"""The first of these that an architecture fits is where it is measured."""


def home(architecture: registry.Entry) -> str | None:
    """The task that an architecture is measured on; None where it fits none."""
    for task in HOMES:
        if grid.fits(architecture, registry.entry("tasks", task), grid.hyperparameters(architecture)) is None:
            return task
    return None


def run(results: Path) -> None:
    """One grid for each task, one cell at a time."""
    chosen: dict[str, list[str]] = {}
    for architecture in registry.entries("architectures").values():
        chosen.setdefault(home(architecture) or "", []).append(architecture.id)
    for task in HOMES:
        command = [sys.executable, "-c", "from harness.cli import main; main()", "run", "-a", ",".join(chosen[task]), "-t", task]
        options = ["--tier", "mini", "--protocol", "smoke", "--max-train", "640", "--speed-alone", "--threads", "1", "--timeout", "150"]
        subprocess.run([*command, *options, "--mlflow", "none", "--results", str(results)], check=False)


def row(record: Record) -> dict[str, float | str | None]:
    """What the report shows of a record; an architecture that did not end well keeps its status."""
    speed, memory, parameters = record.speed or {}, record.memory or {}, record.parameters or {}
    return {
        "architecture": record.architecture,
        "task": record.task,
        "status": record.status,
        "examples_per_second": speed.get("train_examples_per_second"),
        "unstable": speed.get("unstable"),
        "latency_ms": speed.get("latency_ms_p50"),
        "inference_per_second": speed.get("inference_examples_per_second"),
        "memory_mib": memory.get("peak_rss_mib"),
        "parameters": parameters.get("total"),
        "flops": record.flops_per_example,
    }


def main(file: Path) -> None:
    """Measure, and put the rows into the file beside what ``make bench`` kept there."""
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))
        rows = [row(record) for record in Store(Path(folder)).all()]
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    rows.sort(key=lambda found: (HOMES.index(found["task"]), found["architecture"]))
    kept |= {"environment": environment(), "models": rows}
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

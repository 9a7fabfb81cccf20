"""The whole of `python leaderboard.py` on 10,000 records: all registered architectures, ten tasks,
eleven seeds; wants to stay below 5 s.

The records have no predictions: what intervals and tests cost grows with the test sets (about 4 s
for 20 architectures on 10,000 examples).
"""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import registry
from harness.leaderboard.published import SOURCES
from harness.records import Store
from harness.running.usage import resident_mib
from tests.support.made_records import record
from tools.speed.goals import Row

ROOT = Path(__file__).resolve().parents[2]
RECORDS, TASKS, SEEDS = 10_000, 10, 11


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for name in ("published.csv", "published_notes.csv", "catalogue.csv"):
        shutil.copy(SOURCES / name, folder)
    store, generator = Store(folder), random.Random(0)
    tasks = list(registry.entries("tasks").values())[:TASKS]
    grid = itertools.product(registry.entries("architectures"), tasks, range(SEEDS))
    for architecture, task, seed in itertools.islice(grid, RECORDS):
        curve = [{"epoch": e, "train_loss": 1 / e, task.main_metric: 0.5 + e / 30, "seconds": 2.0} for e in range(1, 9)]
        made = record(
            architecture,
            task.id,
            dict.fromkeys(task.metrics, generator.random()),
            seed=seed,
            speed={
                "train_examples_per_second": 50 * generator.random() + 1,
                "latency_ms_p50": 1.0,
                "latency_ms_p95": 2.0,
            },
            memory={"peak_rss_mib": 500.0},
            parameters={"total": generator.randrange(10**6), "embedding": 1000},
            seconds={"train": 60.0, "dev": 1.0, "other": 2.0, "total": 63.0},
            training={"best_epoch": 5, "epochs": 8, "curve": curve},
        )
        path = store.path(made)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made.to_json(), encoding="utf-8")
    return folder


def test_ten_thousand_records(benchmark, enter, results: Path, tmp_path: Path):
    command = [sys.executable, str(ROOT / "leaderboard.py"), "--results", str(results), "--out", str(tmp_path)]
    peaks: list[float] = []

    def build() -> None:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT) as process:
            while process.poll() is None:
                peaks.append(resident_mib(process.pid))
                time.sleep(0.05)
        assert process.returncode == 0

    benchmark.pedantic(build, rounds=3, warmup_rounds=1)
    began = time.perf_counter()
    read = sum(1 for _ in Store(results).all())
    why = f"reading and checking {read:,} records takes {time.perf_counter() - began:.1f} s in one process"
    enter(Row("leaderboard of 10,000 records", "", "<=", 5.0, benchmark.stats.stats.median, "s", why))
    enter(Row("leaderboard of 10,000 records, memory of all its processes", "", "<=", 500.0, max(peaks), "MiB"))

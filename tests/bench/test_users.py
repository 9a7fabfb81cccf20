"""The times that a user waits for: keeping a model and asking it, a table of results, and a first
look at data of their own."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from harness import registry
from harness.records import Store
from harness.running import worker
from harness.running.grid import plan
from harness.running.worker import run_cell
from harness.running.worker_settings import Settings
from tools.speed.goals import Row
from tools.speed.many import cells_of, make

WORDS = np.array(["a", "the", "film", "plot", "was", "not", "very", "good", "bad", "dull", "warm", "funny", "end"])


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def command(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "harness.cli", *arguments], check=True, text=True, **options)


def reviews(file: Path, rows: int) -> Path:
    """A CSV file of texts of twenty words, whose label hangs on three of them."""
    generator = np.random.default_rng(0)
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(("review", "stars"))
        for _ in range(rows // 1000):
            texts = WORDS[generator.integers(len(WORDS), size=(1000, 20))]
            good = np.isin(texts, ("good", "warm", "funny")).sum(1) >= np.isin(texts, ("bad", "dull", "not")).sum(1)
            writer.writerows(zip(map(" ".join, texts), np.where(good, "5", "1"), strict=True))
    return file


def test_keeping_and_asking_a_bilstm(corpora: Path, tmp_path: Path, benchmark, enter, monkeypatch) -> None:
    (planned,) = plan(
        [registry.entry("architectures", "bilstm")],
        [registry.entry("tasks", "sst2")],
        tier="local",
        protocol="equal",
        seeds=[0],
        budget="small",
    )
    spent: list[float] = []
    keep = worker.keep
    monkeypatch.setattr(worker, "keep", lambda *given: spent.append(seconds(lambda: keep(*given))))
    settings = Settings(tmp_path, corpora, (), 1, None, None, tmp_path / "work", keep=True)
    record = run_cell(planned.cell, settings)
    assert record.status == "ok", record.error
    Store(tmp_path).write(record)
    share = 100 * spent[0] / (record.seconds["total"] - spent[0])
    enter(Row("keeping a bilstm of budget small", "its cell without", "<=", 5, share, "%"))
    program = (
        "import sys, time, torch; began = time.perf_counter(); import archbench;"
        f" model = archbench.load({str(tmp_path / 'models' / record.key)!r});"
        " answers = model.predict(['a warm and funny film that is not too long'] * 1000);"
        " assert len(answers) == 1000; print(time.perf_counter() - began)"
    )
    taken: list[float] = []
    benchmark.pedantic(
        lambda: taken.append(float(subprocess.check_output([sys.executable, "-W", "ignore", "-c", program]))), rounds=5
    )
    enter(Row("loading it and asking 1,000 texts", "torch imported", "<=", 2, float(np.median(taken)), "s"))


def test_a_table_of_ten_thousand_records(tmp_path: Path, benchmark, enter) -> None:
    make(tmp_path, islice(cells_of(range(40)), 10_000))
    program = (
        "import time, archbench; began = time.perf_counter();"
        f" table = archbench.results({str(tmp_path)!r}); assert table['key'].nunique() == 10_000;"
        " print(time.perf_counter() - began)"
    )
    taken: list[float] = []
    benchmark.pedantic(
        lambda: taken.append(float(subprocess.check_output([sys.executable, "-W", "ignore", "-c", program]))), rounds=3
    )
    enter(Row("results() of 10,000 records", "", "<=", 3, float(np.median(taken)), "s"))


def test_a_million_rows_are_described_within_a_minute(tmp_path: Path, benchmark, enter) -> None:
    file = reviews(tmp_path / "million.csv", 1_000_000)
    taken: list[float] = []
    benchmark.pedantic(
        lambda: taken.append(seconds(lambda: command("new-task", file.name, cwd=tmp_path, capture_output=True))),
        rounds=1,
    )
    enter(Row("new-task on a million rows", "", "<=", 60, taken[0], "s"))


@pytest.mark.parametrize("rows", [2_000, 1_000_000])
def test_a_trial_has_a_first_table_within_a_minute(tmp_path: Path, benchmark, enter, rows: int) -> None:
    reviews(tmp_path / "reviews.csv", rows)
    trial = [sys.executable, "-u", "-m", "harness.cli", "try", "reviews.csv", "--minutes", "3"]
    first: list[float] = []

    def run() -> None:
        began = time.perf_counter()
        with subprocess.Popen(
            trial, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            for line in process.stdout:
                if "accuracy" in line.lower():
                    first.append(time.perf_counter() - began)
                    break
            process.terminate()

    benchmark.pedantic(run, rounds=1)
    enter(Row(f"first table of a trial on {rows:,} rows", "", "<=", 60, first[0], "s"))

"""fastText by a step for each text beside the authors' program: words a second in training and
accuracy; and the memory of a cell of the network.

``FASTTEXT`` names the program (built by ``g++ -O3 -march=native -pthread src/*.cc`` from their
release); else it is looked for on PATH. Both read the same words in lower case, for the same number
of passes, on two threads.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from architectures.feedforward.fasttext_sgd import FastTextBySteps
from harness import registry
from harness.records import Store
from harness.task import Row as Example
from harness.task import Split
from tools.speed.cells import RUN
from tools.speed.goals import Row


@pytest.fixture(scope="module")
def program() -> str:
    found = shutil.which(os.environ.get("FASTTEXT", "fasttext"))
    if found is None:
        pytest.skip("no fastText program: set FASTTEXT or put it on PATH")
    return found


@pytest.fixture(scope="module")
def rows(corpora: Path) -> dict[Split, list[Example]]:
    """Training and test texts of ag_news."""
    entry = registry.entry("tasks", "ag_news")
    task = registry.load(entry)(entry)
    splits: tuple[Split, ...] = ("train", "test")
    return {split: task.load(split, "local", corpora).to_list() for split in splits}


def write(rows: list[Example], system: FastTextBySteps, path: Path) -> int:
    """Texts as the program reads them; returns their number of words, ends of text included."""
    words = [system.view.read(row["text"]) for row in rows]
    lines = (f"__label__{row['label']} {' '.join(text[:-1])}\n" for row, text in zip(rows, words, strict=True))
    path.write_text("".join(lines), encoding="utf-8")
    return sum(map(len, words))


def test_training(
    benchmark, enter, monkeypatch, program: str, rows: dict[Split, list[Example]], tmp_path: Path
) -> None:
    """Words of all passes by the seconds of the passes, without the reading of texts, which the
    program counts separately but for the division of its lines."""
    seconds: list[float] = []
    theirs: list[float] = []
    whole: list[float] = []
    learn = FastTextBySteps._learn

    def timed(*given) -> None:
        began = time.perf_counter()
        learn(*given)
        seconds.append(time.perf_counter() - began)

    FastTextBySteps().prepare()
    monkeypatch.setattr(FastTextBySteps, "_learn", timed)
    system = FastTextBySteps(threads=2)
    words = system.epochs * write(rows["train"], system, tmp_path / "train")
    write(rows["test"], system, tmp_path / "test")
    same = {"dim": system.hidden, "wordNgrams": system.view.ngrams, "bucket": system.view.buckets}
    options = same | {"minCount": system.view.min_count, "epoch": system.epochs, "lr": system.rate, "thread": 2}
    command = [program, "supervised", "-input", tmp_path / "train", "-output", tmp_path / "model"]
    command += [part for name, value in options.items() for part in (f"-{name}", str(value))]

    def setup() -> None:
        began = time.perf_counter()
        told = subprocess.run(command, capture_output=True, check=True)
        whole.append(time.perf_counter() - began)
        theirs.append(2 * float(re.findall(rb"words/sec/thread:\s*(\d+)", told.stdout + told.stderr)[-1]))

    benchmark.pedantic(lambda: system.fit(rows["train"], []), setup=setup, rounds=3)
    ours = words / statistics.median(seconds)
    what = "fasttext_sgd on ag_news: training words/s, pairs of words numbered before"
    enter(Row(what, "the authors' program, 2 threads, numbers them anew", ">=", 1, ours / statistics.median(theirs)))
    ratio = statistics.median(whole) / benchmark.stats.stats.median
    what, why = "fasttext_sgd on ag_news: from texts to a model", "Python parts the words, once for all passes"
    enter(Row(what, "the authors' program, to a file", ">=", 1, ratio, why=why))

    told = subprocess.run(
        [program, "test", tmp_path / "model.bin", tmp_path / "test"], capture_output=True, check=True, text=True
    ).stdout
    reached = float(re.search(r"P@1\s+([\d.]+)", told)[1])
    answers = system.predict([{"text": row["text"]} for row in rows["test"]])
    accuracy = np.mean([answer == row["label"] for answer, row in zip(answers, rows["test"], strict=True)])
    enter(
        Row(
            f"fasttext_sgd on ag_news: accuracy (ours {100 * accuracy:.1f})",
            "the authors' program",
            "<=",
            0.3,
            100 * (reached - accuracy),
            "points below",
        )
    )


def test_memory_of_a_cell(benchmark, enter, corpora: Path, tmp_path: Path) -> None:
    """Peak of the cell's process, as its record has it: one pass with Adam, whose moments make two
    further tables."""
    command = [*RUN, "-a", "fasttext", "-t", "ag_news", "--tier", "local", "--protocol", "equal"]
    command += ["--data-dir", str(corpora), "--results", str(tmp_path), "--max-epochs", "1", "--mlflow", "none"]
    benchmark.pedantic(lambda: subprocess.run(command, check=True, capture_output=True), rounds=1)
    [record] = Store(tmp_path).all()
    assert record.status == "ok"
    trained = f"{record.counts['train']:,} texts"
    enter(
        Row(
            f"peak memory of a fasttext cell on ag_news ({trained})",
            "the machine",
            "<=",
            1536,
            record.memory["peak_rss_mib"],
            "MiB",
        )
    )

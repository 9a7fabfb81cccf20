"""fastText beside the authors' program: words a second in training, accuracy, and the memory of a
cell.

``FASTTEXT`` names the program (built by ``g++ -O3 -march=native -pthread src/*.cc`` from their
release); else it is looked for on PATH. Both read the same words in lower case, for the same number
of passes. The program steps after each text; our steps are of ``BATCH`` texts at as many times its
rate, as each has a cost that no text adds to. It takes two threads; torch is given one, because in
steps this small a second one only waits, and takes from the first where the machine has other work.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
from pathlib import Path

import pytest
import torch

from harness import registry
from harness.metrics import score
from harness.records import Store
from harness.running import grid
from harness.running.assembly import Assembly
from harness.training.fit import FitModule, fit
from harness.training.model import predict
from tools.speed.cells import RUN
from tools.speed.cells import assembly as assembled
from tools.speed.goals import Row

EPOCHS, RATE, BATCH = 5, 0.25, 128


@pytest.fixture(scope="module")
def program() -> str:
    found = shutil.which(os.environ.get("FASTTEXT", "fasttext"))
    if found is None:
        pytest.skip("no fastText program: set FASTTEXT or put it on PATH")
    return found


@pytest.fixture(scope="module")
def assembly(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """fastText on ag_news by the paper's recipe but for the batch."""
    changed = {"batch_size": BATCH, "learning_rates": [RATE * BATCH], "epochs": EPOCHS, "patience": EPOCHS}
    return assembled("fasttext", "ag_news", corpora, tmp_path_factory.mktemp("work"), "paper", **changed)


def write(assembly: Assembly, split: str, path: Path) -> int:
    """A split as the program reads it; returns its number of words, ends of text included."""
    rows = assembly.corpus.train.rows if split == "train" else assembly.corpus.test().rows
    words = [assembly.corpus.view.read(text) for text in rows["text"]]
    lines = (f"__label__{label} {' '.join(text[:-1])}\n" for label, text in zip(rows["label"], words, strict=True))
    path.write_text("".join(lines), encoding="utf-8")
    return sum(map(len, words))


def test_training(benchmark, enter, program: str, assembly: Assembly, tmp_path: Path) -> None:
    """Words of all passes by the seconds that training took, without reading the data, dev
    evaluation and saving."""
    words = EPOCHS * write(assembly, "train", tmp_path / "train")
    write(assembly, "test", tmp_path / "test")
    view, encoder = assembly.corpus.view, grid.hyperparameters(registry.entry("architectures", "fasttext"))
    same = {"dim": encoder["hidden"], "wordNgrams": view.ngrams, "bucket": view.buckets, "minCount": view.min_count}
    options = same | {"epoch": EPOCHS, "lr": RATE, "thread": 2}
    command = [program, "supervised", "-input", tmp_path / "train", "-output", tmp_path / "model"]
    theirs: list[float] = []
    ours: list[float] = []
    fits: list[FitModule] = []
    torch.set_num_threads(1)

    def setup() -> tuple[tuple, dict]:
        told = subprocess.run(
            [*command, *(part for name, value in options.items() for part in (f"-{name}", str(value)))],
            capture_output=True,
            check=True,
        )
        theirs.append(2 * float(re.findall(rb"words/sec/thread:\s*(\d+)", told.stdout + told.stderr)[-1]))
        fits.append(assembly.training_of(assembly.model(0), RATE * BATCH))
        return (fits[-1], tmp_path / f"fit{len(fits)}", 1, "auto", "32", EPOCHS), {}

    def timed(*arguments) -> None:
        fit(*arguments)
        ours.append(words / fits[-1].seconds["train"])

    benchmark.pedantic(timed, setup=setup, rounds=3)
    ratio = statistics.median(ours) / statistics.median(theirs)
    why = (
        f"{statistics.median(ours):,.0f} words/s beside {statistics.median(theirs):,.0f}: it writes its table text by"
        " text on two threads that do not wait for each other; torch first sums a batch's gradients by row"
    )
    enter(Row("fasttext on ag_news: training words/s", "the authors' program, 2 threads", ">=", 0.5, ratio, why=why))

    told = subprocess.run(
        [program, "test", tmp_path / "model.bin", tmp_path / "test"], capture_output=True, check=True, text=True
    )
    reached = float(re.search(r"P@1\s+([\d.]+)", told.stdout)[1])
    test = assembly.corpus.test()
    accuracy = score(["accuracy"], predict(fits[-1].model, test, BATCH), test.rows)["accuracy"]
    enter(
        Row(
            f"fasttext on ag_news: accuracy (ours {100 * accuracy:.1f})",
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

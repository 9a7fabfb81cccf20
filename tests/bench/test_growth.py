"""How costs grow with the data: 1, 2, 4 and 8 times as many rows of AG News, read by the mean of
word vectors.

A straight line is laid through the four times (a fixed part is allowed) and the largest distance
from it is entered. Times are those of the processor, on one thread; the sizes are measured in turn
and the fastest of each counts: what else the machine does only ever adds. Python's collector is off
meanwhile: one of its rare looks at everything, 0.2 s with this corpus in memory, would fall on one
of the sizes.
"""

from __future__ import annotations

import gc
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from harness.metrics import score
from harness.running.assembly import Assembly
from harness.running.usage import peak_mib
from harness.training.fit import fit
from harness.training.model import predict
from harness.views.words import Words
from tools.speed.cells import RUN
from tools.speed.cells import assembly as assembled
from tools.speed.goals import Row

SIZES = np.array([7000, 14000, 28000, 56000])
ROUNDS = 7


@pytest.fixture(scope="module")
def assembly(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    torch.set_num_threads(1)
    changed = {"learning_rates": [0.002], "batch_size": 64, "vector_dims": 50}
    return assembled("avg_vectors", "ag_news", corpora, tmp_path_factory.mktemp("work"), rows=int(SIZES[-1]), **changed)


def off_the_line(sizes: np.ndarray, costs: np.ndarray) -> float:
    """Largest distance of a cost from the straight line of least relative squares, as a share of
    the line."""
    slope, fixed = np.polyfit(sizes, costs, 1, w=1 / costs)
    return float(np.abs(costs / (slope * sizes + fixed) - 1).max())


def test_a_square_is_off_the_line_and_a_fixed_part_is_not() -> None:
    assert off_the_line(SIZES, 3.0 + 2.0 * SIZES) < 1e-9
    assert off_the_line(SIZES, 1.0 * SIZES**2) > 0.3


@pytest.fixture
def grows(benchmark, enter) -> Callable[[str, Callable[[int], float]], None]:
    """Measure a cost (seconds) at every size and enter how far from linear it grows."""

    def measure(what: str, cost: Callable[[int], float]) -> None:
        cost(int(SIZES[0]))
        rounds: list[list[float]] = []
        benchmark.pedantic(lambda: rounds.append([cost(int(size)) for size in SIZES]), rounds=ROUNDS)
        fastest = np.min(rounds, axis=0)
        steps = " ".join(f"{size}:{seconds:.3f}s" for size, seconds in zip(SIZES, fastest, strict=True))
        enter(
            Row(
                f"growth of {what}, off the line",
                "1, 2, 4, 8 x data",
                "<=",
                10,
                100 * off_the_line(SIZES, fastest),
                "%",
                why=steps,
            )
        )

    return measure


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def test_encoding(grows, assembly: Assembly) -> None:
    texts, view = list(assembly.corpus.train.rows["text"]), Words()

    def encode(size: int) -> float:
        view.fit(texts[:size])
        return seconds(lambda: view.encode(texts[:size]))

    grows("encoding", encode)


def test_a_training_epoch(grows, assembly: Assembly, tmp_path: Path) -> None:
    """Dev evaluation and checkpoint are the same for every size: the fixed part."""

    def train(size: int) -> float:
        training = assembly.training_of(assembly.model(0), 0.002)
        training.splits["labelled"] = assembly.corpus.train.some(size, seed=0)
        return seconds(lambda: fit(training, tmp_path / str(time.monotonic_ns()), 1, "auto", "32", 1))

    grows("a training epoch", train)


def test_scoring(grows, assembly: Assembly) -> None:
    model = assembly.model(0)

    def scoring(size: int) -> float:
        split = assembly.corpus.train.some(size, seed=0)
        return seconds(lambda: score(["accuracy", "macro_f1"], predict(model, split, 64), split.rows))

    grows("prediction and scoring", scoring)


def test_memory_of_the_parent(benchmark, enter, corpora: Path, tmp_path: Path) -> None:
    """`archbench run` itself holds no data: its cells do."""

    def peak(size: int) -> float:
        """MiB that the process of the command needed at most."""
        command = [*RUN, "-a", "avg_vectors", "-t", "ag_news", "--tier", "local", "--mlflow", "none"]
        command += ["--data-dir", str(corpora), "--results", str(tmp_path / str(size)), "--max-train", str(size)]
        most = 0.0
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None:  # not by wait4, which counts the cells as well
                most = max(most, peak_mib(process.pid) or 0.0)
                time.sleep(0.05)
        assert process.returncode == 0
        return most

    small = peak(int(SIZES[0]))
    large: list[float] = []
    benchmark.pedantic(lambda: large.append(peak(int(SIZES[-1]))), rounds=1)
    told = f"{small:.0f} and {large[0]:.0f} MiB"
    enter(
        Row(
            "peak memory of the process of archbench run",
            "an eighth of the data",
            "<=",
            1.1,
            large[0] / small,
            why=told,
        )
    )

"""What a cell costs besides its training, and what a grid of small cells costs: whole ``archbench
run`` commands, MLflow included."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.records import Record, Store
from tools.speed.cells import RUN
from tools.speed.goals import Row

CELLS = "avg_vectors,dan,kim_cnn_rand,lstm,bilstm"


def grid(results: Path, architectures: str, seeds: int, workers: int) -> tuple[float, list[Record]]:
    """Seconds that a grid of smoke cells on mini sst2 takes, and its records."""
    cells = ["-a", architectures, "-t", "sst2", "--seeds", ",".join(map(str, range(seeds)))]
    settings = ["--protocol", "smoke", "--workers", str(workers), "--threads", "1"]
    began = time.perf_counter()
    subprocess.run([*RUN, *cells, *settings, "--results", str(results)], check=True, capture_output=True)
    seconds = time.perf_counter() - began
    records = list(Store(results).all())
    assert [record.status for record in records] == ["ok"] * (len(architectures.split(",")) * seeds)
    return seconds, records


def trained(records: list[Record]) -> float:
    return sum(record.seconds["train"] for record in records)


def test_fixed_cost_of_a_cell(benchmark, enter, tmp_path: Path) -> None:
    """Of ten cells more in one run, so that the run's own start (imports, the fork server, MLflow's
    tables) is left out."""
    short, few = grid(tmp_path / "few", "dan", 2, workers=1)
    told: list[tuple[float, list[Record]]] = []
    benchmark.pedantic(lambda: told.append(grid(tmp_path / "many", "dan", 12, workers=1)), rounds=1)
    [(long, many)] = told
    cost = (long - short - (trained(many) - trained(few))) / (len(many) - len(few))
    inside = sum(record.seconds["total"] - record.seconds["train"] for record in many) / len(many)
    why = f"{inside:.2f} s of it inside the cell: data, model, dev and test, latency and FLOPs"
    enter(Row("fixed cost of a cell: all but its training", "", "<=", 1.0, cost, "s", why))


def test_a_hundred_small_cells(benchmark, enter, tmp_path: Path) -> None:
    told: list[tuple[float, list[Record]]] = []
    benchmark.pedantic(lambda: told.append(grid(tmp_path, CELLS, 20, workers=2)), rounds=1)
    [(seconds, records)] = told
    ideal = trained(records) / 2
    busy = sum(record.seconds["total"] for record in records) / 2
    why = (
        f"smoke cells train for {2 * ideal / len(records):.2f} s each; of all that cells do, {seconds / busy:.2f}x / 2"
        " workers"
    )
    enter(
        Row("100 smoke cells on 2 workers", "half the sum of their training times", "<=", 1.3, seconds / ideal, why=why)
    )


@pytest.mark.parametrize("arguments", [("--help",), ("list", "architectures")], ids=" ".join)
def test_start(benchmark, enter, arguments: tuple[str, ...]) -> None:
    """The console script beside an empty program, in turn."""
    program = str(Path(sys.executable).parent / "archbench")
    empty: list[float] = []

    def setup() -> None:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        empty.append(time.perf_counter() - began)

    benchmark.pedantic(
        lambda: subprocess.run([program, *arguments], check=True, capture_output=True),
        setup=setup,
        rounds=9,
        warmup_rounds=1,
    )
    more = benchmark.stats.stats.median - sorted(empty)[len(empty) // 2]
    parse = "import time; from harness import registry; began = time.perf_counter(); registry.entries('architectures')"
    told = subprocess.run(
        [sys.executable, "-c", f"{parse}; print(time.perf_counter() - began)"], check=True, capture_output=True
    )
    why = (
        f"reading what the files of the architectures declare takes {float(told.stdout):.2f} s, most of the rest are"
        " imports"
    )
    enter(Row(f"archbench {' '.join(arguments)}", "python -c pass", "<=", 0.3, more, "s more", why))

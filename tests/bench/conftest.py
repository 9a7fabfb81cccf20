"""Benchmarks side by side: ours and a peer in turn, so that what else the machine does meets both
alike.

``make bench`` prints the table of targets at the end; ``ARCHBENCH_SPEED`` names the JSON file from
which ``tools/speed/report.py`` makes ``results/speed.md``.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tools.speed.goals import HEADINGS, Row, here, keep, kept, lines

ROWS: list[Row] = []
SCALING: list[dict[str, Any]] = []


@pytest.fixture(scope="session")
def corpora_if_any(request: pytest.FixtureRequest) -> Path | None:
    """Folder of the real corpora; None where there is none, for benchmarks that mini corpora can
    carry."""
    try:
        return request.getfixturevalue("corpora")
    except pytest.skip.Exception:
        return None


@pytest.fixture
def enter() -> Callable[[Row], None]:
    """Enter a row into the table of targets."""
    return ROWS.append


@pytest.fixture
def scaling() -> list[dict[str, Any]]:
    """Points of the curves of cost against length."""
    return SCALING


@pytest.fixture
def beside(benchmark, enter) -> Callable[..., float]:
    """Time ``ours`` by pytest-benchmark, with a round of ``theirs`` before each of its rounds;
    enter and return theirs / ours (medians).

    Both are called without arguments, or with what ``prepare`` returns (it is called before each of
    them and not timed).
    """

    def compare(
        what: str,
        against: str,
        target: float,
        ours: Callable[..., Any],
        theirs: Callable[..., Any],
        *,
        rounds: int = 7,
        prepare: Callable[[], tuple] = tuple,
        why: str = "",
    ) -> float:
        times: list[float] = []

        def setup() -> tuple[tuple, dict[str, Any]]:
            given = prepare()
            began = time.perf_counter()
            theirs(*given)
            times.append(time.perf_counter() - began)
            return prepare(), {}

        benchmark.pedantic(ours, setup=setup, rounds=rounds, warmup_rounds=1)
        mine, other = benchmark.stats.stats.median, statistics.median(times[1:])
        benchmark.extra_info |= {"beside": against, "ratio": other / mine}
        told = f"{mine:.3g} s beside {other:.3g} s; {why}".rstrip("; ")
        enter(Row(what, against, ">=", target, other / mine, why=told))
        return other / mine

    return compare


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table, and the file it is kept in."""
    if ROWS:
        table = [HEADINGS, *lines(ROWS)]
        widths = [max(len(row[i]) for row in table) for i in range(len(HEADINGS) - 1)]
        terminalreporter.section("targets")
        for row in table:
            terminalreporter.line(
                "  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=False)] + [row[-1]])
            )
    if (name := os.environ.get("ARCHBENCH_SPEED")) and (ROWS or SCALING):
        enter_all(Path(name))


def enter_all(file: Path) -> None:
    """Put this run's figures into the file, where those that it did not measure stay."""
    before = kept(file)
    targets = {row["what"]: row for row in [*before.get("targets", []), *here(map(asdict, ROWS))]}
    scaling = {(point["layer"], point["length"]): point for point in [*before.get("scaling", []), *here(SCALING)]}
    keep(file, targets=list(targets.values()), scaling=list(scaling.values()))

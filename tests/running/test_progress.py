"""What a run tells while it goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.records import Store
from harness.running.estimate import Estimate
from harness.running.pending import Pending, Planned
from harness.running.progress import Display, duration, last_epoch, show, summarise
from tests.support.made_records import record


def display(cells, *earlier, workers: int = 1) -> Display:
    return Display(cells, workers, Estimate(earlier), lambda cell: None, Console(file=io.StringIO()))


def test_the_time_left_is_told_by_earlier_records():
    cells = [record("a", seed=1).cell, record("b", seed=1).cell]
    shown = display(cells, record("a", seconds={"total": 100.0}), record("b", seconds={"total": 500.0}), workers=2)
    assert shown.time_left() == "about 5 min 00 s left"
    shown.start(cells[1])
    shown.end(record("b", seed=1, score=0.5))
    assert shown.time_left() == "about 0 min 50 s left", "the short one is left, not half of the mean"


def test_without_records_the_time_left_is_unknown_until_a_cell_has_ended():
    cells = [record("a", seed=seed).cell for seed in range(3)]
    shown = display(cells)
    assert shown.time_left() == "time left unknown"
    shown.start(cells[0])
    shown.since[cells[0].key] -= 60.0
    shown.end(record("a", score=0.5))
    assert shown.time_left() == "about 2 min 00 s left"


def test_the_newest_epoch_of_a_log_is_found_behind_anything_else(tmp_path):
    log = tmp_path / "log"
    assert last_epoch(log) == ""
    log.write_text("x" * 100_000 + "\nepoch 1: train loss 0.7\nepoch 2: train loss 0.5, 812 examples/s\na warning\n")
    assert last_epoch(log) == "epoch 2: train loss 0.5, 812 examples/s"


def test_a_dry_run_says_what_would_run_why_not_and_how_long(capsys):
    pending = Pending([record("a", seed=1).cell], [Planned(record("b").cell, "it does not fit")], [record("c")], [], [])
    show(pending, Estimate([record("a", seconds={"total": 90.0})]), 1)
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("run   a on sst2, seed 1") and told[0].endswith("about 1 min 30 s")
    assert told[1:] == [
        "skip  b on sst2, seed 0: it does not fit",
        "1 to run, 1 to skip, 1 finished",
        "time with 1 at a time: about 1 min 30 s",
    ]
    show(pending, Estimate([]), 1)
    assert "unknown (no earlier records)" in capsys.readouterr().out


def test_the_end_of_a_run_tells_pairs_that_never_fit_from_cells_that_could_not_run(tmp_path, capsys):
    """What more memory or a mended parent would run was counted as what no machine can."""
    unfit = [Planned(record("a", seed=seed).cell, "reads no audio", unfit=True) for seed in range(2)]
    others = [Planned(record("b", seed=seed).cell, "its fit needs about 9 GiB") for seed in range(3)]
    summarise(Pending([], [*unfit, *others], [], [], []), [], Store(tmp_path))
    told = capsys.readouterr().out.splitlines()
    assert "2 skipped because they do not fit (each record holds the reason)" in told
    assert "3 skipped: its fit needs about 9 GiB" in told


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0 min 00 s"), (61, "1 min 01 s"), (3720, "1 h 02 min")])
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words

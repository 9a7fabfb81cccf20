"""Cells of the benchmarks, which no stage of the check runs: an edit of the harness would break
them unseen."""

from __future__ import annotations

from pathlib import Path

from tools.speed.cells import assembly


def test_a_cell_is_ready_to_train_with_the_settings_that_were_changed(tmp_path: Path) -> None:
    one = assembly("dan", "sst2", None, tmp_path, rows=10, batch_size=4, learning_rates=[0.001], min_steps=0)
    training = one.training_of(one.model(0), 0.001)
    assert (training.settings.batch_size, training.settings.lr_schedule) == (4, "linear")
    assert len(training.splits["labelled"].rows) == 10

"""The learning rate of a cell: pilots try several, and tell when the time will not do."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness import registry
from harness.metrics import info
from harness.running import learning_rates
from harness.running.assembly import Assembly
from harness.running.worker import run_cell
from harness.training.fit_module import FitModule
from tests.support.planned_cells import planned_cell


def test_pilots_are_compared_on_a_fixed_random_choice_of_dev(make_settings, monkeypatch):
    """On the first rows of a file that is sorted by class, a constant answer is right."""
    task = registry.load(registry.entry("tasks", "sst2"))
    load = task.load

    def by_class(self: Any, split: str, *rest: Any) -> Any:
        rows = load(self, split, *rest)
        return rows.select(np.argsort(rows["label"], kind="stable"))

    monkeypatch.setattr(task, "load", by_class)
    monkeypatch.setattr("harness.running.assembly.PILOT_DEV", 20)
    seen: list[list[str]] = []

    def pilot(training: Any, *_: Any, pilot: bool) -> None:
        seen.append(list(training.dev_split.rows["id"]))
        labels.update(training.dev_split.rows["label"])
        training.selection, training.curve = 0.0, [{"accuracy": 0.0, "dev_loss": 1.0}]

    labels: set[str] = set()
    monkeypatch.setattr(learning_rates, "fit", pilot)
    cells = [
        planned_cell(name, "sst2", f"{name}.training.learning_rates=[0.1, 0.01]") for name in ("dan", "avg_vectors")
    ]
    for cell in (*cells, dataclasses.replace(cells[0], seed=1)):
        assembly = Assembly(cell, make_settings())
        learning_rates.try_rates(assembly, make_settings(), Path())
    assert len(seen) == 6 and all(ids == seen[0] for ids in seen) and len(seen[0]) == 20
    assert len(labels) == 2
    assert len(assembly.corpus.dev) > 20, "the choice left rows out"


@pytest.mark.parametrize(
    ("metric", "floor", "scores", "losses", "best"),
    [
        ("accuracy", 0.25, (0.24, 0.25, 0.25), (3.0, 1.0, 2.0), 0.02),  # at the floor
        ("accuracy", 0.25, (0.28, 0.25, 0.25), (3.0, 1.0, 2.0), 0.02),  # an accident of few steps and rows
        ("accuracy", 0.25, (0.28, 0.25, 0.31), (3.0, 1.0, 2.0), 0.03),
        ("wer", 1.0, (0.97, 0.99, 1.0), (3.0, 1.0, 2.0), 0.02),
        ("wer", 1.0, (0.9, 0.99, 1.0), (3.0, 1.0, 2.0), 0.01),
        ("nats_per_token", 6.0, (5.9, 5.8, 6.0), (3.0, 2.0, 1.0), 0.03),
        ("nats_per_token", 6.0, (5.9, 5.6, 6.0), (3.0, 2.0, 1.0), 0.02),
    ],
)
def test_scores_choose_a_rate_where_one_is_clearly_above_the_floor_else_losses_do(metric, floor, scores, losses, best):
    """An architecture would train for hours at the rate that a constant answer picked."""
    sign = -1 if info(metric).lower_is_better else 1
    tried = {
        lr: learning_rates.Pilot(sign * score, score, loss)
        for lr, score, loss in zip((0.01, 0.02, 0.03), scores, losses, strict=True)
    }
    entry = SimpleNamespace(main_metric=metric)
    assembly: Any = SimpleNamespace(pilot_floor=floor, task=SimpleNamespace(entry=entry))
    assert learning_rates.best_rate(tried | {0.04: None}, assembly) == best
    assert learning_rates.best_rate(dict.fromkeys((0.04, 0.05)), assembly) == 0.04


@pytest.mark.parametrize("kind", ["timeout", "cpu_limit"])
@pytest.mark.parametrize(("limit", "status"), [(0.3, "timeout"), (60.0, "ok")])
def test_a_pilot_tells_that_the_time_will_not_do(make_settings, monkeypatch, limit, status, kind):
    """An hour of training would else end ten minutes later at the limit, with nothing to show."""
    real, pilots = learning_rates.fit, []

    def slow(*given: Any, **options: Any) -> Any:
        if options.get("pilot"):
            pilots.append(given)
            end = time.process_time() + 0.05
            while time.process_time() < end:
                pass
        return real(*given, **options)

    monkeypatch.setattr(learning_rates, "fit", slow)
    record = run_cell(
        planned_cell("dan", "sst2", "dan.training.learning_rates=[0.1, 0.01]"), make_settings(**{kind: limit})
    )
    assert record.status == status
    assert len(pilots) == (1 if status == "timeout" else 2)
    if status == "timeout":
        told = record.error["message"]
        assert re.match(r"a pilot, 10% of the steps, took \d+ s: all of them would take longer", told)
        assert f"(--{kind.replace('_', '-')})" in record.error["message"]


def test_a_pilot_that_took_longer_than_all_of_it_may_is_not_awaited(make_settings, monkeypatch):
    """Of five minutes for a trial, a hopeless pilot would take half of one."""
    real, steps = FitModule._minimised, []

    def slow(*given: Any) -> Any:
        steps.append(1)
        time.sleep(0.05)
        return real(*given)

    monkeypatch.setattr(FitModule, "_minimised", slow)
    monkeypatch.setattr(learning_rates, "ASKED_EVERY_S", 0.0)
    asked = "dan.training.learning_rates=[0.1, 0.01]", "dan.training.batch_size=2", "dan.training.epochs=10"
    record = run_cell(planned_cell("dan", "sst2", *asked), make_settings(timeout=1.0))
    assert record.status == "timeout" and len(steps) < 10, "a pilot makes 50 steps"
    assert re.match(
        r"the first \d steps of a pilot, which makes 10% of them, took \d s: all of them would", record.error["message"]
    )


def test_a_pilot_whose_dev_loss_is_not_finite_is_not_compared(make_settings, monkeypatch):
    def pilot(training: Any, *_: Any, pilot: bool) -> None:
        training.selection = 0.5
        training.curve = [{"accuracy": 0.5, "dev_loss": None if training.lr == 0.1 else 1.0}]

    monkeypatch.setattr(learning_rates, "fit", pilot)
    assembly = Assembly(planned_cell("dan", "sst2", "dan.training.learning_rates=[0.1, 0.01]"), make_settings())
    tried = learning_rates.try_rates(assembly, make_settings(), Path())
    assert tried == {0.1: None, 0.01: learning_rates.Pilot(0.5, 0.5, 1.0)}


@pytest.mark.parametrize(("most", "all_of_it"), [(None, 300), (5, 75), (20, 300), (100, 300)])
def test_the_time_that_a_pilot_foretells_is_that_of_the_passes_that_are_made(
    make_settings, monkeypatch, most, all_of_it
):
    """A hundred passes were allowed, of which the protocol makes twenty: a pilot, two of them, was
    taken for a fiftieth, and the cell for one that passes its limit."""
    spent = [0.0]

    def pilot(training: Any, *_: Any, pilot: bool) -> None:
        spent[0] += 30.0
        training.selection, training.curve = 0.0, [{"accuracy": 0.0, "dev_loss": 1.0}]

    monkeypatch.setattr(learning_rates, "fit", pilot)
    monkeypatch.setattr(learning_rates, "clocks", lambda: (spent[0], 0.0))
    monkeypatch.setattr(learning_rates, "since", lambda began: (spent[0] - began[0], 0.0))
    asked = "dan.training.learning_rates=[0.1, 0.01]", "dan.training.epochs=20"
    assembly = Assembly(planned_cell("dan", "sst2", *asked, max_epochs=most), make_settings())
    learning_rates.try_rates(assembly, make_settings(timeout=all_of_it + 1.0), Path())
    with pytest.raises(learning_rates.TooSlow, match="of the steps, took 30 s"):
        learning_rates.try_rates(assembly, make_settings(timeout=all_of_it - 1.0), Path())


@pytest.mark.parametrize(("devices", "least"), [(1, 20), (2, 10)])
def test_the_least_number_of_steps_is_that_of_one_device(make_settings, devices, least):
    """Several read as many batches in fewer steps: a training that keeps to its limit would be
    ended as too slow."""
    asked = "dan.training.learning_rates=[0.1]", "dan.training.epochs=9", "dan.training.patience=1"
    cell = planned_cell("dan", "sst2", *asked, "dan.training.batch_size=25", "dan.training.min_steps=20")
    assembly = Assembly(cell, make_settings())
    module = assembly.training_of(assembly.model(0), 0.1)
    foresight = learning_rates.Foresight(make_settings(), assembly.most_epochs(module))
    foresight.on_train_start(SimpleNamespace(world_size=devices, current_epoch=0), module)
    assert foresight.least == least


@pytest.mark.parametrize(("limit", "status"), [(0.001, "timeout"), (60.0, "ok")])
def test_one_rate_needs_no_pilot_to_tell_that_the_time_will_not_do(make_settings, monkeypatch, limit, status):
    """A paper's recipe has one rate: a night of them would end in timeouts of ten minutes each."""
    real, steps = FitModule.training_step, []
    monkeypatch.setattr(FitModule, "training_step", lambda self, *given: (steps.append(1), real(self, *given))[1])
    asked = "dan.training.learning_rates=[0.1]", "dan.training.epochs=9", "dan.training.patience=4"
    record = run_cell(planned_cell("dan", "sst2", *asked, "dan.training.batch_size=10"), make_settings(cpu_limit=limit))
    assert record.status == status
    if status == "timeout":
        assert re.match(r"20% of the least number of steps took \d s: all of them would", record.error["message"])
        assert len(steps) == 1, "patience is over after five epochs of ten steps, and ten are made at once"


def test_one_rate_is_measured_by_the_steps_that_were_made(make_settings, monkeypatch):
    """A training that keeps to its limit would be ended as too slow, had it made more
    steps than the tenth that it is held to."""
    real = FitModule.training_step

    def slow(self: Any, *given: Any) -> None:
        time.sleep(0.3)
        real(self, *given)

    monkeypatch.setattr(FitModule, "training_step", slow)
    asked = "dan.training.learning_rates=[0.1]", "dan.training.epochs=9", "dan.training.patience=4"
    cell = planned_cell("dan", "sst2", *asked, "dan.training.batch_size=10")
    assert run_cell(cell, make_settings(timeout=10.0)).status == "ok"


def test_a_rate_by_whose_weights_nothing_can_be_ranked_is_not_chosen(make_settings):
    """The loss of its last step was a number, and the scores of dev are none: the cell failed."""
    asked = "learning_rates=[1e38, 0.01]", "optimizer=sgd", "epochs=1", "clip=None", "batch_size=1000"
    cell = planned_cell("bilstm", "wikiqa", "bilstm.hidden=8", *(f"bilstm.training.{each}" for each in asked))
    record = run_cell(cell, make_settings())
    assert record.status == "ok", record.error
    assert record.training["learning_rates"]["1e+38"] is None


def test_a_rate_that_diverges_in_its_pilot_is_not_chosen(make_settings, monkeypatch):
    cell = planned_cell(
        "bilstm",
        "sst2",
        "bilstm.hidden=8",
        "bilstm.training.learning_rates=[1e38, 0.01]",
        "bilstm.training.optimizer=sgd",
        "bilstm.training.epochs=20",
        "bilstm.training.clip=None",
    )
    record = run_cell(cell, make_settings())
    assert record.status == "ok", record.error
    assert record.training["learning_rates"]["1e+38"] is None and 0 <= record.training["learning_rates"]["0.01"] <= 1

"""Estimates: who plans a grid must know whether it takes an hour or a week, and the longest cell
does not come last."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.records import Record
from harness.running.estimate import Estimate, measured_speeds
from tests.support.made_records import record

SPEEDS = measured_speeds()
PASSES, EXAMPLES = 5, 1000


def took(seconds: float, architecture: str = "dan", **fields):
    return record(architecture, seconds={"total": seconds}, **fields)


def trained(seconds: float, architecture: str = "dan", *, examples: int = EXAMPLES, **more: Any) -> Record:
    """A training at three rates, whose best took these seconds of the processor."""
    times = {"train": 9 * seconds, "total": 9 * seconds} if more.pop("clock", False) else {}
    times |= {} if times else {"train_processor": seconds, "total_processor": 1.4 * seconds, "total": 9 * seconds}
    settings = {"epochs": PASSES, "batch_size": 32, "learning_rates": [0.1, 0.2, 0.3]}
    limits = {name: more.pop(name, None) for name in ("max_train", "max_epochs")}
    return record(
        architecture,
        seconds=times,
        hyperparameters={"training": settings, "limits": limits},
        counts={"train": examples},
        training={"epochs": PASSES},
        **more,
    )


def test_a_cell_takes_what_its_other_seeds_took():
    estimate = Estimate([took(10.0), took(20.0, seed=1), took(9999.0, "rnn", status="failed")])
    assert estimate(record(seed=7).cell) == 15.0
    assert Estimate([])(record().cell) is None


def test_what_a_limit_cut_off_is_no_time_of_a_cell():
    """A retry without the limit of three seconds was foretold to take three seconds."""
    cut = took(3.0, "gru", status="timeout")
    assert Estimate([trained(50.0), cut])(cut.cell) > 30.0
    assert Estimate([cut])(cut.cell) == 3.0, "the least that it takes"
    assert Estimate([trained(1.0), took(90.0, "gru", status="timeout")], limit=100.0)(cut.cell) == 90.0


def test_cells_of_other_settings_are_no_other_seeds():
    """A hundred passes were foretold to take as long as five."""
    longer = {"training": {"epochs": 20 * PASSES}}
    cell = trained(0).cell
    cell = dataclasses.replace(cell, hyperparameters=cell.hyperparameters | longer)
    estimate = Estimate([trained(50.0)])
    assert estimate(trained(0, seed=3).cell) == pytest.approx(1.4 * 50)
    assert estimate(cell) > 15 * 50


def test_records_that_tell_no_training_are_averaged():
    """The architecture on the task, then the task, then everything: what old records can tell."""
    records = [took(time, name, counts={}) for time, name in ((10.0, "dan"), (20.0, "cnn"), (70.0, "rnn"))]
    estimate = Estimate([*records, took(5.0, "cnn", task="fsdd", counts={})])
    assert estimate(record(tier="hub").cell) == 10.0
    assert estimate(record("new").cell) == 20.0
    assert estimate(record("new", task="snli").cell) == 15.0


def test_a_floor_takes_as_long_as_the_fastest_cell():
    """Twenty-nine floors were foretold to take twelve minutes, and one of squad1 two hours: as much
    longer than elsewhere as networks take there."""
    fast = record("nbsvm", seconds={"total_processor": 3.0}, counts={})
    elsewhere = record("floor_majority", task="ag_news", seconds={"total_processor": 5.0}, counts={"train": 100})
    for known in ([trained(50.0), fast], [trained(50.0), fast, elsewhere, trained(1.0, task="ag_news")]):
        assert Estimate(known)(took(0, "floor_majority").cell) == 3.0


def test_other_settings_take_time_in_proportion_to_what_is_read():
    """A grid of whole training sets is planned from records of small budgets."""
    estimate = Estimate([trained(50.0, examples=100, max_train=100)])
    assert estimate(trained(0, max_train=1000).cell) == pytest.approx(1.4 * 500)
    estimate.examples["sst2"] = 400
    assert estimate(trained(0, max_train=1000).cell) == pytest.approx(1.4 * 200), "there are no more"


def test_a_fit_takes_no_longer_for_each_of_many_rows_than_for_each_of_few():
    """Naive Bayes took two seconds with 50 labels, and was foretold eight minutes for 56,640."""
    few, many = (
        record("naive_bayes", protocol="paper", counts={"train": rows}, seconds={"total_processor": seconds})
        for rows, seconds in ((50, 2.0), (5000, 3.0))
    )
    estimate = Estimate([few, few, many])
    estimate.examples["sst2"] = 5000
    assert estimate(trained(0, "naive_bayes", max_train=5000).cell) == pytest.approx(3.0)


def test_another_protocol_takes_as_much_longer_as_pairs_with_records_of_both_show():
    """Vectors of the papers' 300 numbers take three times as long as those of 100: a grid of their
    recipes was foretold half of what it took."""
    common = [trained(50.0, name) for name in ("bilstm", "lstm", "gru")]
    estimate = Estimate([*common, trained(150.0, "lstm", protocol="paper"), trained(70.0, "rnn", protocol="paper")])
    assert estimate(trained(0, "bilstm", protocol="paper").cell) == pytest.approx(1.4 * 150)
    unseen = [estimate(trained(0, "dcnn", protocol=protocol).cell) for protocol in ("paper", "equal")]
    assert unseen[0] == pytest.approx(3 * unseen[1])
    assert estimate(trained(0, "rnn", protocol="paper", precision="64").cell) == pytest.approx(1.4 * 70)
    assert estimate(trained(0, "rnn").cell) == pytest.approx(1.4 * 70 / 3)
    assert estimate(trained(0, "gru", protocol="other").cell) == pytest.approx(1.4 * 50), "nothing is known of it"
    fitted = record("naive_bayes", counts={"train": EXAMPLES}, seconds={"total_processor": 3.0})
    estimate = Estimate([*common, trained(150.0, "lstm", protocol="paper"), fitted])
    assert estimate(trained(0, "naive_bayes", protocol="paper").cell) == 3.0, "a fit has no recipe"


def test_an_architecture_without_a_record_on_a_task_takes_what_its_speed_says():
    """It was the median of the task: a capsule network and an average of vectors took the same."""
    estimate = Estimate([trained(50.0, "bilstm")])
    factor = SPEEDS["bilstm"] / SPEEDS["dcnn"]
    assert estimate(trained(0, "dcnn").cell) == pytest.approx(1.4 * 50 * factor)


def test_an_architecture_that_is_slower_on_another_task_than_measured_is_so_here_too():
    others = [trained(1000 / SPEEDS[name], name, task=task) for name in ("lstm", "gru") for task in ("ag_news", "sst2")]
    slow = trained(7 * 1000 / SPEEDS["dan"], task="ag_news")
    estimate = Estimate([*others, slow])
    assert estimate(trained(0).cell) == pytest.approx(1.4 * 7 * 1000 / SPEEDS["dan"])


def test_a_task_without_any_record_takes_what_its_small_budget_tells_of_its_texts():
    """Multi30k was foretold to take 32 hours, at the median of records of long texts."""
    estimate = Estimate([trained(50.0)])  # on SST-2, of whose examples a small budget reads 8,000
    estimate.examples["wikiqa"] = EXAMPLES
    assert estimate(trained(0, task="wikiqa").cell) == pytest.approx(1.4 * 50 * 8000 / 6000)


def test_other_work_of_the_machine_lengthens_no_prediction():
    """The clock of a busy machine told ten times as much as its processor."""
    both = [trained(10.0, "lstm"), trained(10.0, "lstm", clock=True, seed=1)]
    clock = trained(20.0, "gru", clock=True, task="ag_news")
    estimate = Estimate([*both, clock])
    assert estimate(trained(0, "lstm", precision="64").cell) == pytest.approx(14.0)
    assert estimate(trained(0, "gru", task="ag_news", precision="64").cell) == pytest.approx(28.0)


def test_no_cell_takes_longer_than_its_limit_and_a_pilot_ends_those_that_would():
    """The cap of ten minutes made a grid that was foretold to take 32 hours take two."""
    of = trained(0, precision="64").cell
    assert Estimate([trained(90.0)], limit=100.0)(of) == 100.0, "with its pilots"
    for seconds in (200.0, 2000.0):  # its first pilot, which is not awaited
        assert Estimate([trained(seconds)], limit=100.0)(of) == pytest.approx(10.0)
    only = record(hyperparameters=of.hyperparameters | {"training": {"epochs": PASSES, "learning_rates": [0.1]}}).cell
    assert Estimate([trained(200.0)], limit=100.0)(only) == pytest.approx(20.0), "a tenth of its only training"
    assert Estimate([took(500.0)], limit=100.0)(took(0, seed=1).cell) == 100.0


def test_few_passes_make_no_pilot_shorter():
    """One pass over SST-2 was foretold to take a third of what its three pilots and it take."""
    estimate = Estimate([trained(50.0)])
    assert estimate(trained(0, max_epochs=1).cell) == pytest.approx(10 * (1 + 3 * 0.1 * PASSES + 0.1))
    assert estimate(trained(0, max_epochs=2 * PASSES).cell) == pytest.approx(1.4 * 50)
    assert Estimate([trained(50.0)], limit=9.0)(trained(0, max_epochs=1).cell) == pytest.approx(9 * 0.1 * PASSES)


def test_a_task_is_as_large_as_its_files_and_not_as_it_declares():
    """Of SNLI, 23,530 of 549,367 pairs may be at hand."""
    estimate = Estimate([trained(50.0)])
    snli = trained(0, task="snli").cell
    assert estimate.lacks_size(snli) and not Estimate([]).lacks_size(snli)
    assert not estimate.lacks_size(trained(0).cell), "records tell"
    assert not estimate.lacks_size(trained(0, task="snli", max_train=100).cell), "its budget tells"
    declared = estimate(trained(0, task="snli").cell)
    estimate.examples["snli"] = 549367 // 10
    assert estimate(trained(0, task="snli").cell) == pytest.approx(declared / 10, rel=1e-3)


def test_times_of_a_slower_machine_are_shortened():
    slow, fast = ({"version": 1, "examples_per_second": rate, "measured": ""} for rate in (100.0, 150.0))
    records = [took(30.0, ruler=slow)]
    assert Estimate(records, fast)(record(seed=1).cell) == pytest.approx(20.0)
    assert Estimate(records, slow)(record(seed=1).cell) == Estimate(records)(record(seed=1).cell) == 30.0


def test_the_longest_comes_first_and_what_is_unknown_keeps_its_order():
    estimate = Estimate([took(10.0, "a"), took(30.0, "b"), took(20.0, "c")])
    assert [cell.architecture for cell in estimate.longest_first([record(name).cell for name in "abc"])] == [
        "b",
        "c",
        "a",
    ]
    unknown = [record(name).cell for name in "xyz"]
    assert Estimate([]).longest_first(unknown) == unknown


def test_the_total_is_at_least_the_longest_cell():
    estimate = Estimate([took(10.0, "a"), took(100.0, "b")])
    chosen = [record("a", seed=1).cell, record("b", seed=1).cell]
    assert estimate.total(chosen, workers=1) == 110.0
    assert estimate.total(chosen, workers=2) == 100.0
    assert Estimate([]).total(chosen, workers=2) is None

"""The operations of older records: counted again they are those that the cell would count today."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.records import Record, Store
from harness.running.worker import run_cell
from harness.running.worker_settings import Settings
from tests.support.made_records import record
from tests.support.planned_cells import planned_cell
from tools import recount_operations

HALF = 0.5
"""Share of them that one batch of short texts had."""


def as_before(record: Record) -> Record:
    """A record of a cell that counted one batch of short texts."""
    assert record.flops_per_example and record.spent
    record.flops_per_example, record.flops_batches = HALF * record.flops_per_example, None
    record.training = record.training | {"flops": HALF * record.training["flops"]}
    record.spent = record.spent | {"flops": HALF * record.spent["flops"]}
    return record


@pytest.mark.parametrize(
    ("architecture", "task"), [("dan", "sst2"), ("bilstm", "wikiqa"), ("mixed_objective", "ag_news")]
)
def test_a_record_gets_what_its_cell_would_count_now(
    make_settings: Callable[..., Settings], tmp_path: Path, architecture: str, task: str
):
    """Its training's operations too, also of an objective that reads more than an answer does; its
    scores and times stay as they are."""
    settings = make_settings()
    made = run_cell(planned_cell(architecture, task), settings)
    assert made.status == "ok", made.error
    store = Store(settings.results)
    store.write(as_before(made.model_copy(deep=True)))
    assert recount_operations.main(["--results", str(settings.results), "--task", task]) == 0
    [found] = store.all()
    assert (found.flops_batches, found.scores, found.seconds) == (made.flops_batches, made.scores, made.seconds)
    assert found.spent and made.spent
    counted, wanted = ([each.flops_per_example, each.training["flops"], each.spent["flops"]] for each in (found, made))
    assert counted == pytest.approx(wanted)


def test_a_record_whose_model_cannot_be_built_stays(make_settings: Callable[..., Settings], capsys):
    """Its plugin is gone; the others are counted all the same."""
    settings = make_settings()
    store = Store(settings.results)
    store.write(as_before(run_cell(planned_cell("dan", "sst2"), settings)))
    store.write(record("gone", score=0.5, flops_per_example=5.0, training={"epochs": 1, "best_epoch": 1, "curve": []}))
    assert recount_operations.main(["--results", str(settings.results)]) == 1
    counted = {each.architecture: each.flops_batches for each in store.all()}
    assert counted["dan"] and counted["gone"] is None
    assert "gone on sst2: 1 left" in capsys.readouterr().err


def test_a_record_of_another_version_stays(make_settings: Callable[..., Settings], capsys):
    """Today's code builds another model: its operations are not those of what was trained."""
    settings = make_settings()
    store = Store(settings.results)
    older = as_before(run_cell(planned_cell("dan", "sst2"), settings))
    older.architecture_version = 7
    older.key = older.cell.key
    store.write(older)
    assert recount_operations.main(["--results", str(settings.results)]) == 1
    [found] = store.all()
    assert found.flops_batches is None and "made by version 7 of dan" in capsys.readouterr().err


@pytest.mark.parametrize(("field", "value"), [("view", {"view": "Words"}), ("parameters", {"total": 1})])
def test_a_record_of_another_model_of_the_same_version_stays(
    make_settings: Callable[..., Settings], capsys, field: str, value: object
):
    """An edit that raised no version may have changed what is counted."""
    settings = make_settings()
    store = Store(settings.results)
    older = as_before(run_cell(planned_cell("dan", "sst2"), settings))
    setattr(older, field, value)
    store.write(older)
    assert recount_operations.main(["--results", str(settings.results)]) == 1
    [found] = store.all()
    assert found.flops_batches is None and "here" in capsys.readouterr().err


def test_records_of_one_cell_are_alike_where_their_models_are():
    """The second of two seeds may be older than an edit that raised no version."""
    made = [record("dan", seed=seed, view={"view": "Words"}) for seed in (0, 1)]
    odd = record("dan", seed=2, view={"view": "Words", "size": 7})
    assert sorted(recount_operations.alike([*made, odd]), key=len) == [[odd], made]

"""Cells that start from others: when they start, and what becomes of them when these fail."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import registry
from harness.records import Cell, Record, Store
from harness.running.cell_locks import Leases
from harness.running.engines import local
from harness.running.engines import ray as cluster
from harness.running.progress import summarise
from harness.running.worker_settings import Settings
from harness.saved_models import storage
from tests.support import inheriting
from tests.support.sessions import session

FAKE = "tests.support.fake_cells:run_cell"
pytestmark = pytest.mark.usefixtures("light_server")


def run(cells: list[Cell], settings: Settings, workers: int = 2, **options: Callable[[object], object]) -> list[Record]:
    return local.run(cells, settings, workers=workers, function=FAKE, **options)


def test_a_child_starts_when_its_parent_has_ended_and_is_kept(make_cell, make_settings, child_of):
    """A worker that is free, and a longer predicted time, are no reason to start from half a
    file."""
    parent = make_cell("keeps")
    child, grandchild = (keeps := child_of("keeps-2", parent)), child_of("fine-3", keeps)
    settings, order = make_settings(), []
    records = run(
        [grandchild, child, parent, make_cell("fine")],
        settings,
        started=lambda cell: order.append(("starts", cell.architecture)),
        ended=lambda record: order.append(("ends", record.architecture)),
    )
    assert {record.status for record in records} == {"ok"} and len(records) == 4
    assert order.index(("ends", "keeps")) < order.index(("starts", "keeps-2"))
    assert order.index(("ends", "keeps-2")) < order.index(("starts", "fine-3"))
    assert order.index(("starts", "fine")) < order.index(("ends", "keeps")), "others do not wait"


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        ("raises", {}, "ended failed: .*a model that raises"),
        ("killed", {"times": 2}, "ended interrupted: killed twice by SIGKILL"),
        ("fine", {}, "ended ok, and was not kept"),
    ],
)
def test_the_children_of_a_parent_that_is_not_there_are_skipped(
    make_cell, make_settings, child_of, name, fields, reason
):
    """At first and at second hand; the grid goes on, and they run when the parent is there."""
    parent = make_cell(name, hyperparameters=fields)
    child = child_of("fine-2", parent)
    settings = make_settings()
    records = {r.architecture: r for r in run([child_of("fine-3", child), child, parent], settings)}
    assert [records[each].status for each in ("fine-2", "fine-3")] == ["skipped", "skipped"]
    message = records["fine-2"].error["message"]
    assert message.startswith(f"its parent {name} on sst2 ({parent.key}) in the role weights ")
    assert re.search(reason, message)
    assert Store(settings.results).find(child) == records["fine-2"]


def test_a_parent_that_fails_in_this_run_is_not_replaced_by_what_was_kept_of_it_before(
    make_cell, make_settings, child_of
):
    """It is run again because its data or its code changed: the child would learn from the old."""
    parent, settings = make_cell("raises"), make_settings()
    storage.write_files(settings.results, parent.key, {"model.json": b"{}"})
    _, child = run([child_of("fine-2", parent), parent], settings)
    assert child.status == "skipped" and "ended failed" in child.error["message"]


def test_a_run_whose_parents_failed_before_says_so_and_is_not_complete(tmp_path: Path, monkeypatch, capsys):
    """Exit code 0 and "they do not fit" would be what a script and a user hear from then on."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    registry.add_plugin(Path(inheriting.__file__))
    parent, _ = session(tmp_path, "mean_after").pending.run
    error = {"type": "RuntimeError", "message": "it broke", "log": None}
    Store(tmp_path).write(Record.skeleton(parent, "failed", error=error))
    again = session(tmp_path, "mean_after")
    records = again.run()
    assert not again.complete(records)
    summarise(again.pending, records, again.store)
    told = capsys.readouterr().out
    assert "1 finished before: 1 failed" in told and "use --retry-failed" in told
    assert f"1 skipped: its parent mean_words on sst2 ({parent.key})" in told and "ended failed: it broke" in told
    assert "do not fit" not in told
    assert len(session(tmp_path, "mean_after", retry_failed=True).pending.run) == 2


def test_a_child_waits_for_a_parent_that_another_run_has(make_cell, make_settings, child_of, monkeypatch):
    """It would be skipped for want of a parent that is being trained."""
    parent, settings = make_cell("keeps"), make_settings()
    take, asked = Leases.take, []

    def later(leases: Leases, cell: Cell) -> bool:
        asked.append(cell.architecture)
        return take(leases, cell) if cell != parent or asked.count("keeps") > 1 else False

    monkeypatch.setattr(Leases, "take", later)
    records = run([child_of("fine-2", parent), parent], settings)
    assert [(record.architecture, record.status) for record in records] == [("keeps", "ok"), ("fine-2", "ok")]


def test_a_node_of_a_cluster_is_given_the_parents_of_a_cell(
    make_cell, make_settings, child_of, monkeypatch, tmp_path: Path
):
    """The results folder is on another machine."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    parent, settings = make_cell("keeps"), make_settings()
    child = child_of("fine-2", parent)
    alone = cluster.run_here(child, settings, FAKE)
    assert Record.from_json(alone.record).status == "skipped"
    storage.write_files(settings.results, parent.key, {"model.json": b"{}"})
    assert storage.ancestors(settings.results, child) == [parent.key]
    given = {parent.key: storage.files_of(settings.results, parent.key)}
    returned = cluster.run_here(child, settings, FAKE, given)
    assert Record.from_json(returned.record).status == "ok" and returned.model == {}

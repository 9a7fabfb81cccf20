"""Cells that start from others: when they start, and what becomes of them when these fail."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.records import Cell, Record, Store
from harness.running.cell_locks import Leases
from harness.running.engines import local
from harness.running.engines import ray as cluster
from harness.running.worker_settings import Settings
from harness.saved_models import storage

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

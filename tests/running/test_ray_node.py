"""What a node of a Ray cluster does with a cell, and how many cells its nodes hold; needs no
Ray."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from types import SimpleNamespace

import pytest

from harness.records import Record
from harness.running.cell_locks import Leases
from harness.running.engines import ray as engine

FAKE = "tests.support.fake_cells:run_cell"


@pytest.fixture(autouse=True)
def node(monkeypatch, tmp_path, light_server):
    """A node with a folder for temporary files of its own, whose fork server loads no torch."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_node_gives_back_the_files_of_a_cell_and_keeps_none(make_cell, make_settings):
    settings = make_settings()
    returned = engine.run_here(make_cell("fine"), settings, FAKE)
    assert Record.from_json(returned.record).status == "ok"
    assert b"this is fine" in returned.log
    assert not list((engine.node_folder(settings) / "results").iterdir())


def test_a_node_without_room_hands_the_cell_on(make_cell, make_settings, monkeypatch):
    """It is no result of the model, and another node has a disk of its own."""

    def full(leases, cell):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Leases, "take", full)
    with pytest.warns(UserWarning, match="No space left"), pytest.raises(engine.StoppedByNode, match="did not start"):
        engine.run_here(make_cell("fine"), make_settings(), FAKE)


def test_a_node_whose_folder_cannot_be_used_hands_the_cell_on(make_cell, make_settings):
    settings = make_settings()
    folder = engine.node_folder(settings)
    folder.mkdir(parents=True)
    (folder / "leases").write_text("a file where the folder should be")
    with pytest.raises(engine.StoppedByNode, match="no cell can be reserved"):
        engine.run_here(make_cell("fine"), settings, FAKE)


@pytest.mark.parametrize(
    ("cores", "gib", "limit", "workers"),
    [((4,), 1.5, 512, 3), ((16,), 64, 32768, 2), ((16,), 64, None, 16), ((16, 16), 64, None, 32)],
)
def test_as_many_cells_run_as_their_memory_has_room_for_on_each_node(monkeypatch, cores, gib, limit, workers):
    """Cells that wait in Ray's queue are shown as running and hold their leases; a node that had
    room was said to have none. Nodes of one name, such as those of several containers, count
    each."""
    nodes = [
        {"Alive": True, "NodeManagerHostname": "one", "Resources": {"CPU": count, "memory": gib * 2**30}}
        for count in cores
    ]
    answers = {"is_initialized": lambda: True, "nodes": lambda: nodes, "cluster_resources": dict}
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(**answers))
    assert engine.default_workers(1, 1, limit) == workers

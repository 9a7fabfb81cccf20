"""Finished cells whose record was made by other code: named in the plan, and run again when
asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import registry
from harness.records import Record, Store
from harness.records.code_digest import code_of_cell
from harness.running.engines.loop import failure_record
from harness.running.pending import skipped
from harness.running.progress import show
from harness.running.request import Request
from harness.running.session import Session
from tests.support.fake_plugins import PLUGIN

OLD, NEW = PLUGIN, PLUGIN.replace("hidden=64", "hidden=64, more=1").replace("reads no audio", "hears nothing")


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    file = tmp_path / "toys.py"
    file.write_text(OLD)
    registry.add_plugin(file)
    return file


@pytest.fixture
def request_of(tmp_path: Path, plugin: Path):
    """A request of three cells, finished by the code of now; one of them failed, one does not fit.
    Keyword arguments replace fields."""

    def make(**fields: object) -> Request:
        return Request(tmp_path / "results", architectures="toy_text,toy_fit", tasks="toy_topic,toy_tags", **fields)

    session = Session(make(), tell=pytest.fail)
    assert len(session.pending.run) == 3
    for cell, status in zip(session.pending.run, ("ok", "ok", "failed"), strict=True):
        session.store.write(Record.skeleton(cell, status, code=code_of_cell(cell)))
    for item in session.pending.skip:
        session.store.write(skipped(item, ""))
    return make


def test_finished_cells_of_the_same_code_are_finished(request_of, plugin):
    plugin.write_text("# formatted anew\n" + OLD)
    pending = Session(request_of(), tell=pytest.fail).pending
    assert (len(pending.run), len(pending.finished), pending.changed) == (0, 4, [])


@pytest.mark.parametrize("dry_run", [False, True])
def test_finished_cells_of_other_code_are_named_and_stand(request_of, plugin, capsys, dry_run):
    """The old result without a word is what a user takes for the new one."""
    plugin.write_text(NEW)
    said: list[str] = []
    session = Session(request_of(dry_run=dry_run), tell=said.append)
    pending = session.pending
    assert said == ["3 made by other code; --changed runs them again"]
    assert (len(pending.run), len(pending.finished), len(pending.changed)) == (0, 4, 3)
    show(pending, session.estimate, session.slots)
    out = capsys.readouterr().out
    assert out.count("made by other code") == 3 and "other toy_fit on toy_tags, seed 0" in out


def test_finished_cells_of_other_code_run_again_when_asked(request_of, plugin):
    """Nothing is lost: the old record is kept, also when it is not the first."""
    plugin.write_text(NEW)
    said: list[str] = []
    dry = Session(request_of(changed=True, dry_run=True), tell=said.append)
    assert len(dry.pending.run) == 3 and len(list(dry.store.all())) == 4, "a dry run renames nothing"
    session = Session(request_of(changed=True), tell=said.append)
    assert said == ["3 made by other code; run again; the old records are renamed to *.old"] * 2
    assert len(session.pending.run) == len({cell.key for cell in session.pending.run}) == 3
    assert [record.status for record in session.pending.finished] == ["skipped"]
    assert [record.status for record in session.store.all()] == ["skipped"]
    for cell in session.pending.run:
        session.store.write(Record.skeleton(cell, "ok", code=code_of_cell(cell)))
    assert Session(request_of(), tell=pytest.fail).pending.run == []
    plugin.write_text(NEW.replace("more=1", "more=2"))
    Session(request_of(changed=True), tell=said.append)
    assert len(list(session.store.folder.rglob("*.json.*old"))) == 6


def test_a_record_that_says_nothing_of_its_code_stands(request_of, plugin, tmp_path):
    """Those of schema 1, and all that were committed before there were digests."""
    store = Store(tmp_path / "results")
    for record in list(store.all()):
        store.write(record.model_copy(update={"code": None}))
    plugin.write_text(NEW)
    pending = Session(request_of(changed=True), tell=pytest.fail).pending
    assert (len(pending.run), len(pending.finished), pending.changed) == (0, 4, [])


def test_a_cell_that_its_engine_had_to_end_says_its_code_too(make_settings, plugin, make_cell):
    """A plugin that hung and was mended has a `timeout` that other code made."""
    cell = make_cell("toy_text", task="toy_topic")
    record = failure_record(cell, make_settings(), "timeout", "timeout", "too long")
    assert record.code == code_of_cell(cell) is not None
    unknown = failure_record(make_cell("nobody"), make_settings(), "timeout", "timeout", "too long")
    assert unknown.code is None

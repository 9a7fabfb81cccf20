"""What goes on around the cells of a run: a damaged record, a folder that goes away, a user who
wants to stop."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from multiprocessing.context import ForkServerProcess

import pytest

from harness.errors import UsageError
from harness.records import Record, Store
from harness.running.cell_locks import Leases
from harness.running.engines import local

FAKE = "tests.support.fake_cells:run_cell"
pytestmark = pytest.mark.usefixtures("light_server")


def run(cells, settings, **options):
    return local.run(cells, settings, **{"workers": 1, "function": FAKE} | options)


def test_a_record_that_is_damaged_meanwhile_is_named_and_the_others_run(make_cell, make_settings):
    """A copy into the folder may show half a file, and a plugin may write into the records of
    others: that is one cell's trouble."""
    settings = make_settings()
    cells = [make_cell(name) for name in ("fine", "fine-2", "fine-3")]
    file = Store(settings.results).path(cells[1])

    def damage(record):
        if record.architecture == "fine":
            file.parent.mkdir(parents=True)
            file.write_text('{"half": ')

    with pytest.warns(UserWarning, match=f"damaged record: .*{file.name}"):
        records = run(cells, settings, ended=damage)
    assert [(r.architecture, r.status) for r in records] == [("fine", "ok"), ("fine-3", "ok")]
    assert file.read_text() == '{"half": '
    assert not list((settings.work / "leases").iterdir())


def test_a_result_that_another_run_had_after_the_plan_is_taken(make_cell, make_settings):
    """Its hours would be spent twice, and a time limit of this run would take the place of the
    score."""
    settings, cells = make_settings(), [make_cell("exits"), make_cell("exits-2")]
    store = Store(settings.results)
    stands = Record.skeleton(cells[0], "ok", command="another run")
    file = store.write(stands)
    store.write(Record.skeleton(cells[1], "interrupted"))
    written, ended = file.stat().st_mtime_ns, []
    records = run(cells, settings, ended=ended.append)
    assert records == ended and records[0] == stands
    assert file.stat().st_mtime_ns == written
    assert records[1].status == "failed", "what did not end well is run again"


def test_a_record_that_was_damaged_after_the_plan_is_named_and_its_cell_left_out(make_cell, make_settings):
    """The cell would run for hours, and could not write its record."""
    settings = make_settings()
    file = Store(settings.results).path(make_cell("fine"))
    file.parent.mkdir(parents=True)
    file.write_text('{"half": ')
    with pytest.warns(UserWarning, match=f"damaged record: .*{file.name}"):
        records = run([make_cell("fine"), make_cell("fine-2")], settings)
    assert [r.architecture for r in records] == ["fine-2"]


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_a_results_folder_that_goes_away_ends_the_run_with_a_message(make_cell, make_settings, tmp_path, how):
    settings = make_settings()

    def away(record):
        if how == "moved":
            settings.results.rename(tmp_path / "elsewhere")
        else:
            shutil.rmtree(settings.results)

    with pytest.warns(UserWarning, match="leases: no cell can be reserved .*No such file"):
        records = run([make_cell("fine"), make_cell("fine-2")], settings, ended=away)
    assert [r.architecture for r in records] == ["fine"]
    if how == "moved":
        assert Store(tmp_path / "elsewhere").find(make_cell("fine")) == records[0]


def test_a_full_disk_starts_no_more_cells_and_lets_the_running_ones_finish(make_cell, make_settings, monkeypatch):
    settings, take = make_settings(), Leases.take

    def full(leases, cell):
        if cell.architecture != "sleeps":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return take(leases, cell)

    monkeypatch.setattr(Leases, "take", full)
    cells = [make_cell("sleeps", hyperparameters={"seconds": 0.3}), make_cell("fine"), make_cell("fine-2")]
    with pytest.warns(UserWarning, match="No space left on device") as told:
        records = run(cells, settings, workers=2)
    assert [(r.architecture, r.status) for r in records] == [("sleeps", "ok")]
    assert len(told) == 1


def test_a_cell_that_dies_on_a_full_disk_says_so(make_cell, make_settings, monkeypatch):
    """Its log cannot: that is on the same disk."""
    usage = shutil.disk_usage
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(folder)._replace(free=8192))
    [record] = run([make_cell("exits")], make_settings())
    assert record.error["message"].splitlines()[-1].startswith("No space left on the disk")
    assert record.error["message"].endswith("8 KiB")


def test_where_no_lease_can_be_kept_the_command_is_refused(make_cell, make_settings):
    settings = make_settings()
    settings.work.parent.mkdir()
    settings.work.write_text("a file where the folder should be")
    with pytest.raises(UsageError, match="no cell can be reserved"):
        run([make_cell("fine")], settings)


@pytest.mark.usefixtures("of_a_terminal")
def test_the_first_ctrl_c_says_what_it_waits_for(make_cell, make_settings, capsys):
    cells = [make_cell("sleeps", hyperparameters={"seconds": 0.3}, seed=seed) for seed in range(3)]

    def press(cell):
        if cell.seed == 1:
            os.kill(os.getpid(), signal.SIGINT)

    records = run(cells, make_settings(), workers=2, started=press)
    assert sorted(record.seed for record in records) == [0, 1]
    assert capsys.readouterr().err == "archbench: note: waiting for 2 cells; Ctrl-C again ends them\n"


def test_the_start_of_the_fork_server_is_no_time_of_a_cell(make_cell, make_settings, monkeypatch):
    """It imports torch, which takes longer than a small cell may."""
    start = ForkServerProcess.start

    def slow(process):
        time.sleep(3.0)
        start(process)

    monkeypatch.setattr(ForkServerProcess, "start", slow)
    settings = make_settings(timeout=2.8)  # a cell alone takes a fraction of it, also on a busy machine
    [record] = run([make_cell("sleeps", hyperparameters={"seconds": 0.3})], settings)
    assert record.status == "ok"
    [failed] = run([make_cell("exits")], settings)
    assert failed.seconds["total"] < 2.8

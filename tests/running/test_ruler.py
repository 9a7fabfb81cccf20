"""The ruler: frozen, measured once a day on a machine, and speeds compared by it or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from harness.records import Record
from harness.running import ruler as module
from harness.running import worker
from harness.running.engines import local
from harness.running.ruler import CELL, RulerError, have_ruler, known_ruler, measure, rescaled, ruler_of_today
from tests.support.made_records import record

FROZEN = {1: "330491d257ccdc1e66060cd835a2abc54df614ded47b6d75c5c142a409bb89fc"}
"""SHA-256 of the cell's file, by version."""


def test_the_frozen_cell_is_the_one_of_its_version():
    """Speeds of a changed cell would be compared with those of the old one."""
    from harness.running.ruler_cell import VERSION

    assert hashlib.sha256(CELL.read_bytes()).hexdigest() == FROZEN[VERSION], "raise VERSION and add its digest here"


def test_the_frozen_cell_trains():
    """Its last loss is that of the same training elsewhere: no machine skips the work."""
    done = subprocess.run([sys.executable, "-P", str(CELL)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["loss"] == pytest.approx(1.561, abs=0.02)
    assert 50 < found["examples_per_second"] < 1e6


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cell that says how often it was timed, with how many threads, all on one day; the folder of
    the rulers."""
    monkeypatch.setattr(module, "now", lambda: "2031-05-06T12:00:00+00:00")
    times = tmp_path / "times"
    cell = tmp_path / "cell.py"
    cell.write_text(
        "import json, os, time\n"
        f"file = open({str(times)!r}, 'a'); file.write('.'); file.flush(); time.sleep(0.2)\n"
        f"count = os.path.getsize({str(times)!r})\n"
        "threads = int(os.environ['OMP_NUM_THREADS'])\n"
        "print(json.dumps({'version': threads, 'examples_per_second': 1000.04 + count, 'loss': 0}))\n"
    )
    monkeypatch.setattr(module, "CELL", cell)
    return tmp_path / "ruler"


def test_a_measurement_has_one_thread_and_fits_a_record(fake, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    found = measure()
    assert (found["version"], found["examples_per_second"]) == (1, 1001.0)
    kept = Record.from_json(record(ruler=found).to_json())
    assert kept.ruler == found


def test_a_day_on_a_machine_has_one_measurement(fake, monkeypatch):
    """Three seconds for the first run of a day, none for the others."""
    first = ruler_of_today(fake)
    assert ruler_of_today(fake) == first
    monkeypatch.setattr(platform, "node", lambda: "another machine on the same disk")
    other = ruler_of_today(fake)
    assert other["examples_per_second"] == 1002.0


def test_the_next_day_is_measured_anew(fake, monkeypatch):
    moment = "2031-05-06T23:59:59+00:00"
    monkeypatch.setattr(module, "now", lambda: moment)
    assert ruler_of_today(fake)["measured"] == moment
    moment = "2031-05-07T00:00:01+00:00"
    assert ruler_of_today(fake) == {"version": 1, "examples_per_second": 1002.0, "measured": moment}


def test_another_cell_is_measured_anew(fake):
    ruler_of_today(fake)
    module.CELL.write_text(module.CELL.read_text() + "# another version\n")
    assert ruler_of_today(fake)["examples_per_second"] == 1002.0


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"version": 1}', '{"version": 1, "examples_per_second": "x"}'])
def test_a_damaged_file_is_measured_anew(fake, damaged):
    ruler_of_today(fake)
    [file] = fake.glob("*.json")
    file.write_text(damaged)
    assert ruler_of_today(fake)["examples_per_second"] == 1002.0
    assert json.loads(file.read_text())["examples_per_second"] == 1002.0


def test_two_runs_at_a_time_measure_once(fake):
    """Each would slow the other down, and the day would have a slow ruler."""
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(ruler_of_today, [fake] * 3))
    assert {each["examples_per_second"] for each in found} == {1001.0}


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("raise MemoryError('none left')", "MemoryError: none left"),
        ("print('no number')", "JSONDecodeError"),
        ("print('{}')", "KeyError"),
        ("import time; time.sleep(60)", "takes more than 1 s here"),
    ],
)
def test_a_cell_that_does_not_end_well_is_an_error_with_its_reason(fake, monkeypatch, cell, message):
    module.CELL.write_text(cell)
    if "sleep" in cell:
        monkeypatch.setattr(module, "PATIENCE", 1)
    with pytest.raises(RulerError, match=f"the ruler cannot be measured.*{message}"):
        ruler_of_today(fake)
    assert not list(fake.glob("*.json"))


@pytest.mark.usefixtures("light_server")
def test_a_cell_does_not_pay_for_the_ruler_with_its_limits(fake, make_cell, make_settings, monkeypatch):
    """Below the cost of a measurement each cell of a grid would end as a timeout: the first, and as
    nothing was measured then, all others."""
    module.CELL.write_text(f"import time; time.sleep(1)\n{module.CELL.read_text()}")
    settings, start, known = make_settings(timeout=1.0), ForkServerProcess.start, []

    def starting(process):
        known.append(known_ruler(settings.work / "ruler"))
        start(process)

    monkeypatch.setattr(ForkServerProcess, "start", starting)
    cell = make_cell("fine", tier="local", protocol="equal")
    records = local.run([cell], settings, workers=1, function="tests.support.fake_cells:run_cell")
    assert [each.status for each in records] == ["ok"]
    assert [each and each["examples_per_second"] for each in known] == [1001.0], "measured before the cell starts"


def test_a_cell_only_reads_the_ruler(make_cell, make_settings, monkeypatch):
    """It would measure at the cost of its own limits; one of mini is compared with nothing."""
    settings, cell = make_settings(), make_cell(tier="local", protocol="equal")
    found = _ruler(7) | {"measured": module.now()}
    monkeypatch.setattr(module, "measure", lambda: found)
    assert worker._ruler(cell, settings) is None
    have_ruler(settings.work / "ruler")
    assert worker._ruler(cell, settings) == found
    assert worker._ruler(make_cell(protocol="equal"), settings) is None


@pytest.mark.usefixtures("light_server")
def test_the_ruler_is_timed_under_the_settings_of_a_cell(make_cell, make_settings, monkeypatch):
    """With other settings of malloc it would be half as fast: no speed would fit those of earlier
    runs."""
    found = []
    monkeypatch.setattr(
        local, "have_ruler", lambda folder: found.append({**os.environ}.items() >= local.MALLOC.items())
    )
    cells = [make_cell("fine", tier="local", protocol="equal"), make_cell("fine", tier="local"), make_cell("fine")]
    local.run(cells, make_settings(), workers=1, function="tests.support.fake_cells:run_cell")
    assert found == [True], "and not for cells that are compared with nothing"


def test_a_ruler_that_cannot_be_measured_is_tried_once_a_day(fake, monkeypatch):
    """Else a run of many cells would wait before each of them, and say the same."""
    monkeypatch.setattr(module, "now", lambda: "2031-05-06T00:00:00+00:00")
    good = module.CELL.read_text()
    module.CELL.write_text("raise MemoryError('none left')")
    with pytest.warns(UserWarning, match="records will have no ruler: .* none left"):
        have_ruler(fake)
    module.CELL.write_text(good)
    with warnings.catch_warnings(action="error"):
        have_ruler(fake)
    assert known_ruler(fake) is None
    monkeypatch.setattr(module, "now", lambda: "2031-05-07T00:00:00+00:00")
    have_ruler(fake)
    assert known_ruler(fake) is not None


def test_a_lock_that_nobody_gives_back_holds_no_run_up(fake, monkeypatch):
    """A run that measures and was stopped (Ctrl-Z) would hold up every other one for ever."""
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    fake.mkdir()
    with module.FileLock(fake / f"{module._machine()}.lock"), pytest.raises(RulerError, match="another run"):
        ruler_of_today(fake)


def _ruler(rate: float, version: int = 1):
    return {"version": version, "examples_per_second": rate, "measured": "2031-05-06T00:00:00+00:00"}


@pytest.mark.parametrize(
    ("under", "to", "expected"),
    [
        (_ruler(1000), _ruler(1000), 50),
        (_ruler(1000), _ruler(1500), 75),
        (_ruler(1500), _ruler(1000), 50 / 1.5),
        (_ruler(1000), _ruler(2000), 100),
        (_ruler(2000), _ruler(1000), 25),
        (_ruler(1000), _ruler(2001), None),
        (_ruler(2001), _ruler(1000), None),
        (_ruler(1000), _ruler(1000, version=2), None),
        (None, _ruler(1000), None),
        (_ruler(1000), None, None),
        (None, None, None),
        (_ruler(0), _ruler(0), None),
        (_ruler(0), _ruler(1000), None),
        (_ruler(1000), _ruler(0), None),
    ],
)
def test_speeds_under_other_rulers_are_rescaled_or_not_compared(under, to, expected):
    """50 examples a second on a machine half as fast are 100 here; of a machine that is nothing
    like this one, or of an unknown one, no figure is made up."""
    found = rescaled(50, under, to)
    assert found == (expected if expected is None else pytest.approx(expected))

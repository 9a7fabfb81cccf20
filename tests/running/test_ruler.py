"""The ruler: frozen, measured once a day on a machine, and speeds compared by it or not at all."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.records import Record
from harness.running import ruler as module
from harness.running.ruler import CELL, RulerError, measure, rescaled, ruler_of_today
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
    """A cell that says how often it was timed, with how many threads; the folder of the rulers."""
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

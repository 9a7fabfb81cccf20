"""The local engine: however a cell ends, there is one record of it, nothing of it is left running,
and the grid goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.context import ForkServerProcess
from types import SimpleNamespace

import psutil
import pytest

from harness.records import Store
from harness.running.engines import local
from harness.running.request import Request
from harness.running.session import Session

FAKE = "tests.support.fake_cells:run_cell"
pytestmark = pytest.mark.usefixtures("light_server")


def one(cell, settings):
    [record] = local.run([cell], settings, workers=1, function=FAKE)
    assert Store(settings.results).find(cell) == record, "the record on disk is the one that was returned"
    return record


def gone(pid: int) -> bool:
    for _ in range(50):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def test_a_cell_that_returns_is_ok_and_what_it_printed_is_in_its_log(make_cell, make_settings):
    cell, settings = make_cell("fine"), make_settings()
    assert one(cell, settings).status == "ok"
    assert "this is fine" in settings.log(cell).read_text()


def test_an_exception_ends_in_a_failed_record_with_the_traceback(make_cell, make_settings):
    record = one(make_cell("raises"), make_settings())
    assert record.status == "failed"
    assert "a model that raises" in record.error["message"]
    assert record.error["log"].startswith("work/logs/sst2-raises-")
    assert record.command == "archbench run"


@pytest.mark.parametrize(
    ("name", "how"), [("exits", "exit code 3"), ("segfaults", "signal SIGSEGV"), ("real_time", "signal 40")]
)
def test_a_process_that_dies_leaves_a_record_that_says_how(make_cell, make_settings, name, how):
    """A signal without a name ended the whole grid, and the other cells without a record."""
    record = one(make_cell(name), make_settings())
    assert (record.status, record.error["type"]) == ("failed", how)
    assert f"this is {name}" in record.error["message"], "the last lines of the log are in the record"


@pytest.mark.parametrize(("limit", "workers"), [(None, 1), (512, 3), (32768, 1)])
def test_a_limit_of_memory_below_what_a_cell_is_expected_to_want_makes_room_for_more(
    tmp_path, monkeypatch, limit, workers
):
    """A machine of 1.5 GiB ran one small cell at a time. A high limit is only a stop: it must not
    leave cores idle."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=3 * 2**29, available=3 * 2**29))
    monkeypatch.setattr(local, "gpus", list)
    monkeypatch.setattr(local, "usable_cores", lambda: 16)
    grid = dict(architectures="dan,bilstm,gru,lstm", tasks="sst2", mlflow="none", memory_limit=limit)
    assert Session(Request(tmp_path, **grid)).slots == workers


def test_a_cell_that_hangs_and_ignores_term_is_killed_at_its_limit(make_cell, make_settings, monkeypatch):
    monkeypatch.setattr(local, "TERM_GRACE_S", 0.3)
    begin = time.monotonic()
    record = one(make_cell("hangs"), make_settings(timeout=0.5))
    assert record.status == "timeout"
    assert "0.5 s" in record.error["message"]
    assert 0.5 <= record.seconds["total"] < 5
    assert time.monotonic() - begin < 10


def test_a_cell_beyond_its_processor_time_is_ended_and_one_that_waits_is_not(make_cell, make_settings, monkeypatch):
    """Limits of processor time are the same on a busy machine as on a quiet one."""
    monkeypatch.setattr(local, "USAGE_POLL_S", 0.05)
    record = one(make_cell("computes"), make_settings(cpu_limit=0.5))
    assert record.status == "timeout"
    assert "0.5 s of processor time" in record.error["message"]
    assert 0.5 < record.seconds["total_processor"] < 5, "by which the next run is planned"
    assert one(make_cell("waits"), make_settings(cpu_limit=0.5)).status == "ok"


def test_a_cell_beyond_its_memory_is_ended_as_oom(make_cell, make_settings, monkeypatch):
    monkeypatch.setattr(local, "USAGE_POLL_S", 0.05)
    record = one(make_cell("allocates"), make_settings(memory_limit_mib=250))
    assert record.status == "oom"
    assert "250" in record.error["message"]


def test_memory_that_processes_of_a_cell_share_counts_once(make_cell, make_settings, monkeypatch):
    """Ten forks that only read their parent's data are no ten times as large: with the few hundred
    MiB of a process that has torch they stay far below the limit, and one by one far above."""
    monkeypatch.setattr(local, "USAGE_POLL_S", 0.05)
    assert one(make_cell("forks"), make_settings(memory_limit_mib=1200)).status == "ok"


def test_processes_that_a_cell_leaves_behind_are_killed(make_cell, make_settings):
    settings = make_settings()
    settings.work.mkdir(parents=True)
    assert one(make_cell("leaves_child"), settings).status == "ok"
    assert gone(int((settings.work / "child.pid").read_text()))


def test_a_record_that_was_written_stands_even_if_its_process_then_hangs(make_cell, make_settings):
    begin = time.monotonic()
    assert one(make_cell("writes_then_hangs"), make_settings(timeout=1.0)).status == "ok"
    assert time.monotonic() - begin < 10, "the limit holds for it all the same"


def test_an_old_record_is_not_taken_for_the_new_one(make_cell, make_settings):
    """A cell that is run again and dies must not seem to have ended as it did the first time."""
    cell, settings = make_cell("exits"), make_settings()
    first = one(cell, settings)
    Store(settings.results).write(first.model_copy(update={"status": "timeout"}))
    assert one(cell, settings).status == "failed"


def test_a_fork_server_that_dies_costs_no_cell(make_cell, make_settings):
    settings = make_settings()
    settings.work.mkdir(parents=True)
    records = local.run([make_cell("kills_server"), make_cell("fine")], settings, workers=1, function=FAKE)
    assert [r.status for r in records] == ["ok", "ok"]


@pytest.mark.parametrize(("times", "status"), [(1, "ok"), (2, "interrupted")])
def test_a_cell_that_somebody_kills_is_started_once_more(make_cell, make_settings, times, status):
    """The kernel's want of memory is no result of a model; and a cell that always ends so must not
    be tried for ever."""
    record = one(make_cell("killed", hyperparameters={"times": times}), make_settings())
    assert record.status == status
    assert status == "ok" or "SIGKILL" in record.error["message"]


def test_a_log_that_grows_without_measure_is_cut(make_cell, make_settings, monkeypatch):
    """A model that prints in its loop would fill the disk for all others; how it began and ended
    can still be read."""
    monkeypatch.setattr(local, "MAX_LOG_BYTES", 1_000_000)
    monkeypatch.setattr(local, "LOG_HEAD_BYTES", 50_000)
    cell, settings = make_cell("prints"), make_settings()
    assert one(cell, settings).status == "ok"
    log = settings.log(cell).read_text()
    assert log.startswith("this is prints")
    assert "was cut here" in log
    assert log.endswith("the last line\n")
    assert len(log) < 1_200_000


def test_a_server_that_refuses_for_a_moment_costs_no_cell(make_cell, make_settings, monkeypatch):
    """A dying fork server still counts as running: asked in that moment it refuses, and the grid
    must ask again."""
    start, refusals = ForkServerProcess.start, iter([True, True, False])

    def refusing(process):
        if next(refusals):
            raise ConnectionRefusedError
        start(process)

    monkeypatch.setattr(ForkServerProcess, "start", refusing)
    monkeypatch.setattr(local, "START_PAUSES_S", (0.0, 0.0))
    assert [r.status for r in local.run([make_cell("fine")], make_settings(), workers=1, function=FAKE)] == ["ok"]


def test_a_failing_cell_never_stops_the_grid(make_cell, make_settings):
    names = ["raises", "fine", "segfaults", "fine-2", "exits", "fine-3"]
    seen: list[str] = []
    cells = [make_cell(name) for name in names]
    records = local.run(cells, make_settings(), workers=2, function=FAKE, ended=lambda r: seen.append(r.architecture))
    assert {r.architecture: r.status for r in records} == {n: "ok" if n.startswith("fine") else "failed" for n in names}
    assert sorted(seen) == sorted(names)


def test_workers_run_side_by_side(make_cell, make_settings):
    cells = [make_cell(f"sleeps-{i}", hyperparameters={"seconds": 0.8}) for i in range(2)]
    running, most = set(), 0

    def started(cell):
        nonlocal most
        running.add(cell.key)
        most = max(most, len(running))

    local.run(cells, make_settings(), workers=2, function=FAKE, started=started, ended=lambda r: running.discard(r.key))
    assert most == 2


def test_a_freed_slot_is_filled_before_the_last_cell_is_followed_up(make_cell, make_settings):
    """Else a processor would be idle while a record goes to MLflow, which takes as long as a small
    cell."""
    seen: list[str] = []
    local.run(
        [make_cell(name) for name in ("fine", "fine-2")],
        make_settings(),
        workers=1,
        function=FAKE,
        started=lambda cell: seen.append(f"{cell.architecture} started"),
        ended=lambda record: seen.append(f"{record.architecture} ended"),
        afterwards=lambda record: seen.append(f"{record.architecture} followed up"),
    )
    assert seen == [
        "fine started",
        "fine ended",
        "fine-2 started",
        "fine followed up",
        "fine-2 ended",
        "fine-2 followed up",
    ]


def interrupt(times: int, first: float = 0.7) -> threading.Thread:
    def press():
        time.sleep(first)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


@pytest.mark.usefixtures("of_a_terminal")
def test_one_ctrl_c_lets_running_cells_finish_and_starts_no_more(make_cell, make_settings):
    settings = make_settings()
    cells = [make_cell("sleeps", hyperparameters={"seconds": 1.5}), make_cell("fine")]
    before = signal.getsignal(signal.SIGINT)
    local.run([make_cell("warm")], settings, workers=1, function=FAKE)
    thread = interrupt(1)
    records = local.run(cells, settings, workers=1, function=FAKE)
    thread.join()
    assert [(r.architecture, r.status) for r in records] == [("sleeps", "ok")]
    assert Store(settings.results).find(cells[1]) is None
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("of_a_terminal")
def test_two_ctrl_c_end_running_cells_as_interrupted(make_cell, make_settings):
    settings = make_settings()
    local.run([make_cell("warm")], settings, workers=1, function=FAKE)
    thread = interrupt(2)
    records = local.run([make_cell("sleeps"), make_cell("fine")], settings, workers=1, function=FAKE)
    thread.join()
    assert [(r.architecture, r.status) for r in records] == [("sleeps", "interrupted")]


def test_a_callback_that_raises_leaves_no_cell_running(make_cell, make_settings):
    def ended(record):
        raise RuntimeError("a broken callback")

    with pytest.raises(RuntimeError, match="broken callback"):
        local.run([make_cell("sleeps"), make_cell("fine")], make_settings(), workers=2, function=FAKE, ended=ended)
    servers = [
        child for child in psutil.Process().children() if "forkserver" in " ".join(child.cmdline())
    ]  # not another test's browser
    assert servers
    cells = [process.pid for server in servers for process in server.children(recursive=True)]
    assert all(gone(pid) for pid in cells), "no cell survives its engine"


REAL = """
import json, sys
sys.path.insert(0, ".")
from pathlib import Path
from harness.running.engines import local
from harness.running.worker_settings import Settings
from harness.records import Cell
results = Path(sys.argv[1])
settings = Settings(results, None, (), 1, None, None, results / "work")
cell = Cell("environment", 1, "sst2", 1, "mini", "smoke", {}, 0)
[record] = local.run([cell], settings, workers=1, function="tests.support.fake_cells:run_cell")
print(json.dumps([record.environment, record.error, sorted(set(sys.modules) & {"torch", "mlflow", "datasets"})]))
"""


def test_the_real_fork_server_is_set_up_for_speed_and_safe_to_fork(tmp_path):
    """Libraries imported, malloc and thread pools set, no second thread; and the parent itself
    never loads torch."""
    done = subprocess.run([sys.executable, "-c", REAL, str(tmp_path)], capture_output=True, text=True, check=True)
    found, error, heavy = json.loads(done.stdout.splitlines()[-1])
    assert error is None
    assert found["MALLOC_TRIM_THRESHOLD_"] == "536870912"
    assert (found["OMP_NUM_THREADS"], found["PYTHONHASHSEED"]) == ("1", "0")
    assert found["preloaded"] == ["datasets", "evaluate", "pytorch_lightning", "torch"]
    assert found["server_threads"] == 1, (
        "a library starts a thread when it is imported: a fork would lose it, and its locks"
    )
    assert found["group"] != os.getpgid(0), "each cell leads a process group of its own"
    assert heavy == []


TWO_RUNS = """
import json, sys
sys.path.insert(0, ".")
from pathlib import Path
from harness.running.engines import local
from harness.running.worker_settings import Settings
from harness.records import Cell
local.PRELOAD, results = ["harness.running.engines.local"], Path(sys.argv[1])
settings = Settings(results, None, (), 1, None, None, results / "work", command=f"run {sys.argv[2]}")
cells = [Cell("sleeps", 1, "sst2", 1, "mini", "smoke", {"seconds": 0.4}, seed) for seed in range(int(sys.argv[3]))]
records = local.run(cells, settings, workers=2, function="tests.support.fake_cells:run_cell")
print(json.dumps([(r.seed, r.command, r.status) for r in records]))
"""


def start_run(folder, name: str, cells: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", TWO_RUNS, str(folder), name, str(cells)], stdout=subprocess.PIPE, text=True
    )


def test_two_runs_on_one_folder_share_the_cells(tmp_path):
    """Each cell is run by one of them, and both end with all records: nobody waits for ever,
    nothing is computed twice."""
    runs = [start_run(tmp_path, name, 6) for name in ("a", "b")]
    told = [json.loads(run.communicate(timeout=60)[0]) for run in runs]
    for records in told:
        assert sorted(seed for seed, *_ in records) == list(range(6))
    assert sorted(told[0]) == sorted(told[1]), "both tell the same records"
    logs = list((tmp_path / "work" / "logs").iterdir())
    assert len(logs) == 6
    assert not list((tmp_path / "work" / "leases").glob("*.json")), "no lease is left"


def test_the_cells_of_a_killed_run_die_with_it_and_are_taken_over(tmp_path):
    """An orphan would go on writing checkpoints and a record beside the run that took its cell
    over."""
    killed = start_run(tmp_path, "killed", 1)
    log = tmp_path / "work" / "logs"
    begin = time.monotonic()
    while not (log.is_dir() and any(path.stat().st_size for path in log.iterdir())):
        assert time.monotonic() - begin < 30
        time.sleep(0.01)
    [lease] = (tmp_path / "work" / "leases").glob("*.json")
    descendants = psutil.Process(killed.pid).children(recursive=True)
    killed.kill()
    killed.communicate()
    assert all(gone(process.pid) for process in descendants)
    assert not list((tmp_path / "records").rglob("*.json")), "the cell was cut before its end"
    assert lease.exists()
    records = json.loads(start_run(tmp_path, "next", 1).communicate(timeout=60)[0])
    assert records == [[0, "run next", "ok"]]

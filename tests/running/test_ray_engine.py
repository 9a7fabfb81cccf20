"""The Ray engine: the same cells as in the local one, and a lost worker costs only its own cell a
second start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.records import Store
from harness.running.engines import ray as engine

ray = pytest.importorskip("ray", reason="needs Ray: pip install -c constraints.txt -e '.[ray]'")

FAKE = "tests.support.ray_cells:run_cell"
ROOT = str(Path(__file__).resolve().parents[2])


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """A Ray of two cores, which this module's tests share; its workers find this checkout and
    preload nothing heavy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("PYTHONPATH", ROOT)
        hook = {"worker_process_setup_hook": "tests.support.ray_cells.light"}
        context = ray.init(
            "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error", runtime_env=hook
        )
        yield context
        ray.shutdown()


def attempts(settings) -> list[str]:
    """Architectures in the order their cells were started, once for every start."""
    return [line.split()[0] for line in (engine.node_folder(settings) / "attempts").read_text().splitlines()]


def run(cells, settings, workers=2, **callbacks):
    return engine.run(cells, settings, workers=workers, function=FAKE, **callbacks)


def test_a_cell_ends_as_it_does_without_ray(make_cell, make_settings):
    """Record, predictions and log lie in the driver's results folder, under the names that the
    record tells."""
    cell, settings = make_cell("predicts"), make_settings()
    [record] = run([cell], settings)
    store = Store(settings.results)
    assert store.find(cell) == record
    assert (record.status, record.command) == ("ok", "archbench run")
    assert store.load_predictions(record) == (["a", "b"], [0, 1])
    assert "this is predicts" in settings.log(cell).read_text()
    assert not list((engine.node_folder(settings) / "results").iterdir()), "the node keeps nothing of it"


def test_a_failing_cell_neither_stops_the_grid_nor_is_it_run_again(make_cell, make_settings):
    """How a model ends is a result: trying it again would only cost its time once more."""
    names = ["raises", "fine", "segfaults", "fine-2", "exits"]
    settings, seen = make_settings(), []
    records = run([make_cell(name) for name in names], settings, ended=lambda record: seen.append(record.architecture))
    assert {r.architecture: r.status for r in records} == {n: "ok" if n.startswith("fine") else "failed" for n in names}
    assert sorted(seen) == sorted(names) == sorted(attempts(settings))
    [failed] = [r for r in records if r.architecture == "raises"]
    assert "a model that raises" in failed.error["message"]
    assert (settings.results / failed.error["log"]).is_file(), "the log is where the record says, on this machine"


def test_a_lost_worker_has_only_its_own_cell_run_again(make_cell, make_settings):
    """kill -9 of Ray's worker, while a neighbour runs: every cell ends ok, none is lost, none is
    recorded twice."""
    settings = make_settings()
    cells = [make_cell("sleeps", hyperparameters={"seconds": 1.0}), make_cell("kills_worker"), make_cell("fine")]
    records = run(cells, settings)
    assert sorted((r.architecture, r.status) for r in records) == [
        ("fine", "ok"),
        ("kills_worker", "ok"),
        ("sleeps", "ok"),
    ]
    assert sorted(attempts(settings)) == ["fine", "kills_worker", "kills_worker", "sleeps"]
    assert len(list((settings.results / "records").rglob("*.json"))) == 3
    assert not list((settings.work / "leases").glob("*.json")), "no lease is left"


def test_a_node_that_ends_a_worker_politely_loses_no_cell(make_cell, make_settings):
    """A spot machine gets TERM first: the cell is run elsewhere, and nobody reads "stopped by the
    user" who stopped nothing."""
    settings = make_settings()
    [record] = run([make_cell("stops_worker")], settings)
    assert record.status == "ok"
    assert attempts(settings) == ["stops_worker"] * 2


def test_a_cell_whose_workers_are_always_lost_ends_in_a_record(make_cell, make_settings, monkeypatch):
    monkeypatch.setattr(engine, "RETRIES", 1)
    settings = make_settings()
    [record] = run([make_cell("always_kills_worker")], settings)
    assert (record.status, record.error["type"]) == ("interrupted", "engine")
    assert "lost 2 times" in record.error["message"]
    assert len(attempts(settings)) == 2


def test_a_child_has_its_parent_on_its_node(make_cell, make_settings, child_of):
    """Nodes share no results folder: what a parent left comes back, and goes out with its children,
    which wait for it; those of a parent that failed do not run."""
    parent, failed = make_cell("keeps"), make_cell("raises")
    child, orphan = child_of("reads_parents", parent), child_of("reads_parents", failed)
    settings = make_settings()
    records = {record.key: record for record in run([orphan, child, failed, parent], settings)}
    assert records[child.key].environment["parents"] == {parent.key: ["model.json"]}
    assert {cell.key: records[cell.key].status for cell in (parent, child, failed, orphan)} == {
        parent.key: "ok",
        child.key: "ok",
        failed.key: "failed",
        orphan.key: "skipped",
    }
    started = attempts(settings)
    assert started.index("keeps") < started.index("reads_parents") and started.count("reads_parents") == 1


def test_limits_hold_on_the_node(make_cell, make_settings):
    [record] = run([make_cell("sleeps")], make_settings(timeout=0.5))
    assert record.status == "timeout"


def test_a_cell_does_not_load_ray(make_cell, make_settings):
    """Its process is forked from a server without Ray, and must not import the main module of Ray's
    worker: a second for every cell."""
    [record] = run([make_cell("modules")], make_settings())
    assert record.environment["ray"] is False


def press(times: int, first: float) -> threading.Thread:
    def interrupt():
        time.sleep(first)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread


def test_one_ctrl_c_lets_running_cells_finish(make_cell, make_settings):
    settings = make_settings()
    run([make_cell("warm")], settings)
    thread = press(1, first=0.5)
    records = run([make_cell("sleeps", hyperparameters={"seconds": 1.5}), make_cell("fine")], settings, workers=1)
    thread.join()
    assert [(r.architecture, r.status) for r in records] == [("sleeps", "ok")]


def test_two_ctrl_c_end_running_cells_as_interrupted_and_leave_no_process(make_cell, make_settings):
    import psutil

    settings = make_settings()
    run([make_cell("warm")], settings)
    thread = press(2, first=1.0)
    begin = time.monotonic()
    records = run([make_cell("sleeps"), make_cell("fine")], settings, workers=1)
    thread.join()
    assert [(r.architecture, r.status) for r in records] == [("sleeps", "interrupted")]
    assert time.monotonic() - begin < 15
    [pid] = [
        int(p)
        for name, p in map(str.split, (engine.node_folder(settings) / "attempts").read_text().splitlines())
        if name == "sleeps"
    ]
    for _ in range(50):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.1)
    pytest.fail("the cell runs on after the run that started it")


def test_a_node_without_the_data_is_named_and_the_cells_are_not_blamed(make_cell, make_settings, tmp_path):
    """Otherwise one badly set up node would quickly turn the whole grid into failures."""
    settings = make_settings(data_dir=tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"node \S+: there is no .*nowhere \(--data-dir\)"):
        run([make_cell("fine")], settings)
    assert not list(settings.results.rglob("*.json"))


def test_a_cell_that_fits_no_node_is_refused_instead_of_waited_for(make_cell, make_settings):
    with pytest.raises(UsageError, match=r"needs 64 CPU.*no node has that.*2 CPU"):
        run([make_cell("fine")], make_settings(threads=64))


def test_two_cells_at_a_time_on_two_cores():
    assert engine.default_workers(threads=1, devices=1) == 2
    assert engine.default_workers(threads=1, devices=2) == 1


def test_an_address_that_does_not_answer_is_named():
    """Ray itself would end the process, after a while and with words about its own parts. A process
    of its own: this one is connected."""
    code = "from harness.running.engines import ray; ray.default_workers(1, 1)"
    environment = os.environ | {"RAY_ADDRESS": "127.0.0.1:1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert "UsageError: --engine ray: RAY_ADDRESS=127.0.0.1:1: no Ray cluster answers there" in done.stderr


@pytest.mark.slow
def test_the_command_runs_real_cells_on_a_cluster_that_is_there(cluster, tmp_path):
    """RAY_ADDRESS says which; the scores are those of the local engine."""
    command = [
        str(Path(sys.executable).parent / "archbench"),
        "run",
        "-a",
        "avg_vectors,naive_bayes",
        "-t",
        "sst2",
        "--max-train",
        "200",
    ]
    environment = os.environ | {"RAY_ADDRESS": cluster.address_info["gcs_address"]}

    def start(name: str) -> subprocess.Popen[str]:
        where = ["--engine", name, "--results", str(tmp_path / name), "--mlflow", "none"]
        return subprocess.Popen(
            [*command, *where], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    scores = {}
    for name, process in {name: start(name) for name in ("ray", "local")}.items():
        told, _ = process.communicate(timeout=200)
        assert process.returncode == 0, told
        found = [json.loads(path.read_text()) for path in (tmp_path / name / "records").rglob("*.json")]
        scores[name] = {record["architecture"]: record["scores"] for record in found}
        assert (
            len(list((tmp_path / name).rglob("*.predictions.json.xz")))
            == len(list((tmp_path / name).rglob("*.outcomes.json.gz")))
            == 2
        )
    assert set(scores["ray"]) == {"avg_vectors", "naive_bayes"}
    assert scores["ray"] == scores["local"]

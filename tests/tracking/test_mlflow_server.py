"""What MLflow's own servers tell of the records: ``archbench ui``, a remote tracking server,
PostgreSQL. All of them are real."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from harness.records import Cell, Record, Store
from harness.tracking.database import default_uri, with_driver
from harness.tracking.mlflow_runs import sync
from tests.browser.conftest import NAMES
from tests.support.servers import answers, free_port

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT),
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}
CELL = Cell("kim_cnn_rand", 1, "sst2", 1, "mini", "equal", {"maps": 100, "training": {"lr": 0.001}}, 0)
COMMANDS = ("archbench run -a 'kim*' -t '*' --seeds 0,1,2", "archbench run -a bilstm -t sst2")
STATUSES = ["FINISHED", "KILLED", "FAILED"]
RUN_STATUS = {"ok": "FINISHED", "skipped": "FINISHED", "oom": "FAILED", "failed": "FAILED", "interrupted": "KILLED"}


def fill(store: Store) -> list[Record]:
    """Three seeds on two tasks, and cells that ended in other ways, from two commands."""
    made = []
    for task in ("sst2", "wikiqa"):
        for seed in range(3):
            cell = dataclasses.replace(CELL, task=task, seed=seed)
            curve = [
                {"epoch": e, "train_loss": 1 / (e + seed), "accuracy": 0.5 + e / 10, "seconds": 2.0} for e in (1, 2)
            ]
            speed = {"train_examples_per_second": 100.0 + seed, "train_tokens_per_second": 900.0, "latency_ms_p50": 1.5}
            fields = dict(
                scores={"test": {"accuracy": (0.8, 0.82, 0.84)[seed]}},
                speed=speed,
                memory={"peak_rss_mib": 321.5},
                training={"curve": curve},
                main_metric="accuracy",
            )
            made.append(Record.skeleton(cell, "ok", command=COMMANDS[0], seconds={"total": 5.0}, **fields))
            made[-1].predictions = store.save_predictions(cell, ["a"], ["x"])
    error = {"type": "RuntimeError", "message": "no shape fits <b>here</b>", "log": None}
    for seed, status in enumerate(("failed", "oom", "interrupted", "skipped")):
        cell = dataclasses.replace(CELL, architecture="bilstm", seed=seed)
        made.append(Record.skeleton(cell, status, command=COMMANDS[1], error=error))
    for record in made:
        store.write(record)
    return made


def runs(client: MlflowClient) -> dict[str, Run]:
    """Every run that is not deleted, by id."""
    experiments = [e.experiment_id for e in client.search_experiments()]
    return {run.info.run_id: run for run in client.search_runs(experiments, max_results=1000)}


def compare(client: MlflowClient, records: list[Record]) -> None:
    """Fails unless the server tells exactly what ``records`` say."""
    names = {e.experiment_id: e.name for e in client.search_experiments() if e.name != "Default"}
    assert sorted(names.values()) == sorted({record.task for record in records})
    found = runs(client)
    cells = {run.data.tags["record_key"]: run for run in found.values() if "record_key" in run.data.tags}
    means = {run.data.tags["row"]: run for run in found.values() if "record_key" not in run.data.tags}
    assert set(cells) == {record.key for record in records}
    assert set(means) == {record.cell.row for record in records if record.status != "skipped"}
    for record in records:
        run = cells[record.key]
        tags = run.data.tags
        assert names[run.info.experiment_id] == record.task
        assert run.info.run_name == f"{record.architecture} · mini · {record.protocol} · full · {record.seed}"
        assert run.info.status == RUN_STATUS[record.status]
        assert {name: tags[name] for name in ("family", "kind", "tier", "status")} == {
            "family": "convolutional" if record.architecture == "kim_cnn_rand" else "recurrent",
            "kind": "text" if record.architecture == "kim_cnn_rand" else "seq",
            "tier": "mini",
            "status": record.status,
        }
        assert tags.get("error") == (f"{record.error['type']}: {record.error['message']}" if record.error else None)
        note = tags["mlflow.note.content"]
        assert f"`records/{record.task}/{record.architecture}/{record.key}.json`" in note
        assert f"#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}/artifacts/{record.key}.json" in note
        assert record.command in note
        if record.status != "skipped":
            assert tags["mlflow.parentRunId"] == means[record.cell.row].info.run_id
        for name, value in [*record.speed.items(), *record.memory.items()]:
            kind = "speed" if name in record.speed else "memory"
            assert run.data.metrics[f"system/{kind}_{name}"] == value
        for name, shown in (("train_loss", "train/loss"), ("accuracy", "dev/accuracy")) if record.training else ():
            points = client.get_metric_history(run.info.run_id, shown)
            assert [(p.step, p.value) for p in points] == [
                (row["epoch"], row[name]) for row in record.training["curve"]
            ]
    for row, mean in means.items():
        below = [record for record in records if record.cell.row == row]
        scores = [record.scores["test"]["accuracy"] for record in below if record.status == "ok"]
        assert mean.data.metrics.get("test/accuracy") == (pytest.approx(sum(scores) / len(scores)) if scores else None)
        assert mean.info.status == max((RUN_STATUS[record.status] for record in below), key=STATUSES.index)


def archbench(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "harness.cli", *arguments]


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen]:
    """A tracking server as another machine would run it; started first, so that it comes up while
    others work."""
    folder, port = tmp_path_factory.mktemp("remote"), free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += [
        "--backend-store-uri",
        f"sqlite:///{folder}/runs.db",
        "--artifacts-destination",
        str(folder / "artifacts"),
    ]
    server = subprocess.Popen(
        command, env=ENVIRONMENT, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    server.address = f"http://127.0.0.1:{port}"
    yield server
    server.terminate()
    server.wait(30)


@pytest.fixture(scope="module")
def store(remote: subprocess.Popen, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def records(store: Store) -> list[Record]:
    return fill(store)


@pytest.fixture(scope="module")
def said(records: list[Record], store: Store) -> Iterator[list[str]]:
    """What ``archbench ui`` prints, until it says that it is ready; it ends without leaving its
    server behind."""
    sync(store, default_uri(store.folder))
    port = free_port()
    command = archbench("ui", "--results", str(store.folder), "--port", str(port))
    with subprocess.Popen(
        command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        lines = []
        for line in server.stdout:
            lines.append(line.strip())
            if line.startswith("Ctrl-C"):
                break
        yield lines
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, "the server outlived the command"


@pytest.fixture(scope="module")
def ui(said: list[str]) -> str:
    return said[0].partition(": ")[2].partition("/#/")[0]


def test_ui_prints_the_run_table_of_every_task_once_it_answers(said: list[str], ui: str):
    """Whoever clicks the printed address must land in the runs, not on an error or an empty front
    page."""
    by_name = {e.name: e.experiment_id for e in MlflowClient(ui).search_experiments()}
    assert said == [
        *(
            f"{task}: {ui}/#/experiments/{by_name[task]}/runs?workflowType=machine_learning&viewStateShareKey=archbench"
            for task in ("sst2", "wikiqa")
        ),
        "Ctrl-C ends it",
    ]
    assert ui.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(f"{ui}/", timeout=10) as page:
        assert b"<title>MLflow</title>" in page.read()


LOOK = """
import sys
from playwright.sync_api import sync_playwright
program, address = sys.argv[1:]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox", "--disable-gpu"])
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    page.goto(address)
    for score in ("0.84", "0.82", "0.8"):
        cell = page.get_by_text(score, exact=True).first
        cell.wait_for(timeout=100_000)
        print(cell.bounding_box()["y"])
"""


@pytest.mark.slow
def test_the_first_page_shows_the_best_score_first(said: list[str]):
    """Without a view MLflow opens on a list of folded runs and no number, in a mode for chats."""
    pytest.importorskip("playwright", reason="pip install playwright to look at MLflow's pages")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("apt-get install chromium to look at MLflow's pages")
    # In a process of its own: MLflow leaves an event loop in this one.
    command = [sys.executable, "-c", LOOK, program, said[0].partition(": ")[2]]
    seen = subprocess.run(command, capture_output=True, text=True, check=False)
    assert seen.returncode == 0, seen.stderr
    places = [float(line) for line in seen.stdout.split()]
    assert len(places) == 3 and places == sorted(places)


def test_ui_tells_what_the_records_say(ui: str, records: list[Record]):
    compare(MlflowClient(ui), records)


def test_the_record_behind_a_run_is_served(ui: str, records: list[Record]):
    """The link of a description leads to this file."""
    run = next(run for run in runs(MlflowClient(ui)).values() if run.data.tags.get("record_key") == records[0].key)
    with urllib.request.urlopen(
        f"{ui}/get-artifact?run_uuid={run.info.run_id}&path={records[0].key}.json", timeout=10
    ) as answer:
        assert json.load(answer) == json.loads(records[0].to_json())


def test_sync_to_a_remote_server_doubles_nothing_and_follows_the_records(
    remote: subprocess.Popen, records: list[Record], tmp_path: Path
):
    """A team's server: sync again, after a record is gone, and after one is written anew."""
    address = answers(remote.address, remote)
    store = Store(tmp_path)
    mine = fill(store)
    command = archbench("sync", "--results", str(tmp_path), "--mlflow", address)
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{address}: 10 runs added, 0 replaced, 0 up to date\n"), done.stderr
    client = MlflowClient(address)
    compare(client, mine)
    before = set(runs(client))
    assert sync(store, address) == (0, 10, 0)
    assert set(runs(client)) == before

    own = client.create_run(client.get_experiment_by_name("sst2").experiment_id, run_name="a user's own")
    store.path(mine[0]).unlink()
    mine[1].scores = {"test": {"accuracy": 0.9}}
    store.write(mine[1])
    with pytest.warns(UserWarning, match="1 runs removed"):
        assert sync(store, address) == (0, 8, 1)
    client.delete_run(own.info.run_id)  # it was still there: a deleted run cannot be deleted
    compare(client, mine[1:])


@pytest.fixture
def postgresql() -> Iterator[str]:
    """URI of a fresh PostgreSQL of Debian's packages; it refuses to run as root, so root lends it
    another user."""
    pytest.importorskip("psycopg2", reason="pip install 'archbench[postgres]' to test the PostgreSQL store")
    folders = [
        *(Path(found).parent for found in [shutil.which("initdb")] if found),
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
    ]
    binaries = next(
        (folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None
    )
    if binaries is None:
        pytest.skip("apt-get install postgresql to test the PostgreSQL store")
    folder, port, user = tempfile.mkdtemp(prefix="archbench-pg-"), free_port(), []
    if os.getuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("PostgreSQL does not run as root: setpriv (util-linux) is needed to test the PostgreSQL store")
        user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        shutil.chown(folder, "nobody", "nogroup")

    def call(program: str, *arguments: str) -> None:
        subprocess.run(
            [*user, str(binaries / program), *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=60
        )

    call("initdb", "-D", f"{folder}/data", "-U", "archbench", "--auth=trust", "--no-sync", "-E", "UTF8")
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
    call("pg_ctl", "start", "-w", "-D", f"{folder}/data", "-o", options, "-l", f"{folder}/log")
    try:
        yield f"postgresql://archbench@127.0.0.1:{port}/postgres"
    finally:
        call("pg_ctl", "stop", "-D", f"{folder}/data", "-m", "immediate")
        shutil.rmtree(folder)


def test_postgresql_holds_what_the_records_say(
    postgresql: str, records: list[Record], store: Store, monkeypatch, tmp_path: Path
):
    """MLflow keeps its artifacts beside the current directory when the store is a database
    elsewhere."""
    monkeypatch.chdir(tmp_path)
    assert sync(store, postgresql) == (10, 0, 0)
    client = MlflowClient(with_driver(postgresql))
    compare(client, records)
    before = set(runs(client))
    assert sync(store, postgresql) == (0, 10, 0)
    assert set(runs(client)) == before

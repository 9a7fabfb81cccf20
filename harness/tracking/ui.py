"""MLflow's own pages over a results folder, on this machine only (``archbench ui``)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.records import Store
from harness.tracking.database import VIEW, TrackingError, default_uri

HOST = "127.0.0.1"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy leads to a server of this machine
WORD_S = 15.0  # seconds after which the user hears again that the server is starting: it imports much


def serve(results: Path, port: int, tell: Callable[[str], object], browse: bool = False) -> int:
    """Start the server, print the address of each task's run table once it answers, and wait.

    Where MLflow has no database yet, or one that a call which was cut off left unfinished, it is
    made from the records. ``tell`` is called with messages. ``browse`` opens the first address in
    the user's browser. Returns the exit code of the server.
    """
    with socket.socket() as probe:
        if probe.connect_ex((HOST, port)) == 0:
            raise UsageError(f"--port {port}: port is in use; choose another")
    uri = default_uri(results)
    unfinished = results / "mlflow.db.unfinished"
    if not (results / "mlflow.db").is_file() or unfinished.exists():
        _make_database(results, uri, unfinished, tell)
    options = {
        "--backend-store-uri": uri,
        "--default-artifact-root": (results / "mlartifacts").as_uri(),
        "--host": HOST,
        "--port": str(port),
        "--workers": "1",
        "--uvicorn-opts": "--log-level=warning",
    }
    command = [sys.executable, "-m", "mlflow", "server", "--no-serve-artifacts"]
    command += [word for option in options.items() for word in option]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: the server must not outlive this process
    # Job execution would start eight more processes and 2 GB for nothing.
    settings = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    # Its messages go to standard error (2), so that the addresses are the only output.
    server = subprocess.Popen(command, env=os.environ | settings, stdout=2)
    try:
        address = f"http://{HOST}:{port}"
        tables = {each["name"]: f"{address}/#/{_runs(each)}" for each in _experiments(address, server, tell)}
        for task, table in tables.items():
            print(f"{task}: {table}", flush=True)
        print("Ctrl-C ends it", flush=True)
        if browse and tables:
            webbrowser.open(next(iter(tables.values())))
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        server.terminate()
        server.wait()


def _make_database(results: Path, uri: str, unfinished: Path, tell: Callable[[str], object]) -> None:
    """Log the records of a folder that MLflow does not know; the file ``unfinished`` is there until
    all of them are."""
    from harness.tracking.mlflow_runs import sync

    store = Store(results)
    if next(store.all(), None) is None:
        raise UsageError(f"{results}: no records; `archbench run` makes some (or name another folder: --results)")
    tell("MLflow does not know these results yet; their records are logged first, some ten in a second")
    try:
        unfinished.touch()
        sync(store, uri)
        unfinished.unlink(missing_ok=True)
    except (TrackingError, OSError) as error:
        raise UsageError(str(error)) from None


def _runs(experiment: dict[str, Any]) -> str:
    """Address of the runs of an experiment, in its view if it has one."""
    has_view = any(tag["key"] == VIEW for tag in experiment.get("tags", []))
    view = f"&viewStateShareKey={VIEW.rpartition('.')[2]}" if has_view else ""
    # Without the kind of work MLflow shows what belongs to chat models.
    return f"experiments/{experiment['experiment_id']}/runs?workflowType=machine_learning{view}"


def _experiments(address: str, server: subprocess.Popen[bytes], tell: Callable[[str], object]) -> list[dict[str, Any]]:
    """The experiments of the server (one per task), sorted by name; waits for its answer as long as
    it lives."""
    began = said = time.monotonic()
    while server.poll() is None:
        try:
            with DIRECT.open(f"{address}/api/2.0/mlflow/experiments/search?max_results=1000", timeout=5) as answer:
                experiments = json.load(answer).get("experiments", [])
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
        else:
            return sorted((e for e in experiments if e["name"] != "Default"), key=lambda e: e["name"])
        if time.monotonic() - said > WORD_S:
            said = time.monotonic()
            tell(f"MLflow's server is starting, {said - began:.0f} s so far; Ctrl-C ends it")
    raise UsageError(f"mlflow server ended with exit code {server.returncode} before it answered")

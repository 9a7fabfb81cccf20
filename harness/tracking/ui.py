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
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.tracking.database import VIEW, default_uri

STARTUP_TIMEOUT_S = 60.0  # the server imports much before it answers
HOST = "127.0.0.1"


def serve(results: Path, port: int) -> int:
    """Start the server, print the address of each task's run table once it answers, and wait.

    Returns the exit code of the server.
    """
    uri = default_uri(results)
    if not (results / "mlflow.db").is_file():
        raise UsageError(
            f"{results / 'mlflow.db'}: no such file; `archbench run` or `archbench sync` creates it"
            " (or choose another folder with --results)"
        )
    with socket.socket() as probe:
        if probe.connect_ex((HOST, port)) == 0:
            raise UsageError(f"--port {port}: port is in use; choose another")
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
        for experiment in _experiments(address, server):
            print(f"{experiment['name']}: {address}/#/{_runs(experiment)}", flush=True)
        print("Ctrl-C ends it", flush=True)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        server.terminate()
        server.wait()


def _runs(experiment: dict[str, Any]) -> str:
    """Address of the runs of an experiment, in its view if it has one."""
    has_view = any(tag["key"] == VIEW for tag in experiment.get("tags", []))
    view = f"?viewStateShareKey={VIEW.rpartition('.')[2]}" if has_view else ""
    return f"experiments/{experiment['experiment_id']}/runs{view}"


def _experiments(address: str, server: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """The experiments of the server (one per task), sorted by name; waits until it answers."""
    began = time.monotonic()
    while time.monotonic() - began < STARTUP_TIMEOUT_S:
        if server.poll() is not None:
            raise UsageError(f"mlflow server ended with exit code {server.returncode} before it answered")
        try:
            with urllib.request.urlopen(
                f"{address}/api/2.0/mlflow/experiments/search?max_results=1000", timeout=5
            ) as answer:
                experiments = json.load(answer).get("experiments", [])
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
        else:
            return sorted((e for e in experiments if e["name"] != "Default"), key=lambda e: e["name"])
    raise UsageError(f"mlflow server did not answer at {address} within {STARTUP_TIMEOUT_S:.0f} s")

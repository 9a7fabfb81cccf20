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
from harness.tracking.mlflow_runs import default_uri

PATIENCE = 60.0  # seconds for the server to answer: it imports much
HOST = "127.0.0.1"


def serve(results: Path, port: int) -> int:
    """Start the server, print the address of each task's run table once it answers, and wait for
    it; returns its exit code."""
    uri = default_uri(results)
    if not (results / "mlflow.db").is_file():
        raise UsageError(
            f"{results / 'mlflow.db'}: no such file; `archbench run` or `archbench sync` makes it (or give --results)"
        )
    with socket.socket() as probe:
        if probe.connect_ex((HOST, port)) == 0:
            raise UsageError(f"--port {port}: something answers there already; give another port")
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--backend-store-uri",
        uri,
        "--host",
        HOST,
        "--port",
        str(port),
    ]
    command += [
        "--uvicorn-opts",
        "--log-level=warning",
        "--default-artifact-root",
        (results / "mlartifacts").as_uri(),
        "--no-serve-artifacts",
        "--workers",
        "1",
    ]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: the server must not outlive this process
    # Job execution would start eight more processes and 2 GB for nothing.
    settings = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    server = subprocess.Popen(
        command, env=os.environ | settings, stdout=2
    )  # its own messages go to standard error, ours are the output
    try:
        address = f"http://{HOST}:{port}"
        for experiment in _experiments(address, server):
            print(f"{experiment['name']}: {address}/#/experiments/{experiment['experiment_id']}/runs", flush=True)
        print("Ctrl-C ends it", flush=True)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        server.terminate()
        server.wait()


def _experiments(address: str, server: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """The experiments (one per task) that the server knows, as soon as it answers."""
    begin = time.monotonic()
    while time.monotonic() - begin < PATIENCE:
        if server.poll() is not None:
            raise UsageError(f"mlflow ended at once with exit code {server.returncode}")
        try:
            with urllib.request.urlopen(
                f"{address}/api/2.0/mlflow/experiments/search?max_results=1000", timeout=5
            ) as answer:
                found = json.load(answer).get("experiments", [])
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
        else:
            return sorted((e for e in found if e["name"] != "Default"), key=lambda e: e["name"])
    raise UsageError(f"mlflow did not answer at {address} within {PATIENCE:.0f} s")

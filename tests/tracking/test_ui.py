"""``archbench ui`` before MLflow answers: the database that it makes, and the wait for the
server."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import UsageError
from harness.records import Store
from harness.tracking import TrackingError, mlflow_runs, ui
from tests.support.made_records import record
from tests.support.servers import free_port


class Started(Exception):
    """The server would run now."""


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``archbench ui`` over a folder with a record, up to the start of the server."""

    def start(*_, **__):
        raise Started

    Store(tmp_path).write(record(score=0.8))
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(ui.signal, "signal", lambda *_: None)
    return lambda: ui.serve(tmp_path, free_port(), lambda message: None)


def test_a_database_that_was_not_finished_is_finished_by_the_next_call(serve, tmp_path: Path, monkeypatch):
    """After Ctrl-C the pages showed a part of the records, and nothing told of the others."""
    asked: list[str] = []

    def sync(store: Store, uri: str) -> None:
        (tmp_path / "mlflow.db").touch()
        asked.append(uri)
        if len(asked) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(mlflow_runs, "sync", sync)
    with pytest.raises(KeyboardInterrupt):
        serve()
    for _ in range(2):
        with pytest.raises(Started):
            serve()
    assert len(asked) == 2, "once it is finished it is left alone"


def test_a_database_that_cannot_be_used_is_a_message(serve, monkeypatch):
    """It was a traceback."""

    def sync(store: Store, uri: str) -> None:
        raise TrackingError(f"MLflow at {uri} could not be used: the disk is full")

    monkeypatch.setattr(mlflow_runs, "sync", sync)
    with pytest.raises(UsageError, match=r"MLflow at .*mlflow\.db could not be used: the disk is full"):
        serve()


class Answer(BaseHTTPRequestHandler):
    """MLflow's list of experiments."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"experiments": [{"name": "sst2", "experiment_id": "1"}]}).encode())

    def log_message(self, *_) -> None: ...


def test_a_proxy_is_not_asked_for_a_server_of_this_machine(monkeypatch):
    """In companies and universities the variable is set: the server answered at once, and was said
    to be starting for ever."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(urllib.request, "_opener", None)  # what Python made of the variables before
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        alive = iter([None, None, 1])
        process = SimpleNamespace(poll=lambda: next(alive), returncode=1)
        found = ui._experiments(f"http://127.0.0.1:{server.server_port}", process, pytest.fail)
    assert found == [{"name": "sst2", "experiment_id": "1"}]

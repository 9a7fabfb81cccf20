"""A password that is given for MLflow is seen nowhere: not in records, pages, MLflow or messages,
nor in the list of processes."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest
from mlflow.tracking import MlflowClient

import leaderboard
from harness.cli.app import main
from harness.records import Cell, Record, Store, portable_command, portable_text, without_passwords
from harness.running.engines import local
from harness.running.engines.loop import failure_record
from harness.tracking import Tracker, TrackingError, connection, default_uri, shown_uri, sync
from harness.tracking.connection import Connection
from harness.tracking.database import without_secrets
from tests.support.fake_plugins import PLUGIN
from tests.support.passwords import FIRST, SECOND, URIS


def leaks(text: str) -> bool:
    return FIRST in text or SECOND in text


def files_with_a_password(folder: Path) -> list[Path]:
    secrets = FIRST.encode(), SECOND.encode()
    return [p for p in folder.rglob("*") if p.is_file() and any(secret in p.read_bytes() for secret in secrets)]


@pytest.mark.parametrize("uri", URIS.values(), ids=URIS)
def test_no_text_shows_it(uri: str):
    """Whoever prints or stores a text has it from a driver, a plugin or a command line."""
    for text in (f"cannot reach {uri}: refused", f"'{uri}'", f"{uri}\n{uri}", f'connect("{uri}")'):
        assert not leaks(without_passwords(text)), text
        assert not leaks(portable_text(text)), text
        assert not leaks(without_secrets(text, uri)), text
    for arguments in (["--mlflow", uri], [f"--mlflow={uri}"], ["-o", f"x.address={uri}"]):
        assert not leaks(portable_command(["archbench", "run", *arguments])), arguments
    assert not leaks(shown_uri(uri))
    for piece in re.findall(rf"\w*(?:{FIRST}|{SECOND})\w*", unquote(uri)):
        assert not leaks(without_secrets(f"invalid literal for int(): '{piece}'; host '{piece}@127.0.0.1'", uri))


def test_addresses_without_a_password_are_shown_whole():
    """A message that does not name the server helps nobody."""
    for uri in ("http://127.0.0.1:9", "https://db.example.org:5000/mlflow", "sqlite:////a folder/b@c/mlflow.db"):
        assert shown_uri(uri) == uri
        assert without_secrets(f"no answer from {uri}", uri) == f"no answer from {uri}"
    assert shown_uri("postgresql://me:secret@db:5432/runs") == "postgresql://me:***@db:5432/runs"
    assert shown_uri("https://db/runs?a=b&c=d") == "https://db/runs?a=***&c=***"


class Unwilling:
    """A tracker whose libraries quote the address in whole and in pieces."""

    def __init__(self, uri: str, folder: Path):
        self.uri = uri
        with Connection.repairable(self):
            raise ValueError(f"could not translate {uri.split(':')[-1]!r}, the end of {uri}")

    _reason = Connection._reason


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin whose cells fail in this process, with a message that quotes the address."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    monkeypatch.delenv("ARCHBENCH_MLFLOW", raising=False)

    def run(cells: Sequence[Cell], settings, *, afterwards, **_: object) -> list[Record]:
        uri = os.environ.get("ARCHBENCH_MLFLOW") or sys.argv[sys.argv.index("--mlflow") + 1]
        records = [failure_record(cell, settings, "failed", "OSError", f"no {uri}") for cell in cells]
        for record in records:
            Store(settings.results).write(record)
            afterwards(record)
        return records

    monkeypatch.setattr(local, "run", run)
    monkeypatch.setattr("harness.tracking.mirror.Tracker", Unwilling)
    monkeypatch.setattr(connection, "_SETTINGS", {})
    file = tmp_path / "toys.py"
    file.write_text(PLUGIN)
    return file


def test_nothing_that_a_run_writes_or_prints_shows_it(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    """Records and pages are committed and published."""
    results = tmp_path / "results"
    given: list[list[str]] = [["--mlflow", uri] for uri in URIS.values()]
    for seed, option in enumerate([*given, []]):
        if not option:
            monkeypatch.setenv("ARCHBENCH_MLFLOW", URIS["plain"])
        arguments = ["run", "-a", "toy_text", "-t", "toy_topic", "--plugin", str(toys), "--results", str(results)]
        arguments += ["--seeds", str(seed), *option]
        monkeypatch.setattr(sys, "argv", ["archbench", *arguments])
        with pytest.raises(SystemExit):
            main(arguments)
        said = capfd.readouterr()
        assert "archbench sync" in said.err, f"the mirror was tried: {option}"
        assert not leaks(said.out + said.err), option
    board = leaderboard.read(results)
    leaderboard.write(board, results / "leaderboard")
    said = capfd.readouterr()
    assert len(board.records) == len(URIS) + 1
    assert not leaks(said.out + said.err)
    assert files_with_a_password(results) == []


@pytest.mark.parametrize("uri", URIS.values(), ids=URIS)
def test_a_tracker_that_cannot_connect_does_not_tell_it(uri: str, monkeypatch: pytest.MonkeyPatch):
    """Each driver has its own words for an address that it cannot read or reach."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrackingError) as raised:
        Tracker(uri)
    assert not leaks(str(raised.value))
    assert raised.value.__suppress_context__, "a traceback would show the words of the driver"


def test_mlflow_holds_neither_passwords_nor_the_name_of_the_machine(tmp_path: Path):
    """Its database and the copies of the records in it are shared, too."""
    store = Store(tmp_path)
    cell = Cell("dan", 1, "sst2", 1, "mini", "smoke", {}, 0)
    error = {"type": "E", "message": "\n".join(f"no {uri}" for uri in URIS.values()), "log": None}
    store.write(Record.skeleton(cell, "failed", command=f"archbench run --mlflow '{URIS['plain']}'", error=error))
    assert sync(store, default_uri(tmp_path)) == (1, 0, 0)
    assert files_with_a_password(tmp_path) == []
    client = MlflowClient(tracking_uri=default_uri(tmp_path))
    (run,) = client.search_runs([client.get_experiment_by_name("sst2").experiment_id], "tags.record_key != ''")
    assert str(tmp_path) not in str(run.data.tags) and platform.node() not in run.data.tags["results"]


def test_the_help_names_the_variable():
    """Options of a running program are seen by every user of the machine, and variables are not."""
    program = "from harness.cli import main; main(['run', '--help'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "ARCHBENCH_MLFLOW" in done.stdout

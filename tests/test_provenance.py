"""Records are shared: what they say of their origin names no folder of the machine, no user and no
password."""

from __future__ import annotations

import getpass
import json
import shlex
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from harness.records import Record, environment, portable_command, portable_text, provenance, without_passwords
from harness.running import worker
from harness.running.engines.loop import failure_record

HOME = Path("/somewhere/people/alice")
CWD = HOME / "a project"
DATA = Path("/somewhere/sets")


@pytest.fixture(autouse=True)
def alice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with a home folder, whoever runs the tests."""
    monkeypatch.setenv("HOME", str(HOME))
    monkeypatch.setattr(getpass, "getuser", lambda: "alice")


@pytest.mark.parametrize(
    ("arguments", "stored"),
    [
        (["-a", "kim_cnn_*", "-t", "sst2"], "-a 'kim_cnn_*' -t sst2"),
        (["--data-dir", str(DATA)], "--data-dir $ARCHBENCH_DATA"),
        (["--data-dir=../../../sets"], "--data-dir=$ARCHBENCH_DATA"),
        (["--vectors", f"{DATA}/vectors/glove 6B.txt"], "--vectors $ARCHBENCH_DATA'/vectors/glove 6B.txt'"),
        (["--results", f"{CWD}/out/results"], "--results out/results"),
        (["--results", str(CWD)], "--results ."),
        (["--results", "out/results"], "--results out/results"),
        (["--results", f"{HOME}/results"], "--results results"),
        (["--results=/results"], "--results=results"),
        (["--results", "../../alice/results"], "--results '../../$USER/results'"),
        (["--plugin", "/somewhere/else/my plugins/one.py"], "--plugin one.py"),
        (["-o", f"bert.weights={HOME}/models/base"], "-o bert.weights=base"),
        (["-o", f"bert.files={HOME}/a.txt,{DATA}/b.txt"], "-o bert.files=a.txt,$ARCHBENCH_DATA/b.txt"),
        (["-a", "alice"], "-a alice"),
        (["--mlflow", "none"], "--mlflow none"),
        (["--mlflow", "postgresql://alice:se cret@db/runs", "--seeds", "0"], "--mlflow URI --seeds 0"),
        (["--mlflow=https://db/runs?access_token=secret"], "--mlflow=URI"),
        (["-o", "x.url=https://bob:secret@db/runs"], "-o 'x.url=https://***@db/runs'"),
    ],
)
def test_a_command_names_nothing_of_the_machine(arguments: list[str], stored: str):
    """Commands stand in every committed record and on the pages; whoever repeats one needs its
    options, not another's folders."""
    command = portable_command(["/somewhere/bin/archbench", "run", *arguments], DATA, CWD)
    assert command == f"archbench run {stored}"
    assert shlex.split(command)


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ("No such file: '{results}/records/a.json'", "No such file: '$RESULTS/records/a.json'"),
        ("{data}-old/a.json is no record", "a.json is no record"),
        ("row 3 of {data}/sst/train.tsv: no label", "row 3 of $ARCHBENCH_DATA/sst/train.tsv: no label"),
        ('File "{code}/harness/x.py", line 3, in f', 'File "$ARCHBENCH/harness/x.py", line 3, in f'),
        ('File "/somewhere/lib/python3/y.py", line 3', 'File "y.py", line 3'),
        ("no space left in {tmp}/x-1", "no space left in $TMPDIR/x-1"),
        ("{tmp}/pytest-of-alice/x", "$TMPDIR/pytest-of-$USER/x"),
        ("{home}/.cache/model.bin is damaged", "~/.cache/model.bin is damaged"),
        ("'/somewhere/my own/file name.txt': not found", "'file name.txt': not found"),
        ("PYTHONPATH=/somewhere/a:/somewhere/b", "PYTHONPATH=a:b"),
        ("file:///somewhere/a/b.txt, sqlite:////somewhere/a/runs.db", "file://b.txt, sqlite:///runs.db"),
        ("no access for user alice, alice@db", "no access for user $USER, $USER@db"),
        ("postgresql://bob:secret@db/runs?password=secret", "postgresql://***@db/runs?password=***"),
        ("DSN: host=db password=secret", "DSN: host=db password=***"),
    ],
)
def test_a_message_names_nothing_of_the_machine(message: str, stored: str):
    """Error messages and ends of logs are stored as libraries wrote them, with paths of all
    kinds."""
    results = CWD / "results"
    names = {"results": results, "data": DATA, "home": HOME, "code": provenance._ROOT, "tmp": tempfile.gettempdir()}
    text = portable_text(message.format(**names), results, DATA)
    assert text == stored
    assert portable_text(text, results, DATA) == text


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and/or 5x6)",
        "10 s/step, 3 / 4 of 0.5 MiB/s; see https://example.org/a/b#c and ../data/x or ./y",
        "used 900 MiB of memory, allowed are 800 (--memory-limit)",
        "alice is no hyperparameter of dan",
    ],
)
def test_other_messages_stay_as_they_are(message: str):
    """A message that was mangled does not help who looks for the fault."""
    assert portable_text(message, CWD / "results", DATA) == message


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("postgresql://me:secret@db/runs", "postgresql://me:***@db/runs"),
        ("postgresql://me:se@cret@db/runs", "postgresql://me:***@db/runs"),
        ("postgresql://me:se/cret@db/runs", "postgresql://me:***@db/runs"),
        ("postgresql://me:se cret@db/runs", "postgresql://me:***@db/runs"),
        ("postgresql://db/runs?user=me&password=secret", "postgresql://db/runs?user=me&password=***"),
        ("https://db/runs?api_key=secret&x=1", "https://db/runs?api_key=***&x=1"),
        ("http://127.0.0.1:5000/x", "http://127.0.0.1:5000/x"),
        ("cannot reach http://db:5000, ask me@example.org", "cannot reach http://db:5000, ask me@example.org"),
    ],
)
def test_addresses_are_shown_without_passwords(uri: str, shown: str):
    """Every form in which a driver takes a password, since messages are printed and committed."""
    assert without_passwords(uri) == shown


def test_root_of_the_file_system_is_no_folder_with_a_name(monkeypatch: pytest.MonkeyPatch):
    """In a container that works in / with HOME=/, every absolute path would count as known and
    stay."""
    monkeypatch.setenv("HOME", "/")
    assert portable_text("no file /somewhere/else/x") == "no file x"
    assert portable_command(["archbench", "/somewhere/else/x"], cwd=Path("/")) == "archbench x"


def test_a_user_without_a_name_costs_no_record(monkeypatch: pytest.MonkeyPatch):
    """Containers run under numbers that no file of users holds."""

    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert portable_text("no file /somewhere/else/x") == "no file x"


def test_records_of_the_parent_and_of_the_cell_are_portable(make_cell, make_settings, monkeypatch, capfd):
    """Both write error messages: the cell's process its own, the parent's what a dead one
    printed."""
    settings = make_settings(data_dir=DATA)
    message = f"'{settings.results}/work/x' and {DATA}/y and {HOME}/z"
    stored = "'$RESULTS/work/x' and $ARCHBENCH_DATA/y and ~/z"
    assert failure_record(make_cell(), settings, "failed", "exit code 1", message).error["message"] == stored

    def broken(*_: object) -> None:
        raise OSError(message)

    monkeypatch.setattr(worker, "_train", broken)
    assert worker.run_cell(make_cell(), settings).error["message"] == stored
    assert message in capfd.readouterr().err, "the log, which stays on the machine, has the whole of it"


def test_a_skeleton_is_portable_by_itself(make_cell, monkeypatch):
    """Whoever makes a record without the command line (a test, a notebook) need not think of it."""
    error = {"type": "skipped", "message": f"{HOME}/plugin.py says no", "log": None}
    record = Record.skeleton(make_cell(), "skipped", command=f"python {HOME}/grid.py", error=error)
    assert (record.command, record.error["message"]) == ("python ~/grid.py", "~/plugin.py says no")
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/pytest", "-x", f"{HOME}/test_x.py"])
    assert Record.skeleton(make_cell(), "ok").command == "pytest -x test_x.py"


def test_the_environment_names_neither_machine_nor_user(monkeypatch):
    """Host names of a company's machines are not for everybody."""
    stored = json.dumps(environment())
    assert socket.gethostname() not in stored.split('"')
    assert "alice" not in stored and str(Path.home()) not in stored

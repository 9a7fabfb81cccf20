"""The check before the first cell: what is wrong with data and metrics is told before anything
runs, and nothing of it becomes a record."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness import cli, registry
from harness.errors import DataError, RegistryError
from harness.records import Store
from harness.running import preflight
from harness.running.engines import local
from harness.running.preflight import Preflight, Reading
from harness.running.request import Request
from harness.running.session import Session
from tests.support.made_records import record

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = """
import json, os, signal, sys, time
from pathlib import Path
from harness.registry import register, register_task
from harness.task import Task


@register("stub", name="Stub", kind="fit", paper="none", source="test", year=2026)
class Stub:
    @classmethod
    def reason_to_skip(cls, task, hyperparameters):
        return None

    @classmethod
    def reader_and_view(cls, task, hyperparameters):
        return None, None


class Files(Task):
    def local(self, folder, split):
        file = folder / self.entry.id / f"{split}.json"
        (Path(__file__).parent / "readers.log").open("a").write(f"{split} {os.getpid()}\\n")
        print("this is no answer")
        text = file.read_text()
        if text.startswith("CODE "):
            exec(text[5:])
        return json.loads(text)

    def mini(self, split):
        return [{"id": split, "text": "a film", "label": 3 if self.entry.id == "set_b" else "good"}]


@register_task("set_a", name="A", type="classify", metrics=("accuracy",), main_metric="accuracy",
               sizes={"train": 4, "dev": 2, "test": 3}, epochs=1, protocol="-")
class SetA(Files):
    pass


@register_task("set_b", name="B", type="classify", metrics=("accuracy",), main_metric="accuracy",
               sizes={"train": 4}, epochs=1, protocol="-")
class SetB(Files):
    pass
"""


def rows(count: int, **changed: Any) -> list[dict[str, Any]]:
    return [{"id": f"r{number}", "text": "a film", "label": "ab"[number % 2]} | changed for number in range(count)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, light_server: None) -> Path:
    """A data folder with both sets as they should be; cells end as the fake ones do."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    monkeypatch.setattr(local, "run", functools.partial(local.run, function="tests.support.fake_cells:run_cell"))
    monkeypatch.delenv("ARCHBENCH_DATA", raising=False)
    (tmp_path / "sets.py").write_text(PLUGIN)
    for name in ("set_a", "set_b"):
        for split, count in (("train", 4), ("dev", 2), ("test", 3)):
            write(tmp_path / "data" / name / f"{split}.json", rows(count))
    return tmp_path / "data"


def write(file: Path, content: list[dict[str, Any]] | str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def request(folder: Path, **fields: Any) -> Request:
    known = dict(architectures="stub", tasks="set_*", tier="local", data_dir=folder, mlflow="none")
    return Request(folder.parent / "results", plugins=[folder.parent / "sets.py"], **known | fields)


def refusal(folder: Path, **fields: Any) -> list[str]:
    """Lines of the error with which a run ends; it wrote no record."""
    with pytest.raises(DataError) as raised:
        Session(request(folder, **fields))
    assert list(Store(folder.parent / "results").all()) == []
    return str(raised.value).splitlines()


def no_process(*_: object, **__: object) -> None:
    pytest.fail("a process was started")


# --- faults ---


def test_a_data_folder_one_level_too_deep_is_one_message_and_no_record(folder, capsys):
    """It was stored as the failure of every model, and stayed on the leaderboard after the folder
    was corrected."""
    chosen = ["run", "--plugin", str(folder.parent / "sets.py"), "-a", "stub", "-t", "set_a", "--tier", "local"]
    chosen += ["--results", str(folder.parent / "results"), "--mlflow", "none", "--data-dir"]
    ends = []
    for place in (folder / "set_a", folder):
        with pytest.raises(SystemExit) as ended:
            cli.main([*chosen, str(place)])
        ends.append((ended.value.code, len(list(Store(folder.parent / "results").all()))))
        if place != folder:
            [message] = capsys.readouterr().err.splitlines()
            assert message.startswith("archbench: set_a: split train: ") and "set_a/set_a/train.json" in message
    assert ends == [(2, 0), (0, 1)], "the same command with the right folder runs"


def test_every_fault_of_every_task_is_told_at_once(folder):
    write(folder / "set_a" / "train.json", rows(3, label=1))
    write(folder / "set_a" / "test.json", rows(2, id="same"))
    write(folder / "set_b" / "dev.json", "[{]")
    wrong_label, repeated, no_json = refusal(folder)
    assert wrong_label.startswith("set_a: split train, row 'r0': column label is 1 (int)")
    assert repeated == "set_a: split test has ids that occur twice: 'same'"
    assert no_json.startswith("set_b: split dev: JSONDecodeError: ") and "decoder.py, line" in no_json


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise KeyError('text')", "set_a: split dev: KeyError: 'text' (<string>, line 1)"),
        ("sys.exit(0)", "set_a: split dev: SystemExit: 0 (<string>, line 1)"),
        ("os._exit(3)", "set_a: reading its data ended its process with code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "set_a: reading its data ended its process with code -9"),
    ],
)
def test_a_reader_that_does_its_worst_costs_its_own_task(folder, code, message):
    """The other task is read all the same, and its faults are told."""
    write(folder / "set_a" / "dev.json", f"CODE {code}")
    write(folder / "set_b" / "dev.json", [])
    assert refusal(folder) == [message, "set_b: split dev has no rows"]


def test_a_reader_that_hangs_ends_with_the_timeout_of_a_cell(folder):
    write(folder / "set_a" / "dev.json", "CODE time.sleep(60)")
    [message] = refusal(folder, tasks="set_a", timeout=2)
    assert message == "set_a: reading its data was still going on after 2 s (--timeout)"


SCRIPT = """
import sys
from pathlib import Path
from harness.running.request import Request
from harness.running.session import Session
Session(Request(Path(sys.argv[1]), "stub", "set_a", "local", Path(sys.argv[2]), plugins=[Path(sys.argv[3])]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_reader_that_hangs_ends_with_a_run_that_is_killed(folder, number):
    write(folder / "set_a" / "train.json", "CODE time.sleep(60)")
    places = [str(folder.parent / name) for name in ("results", "data", "sets.py")]
    run = subprocess.Popen([sys.executable, "-c", SCRIPT, *places], cwd=ROOT)
    log = folder.parent / "readers.log"
    wait_for(log.exists)
    reader = psutil.Process(int(log.read_text().split()[1]))
    run.send_signal(number)
    run.wait(timeout=10)
    wait_for(lambda: not reader.is_running())


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_rows_that_fit_no_table_are_refused_as_in_a_cell(folder):
    """The columns of the type have forms; any other one is the task's own."""
    write(folder / "set_a" / "dev.json", [row | {"note": note} for row, note in zip(rows(2), (1, "b"), strict=True)])
    [message] = refusal(folder, tasks="set_a")
    assert message.startswith("set_a: split dev does not fit a table, whose columns have one type each: ")


def test_no_row_of_a_test_split_is_read_by_the_process_that_plans(folder):
    """What that process prints, stores or forks to cells cannot hold any."""
    assert len(Session(request(folder, tasks="set_a,set_b")).pending.run) == 2
    lines = (folder.parent / "readers.log").read_text().splitlines()
    assert sorted(line.split()[0] for line in lines) == sorted(2 * ["train", "dev", "test"])
    assert str(os.getpid()) not in {line.split()[1] for line in lines}


def test_a_generated_corpus_of_a_plugin_is_checked_too(folder):
    messages = refusal(folder, tier="mini", data_dir=None)
    assert len(messages) == 3
    assert messages[0].startswith("set_b: split train, row 'train': column label is 3 (int)")


def test_our_own_generated_corpora_are_left_to_our_tests(folder, monkeypatch):
    """They cannot be wrong by a user's mistake, and generating all takes seconds."""
    monkeypatch.setattr(subprocess, "run", no_process)
    assert Session(request(folder, tasks="sst2,an4", tier="mini", data_dir=None)).pending.run


def test_a_metric_nobody_knows_is_told_with_its_file_before_anything_is_read(folder, monkeypatch):
    monkeypatch.setattr(subprocess, "run", no_process)
    file = folder.parent / "sets.py"
    file.write_text(PLUGIN.replace('metrics=("accuracy",)', 'metrics=("accuracy", "macro-f1")'))
    with pytest.raises(RegistryError) as raised:
        Session(request(folder, dry_run=True))
    first, second = str(raised.value).splitlines()
    assert first.startswith(f"{file}: task set_a: no metric is called 'macro-f1'; did you mean macro_f1")
    assert "task set_b" in second


# --- what is kept ---


def readings(folder: Path, signature: str = "1") -> dict[str, Reading]:
    registry.add_plugin(folder.parent / "sets.py")
    tasks = registry.match("tasks", "set_*")
    return Preflight("local", folder, signature, folder.parent / "readings.json").read(tasks)


def test_sound_data_are_read_once_until_a_file_or_the_code_changes(folder, monkeypatch):
    """A grid of a thousand cells is resumed often."""
    first = readings(folder)
    assert first["set_a"] == Reading({"train": 4, "dev": 2, "test": 3}, [], [], first["set_a"].train_bytes)
    assert 4 * 8 < first["set_a"].train_bytes < 4 * 200
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", no_process)
        assert readings(folder) == first
        with pytest.raises(pytest.fail.Exception):
            readings(folder, signature="2")
    plugin = folder.parent / "sets.py"
    plugin.write_text(PLUGIN.replace("return json.loads(text)", "return json.loads(text)[1:]"))
    assert readings(folder)["set_a"].counts == {"train": 3, "dev": 1, "test": 2}


def test_a_fault_is_looked_at_again(folder):
    """Rights of a folder, or a disk that was away, change no file."""
    write(folder / "set_a" / "dev.json", [])
    assert readings(folder)["set_a"].faults == ["set_a: split dev has no rows"]
    write(folder / "set_a" / "dev.json", rows(2))
    assert readings(folder)["set_a"].faults == []


@pytest.mark.parametrize("content", ["", "{", "[]", "[1]", '{"set_a local": 1}', '{"set_a local": {"of": 1}}'])
def test_a_damaged_cache_costs_time_only(folder, content):
    (folder.parent / "readings.json").write_text(content)
    assert readings(folder)["set_a"].counts == {"train": 4, "dev": 2, "test": 3}


def test_a_dry_run_reads_nothing_and_tells_what_the_last_run_found(folder, monkeypatch):
    write(folder / "set_a" / "dev.json", [])
    with monkeypatch.context() as patch:
        patch.setattr("harness.running.planning.absent", lambda *_: {})  # which opens no file
        patch.setattr(preflight, "ask", no_process)
        assert len(Session(request(folder, tasks="set_a,set_b", dry_run=True)).pending.run) == 2
    refusal(folder)
    monkeypatch.setattr(preflight, "ask", no_process)
    assert refusal(folder, tasks="set_a,set_b", dry_run=True) == ["set_a: split dev has no rows"]


def test_a_dry_run_is_refused_where_the_run_is(folder):
    """Of a task that is named and has no files it said that it would run."""
    shutil.rmtree(folder / "set_a")
    [line] = refusal(folder, tasks="set_a,set_b", dry_run=True)
    assert line.startswith("set_a: ") and "train.json" in line


# --- sizes ---


def test_splits_of_another_size_than_declared_are_told_at_every_run(folder):
    """A score on twenty of sixty test rows stands beside published ones; train is marked as partial
    elsewhere, and set_b declares nothing more."""
    write(folder / "set_a" / "test.json", rows(1))
    write(folder / "set_a" / "train.json", rows(2))
    for dry_run in (False, True):
        told: list[str] = []
        Session(request(folder, dry_run=dry_run), tell=told.append)
        assert told == ["set_a: test has 1 examples, declared are 3; its scores are of another test set"]
    write(folder / "set_a" / "test.json", rows(3))
    write(folder / "set_a" / "dev.json", rows(1))
    told = []
    Session(request(folder), tell=told.append)
    assert told == ["set_a: dev has 1 examples, declared are 2"]


# --- which tasks are read ---


def test_tasks_whose_cells_are_all_finished_are_not_read(folder, monkeypatch):
    session = Session(request(folder, tasks="set_a"))
    assert [record.status for record in session.run()] == ["ok"]
    (folder.parent / "readers.log").unlink()
    (folder.parent / "results" / "work" / "readings.json").unlink()
    monkeypatch.setattr(preflight, "ask", no_process)
    monkeypatch.setattr("harness.running.changed_data.DataFolder.differing", lambda self, record: [])
    assert Session(request(folder, tasks="set_a")).pending.run == []


def test_a_cluster_whose_nodes_have_the_data_is_asked_nothing(folder, monkeypatch):
    """The folder has the same path everywhere, but is empty on the machine that plans."""
    monkeypatch.setattr(subprocess, "run", no_process)
    empty = folder.parent / "mounted"
    empty.mkdir()
    assert len(Session(request(empty, engine="ray")).pending.run) == 2
    with pytest.raises(pytest.fail.Exception):
        Session(request(folder, engine="ray"))


def test_a_task_without_a_tier_is_told_and_its_cells_are_skipped(folder):
    told: list[str] = []
    (folder.parent / "sets.py").write_text(PLUGIN.replace("def mini(", "def other("))
    session = Session(request(folder, tasks="set_a", tier="mini", data_dir=None), tell=told.append)
    assert told == ["skipped: set_a has no generated corpus; use --tier local"]
    assert session.run() == [] and session.complete([])
    [record] = session.store.all()
    assert (record.status, record.error["message"]) == ("skipped", "set_a has no generated corpus; use --tier local")


# --- tasks without their files ---


def test_a_task_that_a_wildcard_catches_without_its_files_is_left_out_with_a_note(folder):
    """A grid of all pairs has a third of its cells on data that nobody downloaded: a dry run
    counted them, and a run refused all of it."""
    (folder / "set_b" / "test.json").unlink()
    for dry_run in (True, False):
        told: list[str] = []
        session = Session(request(folder, dry_run=dry_run), tell=told.append)
        assert [cell.task for cell in session.pending.run] == ["set_a"]
        [note] = told
        assert note.startswith("left out, since --data-dir lacks their files: set_b; `archbench doctor --data-dir ")


def test_no_row_is_read_to_see_which_files_there_are(folder):
    write(folder / "set_b" / "train.json", "CODE raise ValueError('read')")
    (folder / "set_a" / "dev.json").unlink()
    registry.add_plugin(folder.parent / "sets.py")
    entries = [registry.entry("tasks", id) for id in ("set_a", "set_b")]
    [(id, message)] = preflight.absent(entries, folder).items()
    assert id == "set_a" and str(folder / "set_a" / "dev.json") in message


def test_a_task_named_without_its_files_is_an_error_with_the_path(folder):
    (folder / "set_b" / "train.json").unlink()
    for tasks in ("set_a,set_b", "set_*,set_b"):
        [message] = refusal(folder, tasks=tasks)
        assert message.startswith("set_b: split train: ") and str(folder / "set_b" / "train.json") in message


def test_a_wrong_data_folder_is_an_error_and_no_empty_grid(folder):
    (folder.parent / "elsewhere").mkdir()
    write(folder.parent / "elsewhere" / "readme", "")
    assert len(refusal(folder, data_dir=folder.parent / "elsewhere")) == 2


def test_a_dry_run_counts_the_rows_of_a_task_that_no_record_tells_of(folder):
    """SNLI was foretold at its declared size, of which a twentieth was at hand."""
    Store(folder.parent / "results").write(record("stub", "set_a", seconds={"total": 8.0}, counts={"train": 4}))
    estimate = Session(request(folder, tasks="set_a,set_b", dry_run=True)).estimate
    assert estimate.examples == {"set_b": 4}
    assert not (folder.parent / "results" / "work").exists(), "a dry run writes nothing"

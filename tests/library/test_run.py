"""``archbench.run``: the command's options, and records in place of lines."""

from __future__ import annotations

import functools
import inspect
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import archbench
from archbench import main_module
from harness.cli.run import run as command
from harness.errors import RecordError, UnknownName, UsageError
from harness.records import Record
from harness.running.engines import local
from tests.support.fake_plugins import PLUGIN

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, light_server: None):
    """The function on the toy plugin, in a folder of its own; its cells are fake."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCHBENCH_DATA", raising=False)
    monkeypatch.setenv("ARCHBENCH_MLFLOW", "none")
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    monkeypatch.setattr(main_module, "_written", [])
    monkeypatch.setattr(local, "run", functools.partial(local.run, function="tests.support.fake_cells:run_cell"))
    Path("toys.py").write_text(PLUGIN)
    return functools.partial(archbench.run, plugins=["toys.py"])


def test_it_has_the_options_of_the_command_with_their_defaults():
    """Who moves from the shell to a notebook must find each option, and get the same cells."""
    other_names = {"plugin": "plugins", "override": "overrides", "parent": "parents"}
    theirs = {other_names.get(name, name): each for name, each in inspect.signature(command).parameters.items()}
    ours = dict(inspect.signature(archbench.run).parameters)
    assert set(ours) - set(theirs) == {"ended"}
    assert set(theirs) - set(ours) == set()
    typed = {
        "plugins": (),
        "overrides": {},
        "parents": {},
        "inputs": (),
        "seeds": (0,),
        "workers": None,
        "results": "results",
    }
    in_words = dict.fromkeys(("plugins", "overrides", "parents", "inputs"))
    in_words |= {"seeds": "0", "workers": "auto", "results": Path("results")}
    assert {name: theirs[name].default for name in typed} == in_words
    for name, each in theirs.items():
        assert ours[name].default == typed.get(name, each.default), name
    assert all(f"``{name}``" in str(archbench.run.__doc__) for name in ours)


def test_records_of_the_whole_grid_come_back_in_its_order_now_and_later(run, tmp_path):
    """A notebook that is run again must not get an empty list because all cells are finished."""
    ended: list[Record] = []
    grid = dict(architectures=["toy_text", "toy_seq"], tasks="toy_topic,toy_tags", seeds=range(2))
    records = run(**grid, ended=ended.append)
    expected = [
        ("toy_text", "toy_topic", 0, "ok"),
        ("toy_seq", "toy_topic", 0, "ok"),
        ("toy_text", "toy_tags", 0, "skipped"),
        ("toy_seq", "toy_tags", 0, "ok"),
    ]
    expected += [(*cell, 1, status) for *cell, _, status in expected]
    assert [(r.architecture, r.task, r.seed, r.status) for r in records] == expected
    assert sorted(r.key for r in ended) == sorted(r.key for r in records if r.status == "ok")
    assert run(**grid, ended=ended.append) == records
    assert len(ended) == 6, "nothing was run again"


def test_the_command_of_a_record_does_the_same(run, capsys):
    """The leaderboard shows it to whoever wants to repeat a row."""
    overrides = {"toy_text.hidden": np.int64(7), "toy_text.mode": "a b"}  # as a sweep has them
    [record] = run("toy_text", "toy_topic", seeds=[3, 3], overrides=overrides)
    words = shlex.split(record.command)
    assert record.hyperparameters["hidden"] == 7 and record.hyperparameters["mode"] == "a b"
    from harness import cli

    with pytest.raises(SystemExit) as end:
        cli.main([*words[1:], "--dry-run"])
    assert not end.value.code
    assert "0 to run, 0 to skip, 1 finished" in capsys.readouterr().out


def test_a_dry_run_prints_the_plan_and_writes_nothing(run, capsys, tmp_path):
    assert run("toy_text", "toy_topic", dry_run=True) == []
    assert "1 to run" in capsys.readouterr().out
    assert not Path("results").exists()


def test_a_cell_that_fails_is_a_record_and_no_exception(run):
    """Hours of other cells must not be lost for the notebook."""
    plugin = PLUGIN.replace("toy_seq", "raises").replace("toy_", "other_")
    Path("other.py").write_text(plugin)
    [record] = run("raises", "other_topic", plugins=["other.py"])
    assert (record.status, record.error["type"]) == ("failed", "exit code 1")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seeds": "0,1"}, UsageError, r"seeds='0,1': expected whole numbers from 0 in a list, such as \(0, 1, 2\)"),
        ({"seeds": iter([0, 1])}, UsageError, "expected whole numbers from 0 in a list"),
        ({"seeds": None}, UsageError, "seeds=None"),
        ({"seeds": []}, UsageError, "--seeds none: expected one or more"),
        ({"seeds": [-1]}, UsageError, "--seeds -1: expected one or more, from 0 to 4,294,967,295"),
        ({"seeds": [1 << 32]}, UsageError, "--seeds 4294967296"),
        ({"workers": 0}, UsageError, "workers=0: expected a whole number from 1"),
        ({"max_train": 0.5}, UsageError, "max_train=0.5"),
        ({"timeout": -1}, UsageError, "timeout=-1: expected seconds, a number from 0"),
        ({"timeout": "5"}, UsageError, "timeout='5'"),
        ({"cpu_limit": float("nan")}, UsageError, "cpu_limit=nan"),
        ({"architectures": dict}, UsageError, "architectures=<class 'dict'>: expected names"),
        ({"overrides": ["toy_text.hidden=3"]}, UsageError, r"expected a mapping, such as \{"),
        ({"parents": ["weights=toy_text"]}, UsageError, r"parents=\['weights=toy_text'\]: expected a mapping"),
        ({"tier": "lokal"}, UsageError, "--tier lokal: unknown; did you mean local"),
        ({"overrides": {"toy_text.hiden": 3}}, UsageError, "did you mean hidden"),
        ({"architectures": "toy_txt"}, UnknownName, "did you mean toy_text"),
        ({"home": True}, UsageError, "--home: no chosen architecture has one"),
        ({"results": "toys.py"}, RecordError, "results folder .*toys.py is not writable"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_before_anything_runs(run, monkeypatch, options, error, message):
    monkeypatch.setattr(local, "run", lambda *_, **__: pytest.fail("a cell was started"))
    with pytest.raises(error, match=message):
        run(**{"architectures": "toy_text", "tasks": "toy_topic"} | options)


def test_a_path_a_single_plugin_and_a_number_for_the_precision_are_understood(tmp_path, run):
    """Each was a TypeError of a line of ours."""
    (tmp_path / "d.csv").write_text("text,label\n" + "".join(f"w {n},{n % 2}\n" for n in range(40)))
    (tmp_path / "mine.toml").write_text(
        'type = "classify"\n[data]\nall = "d.csv"\n[columns]\ntext = "text"\nlabel = "label"\n'
    )
    assert run("toy_text", tmp_path / "mine.toml", plugins=Path("toys.py"), precision=32)[0].status == "ok"


def test_the_data_folder_of_the_environment_counts(run, monkeypatch):
    monkeypatch.setenv("ARCHBENCH_DATA", str(Path("data").absolute()))
    Path("data").mkdir()
    [record] = run("toy_text", "toy_topic", tier="local")
    assert (record.status, record.tier) == ("ok", "local")


def test_a_plugin_that_runs_a_grid_when_it_is_imported_is_named(run):
    """A script given as its own plugin would otherwise start grids without end."""
    Path("toys.py").write_text("import archbench\n" + PLUGIN + "\narchbench.run()\n")
    with pytest.warns(UserWarning, match=r"left out: .*archbench.run was called by a file that a run imports"):
        assert run("toy_text", "toy_topic") == []


def test_another_thread_is_refused(run):
    """Ctrl-C could not end its cells."""
    found: list[str] = []

    def call() -> None:
        with pytest.raises(UsageError, match="main thread") as error:
            run("toy_text", "toy_topic")
        found.append(str(error.value))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert found


def test_a_run_that_was_stopped_says_how_many_cells_it_left(run, monkeypatch):
    """Else a table of half a grid would look like a whole one."""
    whole = local.run
    monkeypatch.setattr(local, "run", lambda cells, *rest, **options: whole(cells[:1], *rest, **options))
    with pytest.warns(UserWarning, match="cells not started: 1; the same call goes on with them"):
        assert len(run("toy_text", "toy_topic", seeds=(0, 1))) == 1


SCRIPT = """
import archbench
from torch import Tensor, nn
from harness.kinds import TextEncoder, pool
from harness.registry import register
from harness.views.words import WordBatch
from sizes import HIDDEN


def squash(x: Tensor) -> Tensor:
    return x.tanh()


@register("mine", name="Mine", kind="text", paper="Nobody 2026", source="a script", year=2026)
class Mine(TextEncoder):
    \"\"\"Mean of the word vectors, then one layer.\"\"\"

    def __init__(self, width: int, hidden: int = HIDDEN):
        super().__init__()
        self.layer = nn.Linear(width, hidden)
        self.size = hidden

    def forward(self, words: WordBatch) -> Tensor:
        return squash(self.layer(pool(words.vectors, words.mask, "mean")))


[record] = archbench.run("mine", "sst2", max_train=64, mlflow="none")
print("ended", record.status, record.hyperparameters["hidden"], sorted(record.scores["test"]), record.error)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_trains_its_own_class_beside_files_with_our_names(tmp_path):
    """Each of the three ended every cell as failed, or the script before the first one."""
    (tmp_path / "sizes.py").write_text("HIDDEN = 16\n")
    (tmp_path / "tasks.py").write_text("raise SystemExit('of the user')\n")
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "__init__.py").write_text("raise SystemExit('of the user')\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["ended ok 16 ['accuracy', 'macro_f1'] None"]
    assert len(list((tmp_path / "results" / "plugins").glob("*.py"))) == 1

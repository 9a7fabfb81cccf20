"""A run from Python, without the command line: planned and refused before anything is computed."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.records import Store
from harness.running.engines import local
from harness.running.request import Request
from harness.running.session import Session
from tests.support.fake_plugins import PLUGIN

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def request_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, light_server: None):
    """A request for the toy plugin; keyword arguments replace its fields. Its cells are fake."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    monkeypatch.setattr(local, "run", functools.partial(local.run, function="tests.support.fake_cells:run_cell"))
    plugin = tmp_path / "toys.py"
    plugin.write_text(PLUGIN)
    defaults = dict(architectures="toy_text", tasks="toy_topic", plugins=[plugin], mlflow="none")

    def make(**fields: object) -> Request:
        return Request(tmp_path / "results", **defaults | fields)

    return make


def test_a_grid_runs_from_python_and_tells_of_each_cell(request_of):
    """A notebook shows its own progress, and gets the records without reading files."""
    started, ended = [], []
    session = Session(request_of(seeds=(0, 1), tasks="toy_topic,toy_tags"))
    assert (len(session.pending.run), len(session.pending.skip)) == (2, 2)
    records = session.run(started.append, ended.append)
    assert [record.status for record in records] == ["ok", "ok"]
    assert session.complete(records)
    assert sorted(cell.seed for cell in started) == sorted(record.seed for record in ended) == [0, 1]
    assert Session(request_of(seeds=(0, 1))).pending.run == [], "finished cells are not run again"


def test_a_dry_run_computes_and_writes_nothing(request_of):
    session = Session(request_of(dry_run=True))
    assert len(session.pending.run) == 1
    assert session.run() == []
    assert not session.store.folder.exists()


def test_messages_are_warnings_where_no_one_else_takes_them(request_of, tmp_path):
    """Otherwise a plugin that cannot be imported would be missing from a grid in silence."""
    broken = tmp_path / "broken.py"
    broken.write_text(PLUGIN.replace("toy_", "broken_").replace("class Base", "import no_such_module\n\n\nclass Base"))
    request = request_of(architectures="*_text", tasks="toy_topic", plugins=[tmp_path / "toys.py", broken])
    with pytest.warns(UserWarning, match="left out: .*no_such_module"):
        session = Session(request)
    assert not session.complete(session.run())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tier": "lokal"}, "--tier lokal: unknown; did you mean local? Choose from mini, local, hub"),
        ({"tier": "local"}, "--tier local needs --data-dir"),
        ({"protocol": "xyz"}, "--protocol xyz: unknown; choose from smoke, equal, paper"),
        ({"engine": "loop"}, "--engine loop: unknown"),
        ({"precision": "16"}, "--precision 16"),
        ({"strategy": "spawn"}, "--strategy spawn"),
        ({"strategy": "fsdp", "devices": 2, "precision": "64"}, "--strategy fsdp --precision 64"),
        ({"shard": "2/2"}, "--shard 2/2"),
        ({"overrides": ["toy_text.hiden=3"]}, "did you mean hidden"),
        ({"speed_alone": True, "workers": 2}, "--speed-alone with --workers 2"),
        ({"speed_alone": True, "engine": "ray"}, "--speed-alone with --engine ray"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_before_anything_is_computed(request_of, monkeypatch, fields, message):
    """From Python as from the command line: a grid of days must not end at its first such cell."""
    monkeypatch.setattr(local, "run", lambda *_, **__: pytest.fail("a cell was started"))
    request = request_of(**fields)
    with pytest.raises(UsageError) as raised:
        Session(request).run()
    assert message in str(raised.value)
    assert not list(request.results.rglob("*.json"))


WRAPPED = """

class Alone:
    strategies = ("ddp",)


@register("toy_own", name="Own", kind="text", paper="Nobody 2020", source="test", year=2020)
class Own(Base):
    types, trained_by = ("classify",), Alone


@register("toy_regime", name="Regime", kind="regime", paper="Nobody 2020", source="test", year=2020)
class Regime(Base):
    types = ("classify",)

    def __init__(self, wraps="toy_own"):
        pass
"""


def test_the_objective_of_a_wrapped_architecture_must_know_the_strategy_too(request_of, tmp_path):
    """Only the regime's own was looked at, and the other one's gradients would have been wrong."""
    (tmp_path / "toys.py").write_text(PLUGIN + WRAPPED)
    options = dict(architectures="toy_regime", devices=2, strategy="fsdp")
    with pytest.raises(UsageError, match="toy_regime wraps toy_own, which is trained by Alone, which knows ddp"):
        Session(request_of(**options))
    assert Session(request_of(**options | {"strategy": "ddp"})).pending.run
    assert Session(request_of(**options, overrides=["toy_regime.wraps=toy_text"])).pending.run


SCRIPT = """
import sys
from pathlib import Path
from harness.running.request import Request
from harness.running.session import Session

request = Request(Path(sys.argv[1]), architectures="avg_vectors", tasks="sst2", max_train=64, mlflow="none")
[record] = Session(request).run()
print("ended", record.status, sorted(record.scores["test"]))
"""


@pytest.mark.slow
def test_a_script_without_a_main_guard_trains_a_mini_cell(tmp_path):
    """Its cell must not run the script again, as processes of multiprocessing do: it would start a
    grid inside the grid."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "results")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["ended ok ['accuracy', 'macro_f1']"]
    [record] = Store(tmp_path / "results").all()
    assert (record.status, record.counts["train"], record.command) == ("ok", 64, "")

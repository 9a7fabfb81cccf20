"""What several test files share: cells and settings that need no architecture and no data."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any test imports torch: the suite runs beside itself (pytest -n)
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
from hypothesis import HealthCheck, settings

from harness.records import Cell
from harness.registry import declarations, loading
from harness.running.engines import local
from harness.running.worker_settings import Settings
from harness.task import Task
from tests.support import fork_servers

# Both of what is off here time the machine, which others use too.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Folder of the real corpora; the test is skipped where there is none."""
    folder = Path(os.environ.get("ARCHBENCH_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real corpora in {folder} (set ARCHBENCH_DATA)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _generated_rows_are_made_once() -> Iterator[None]:
    """A process makes each generated split of a shipped task once: hundreds of tests read them, and
    to make some takes seconds. Tests of the tasks make their own (tests/tasks/conftest.py)."""
    whole, made = Task.load, dict[Any, Any]()

    @functools.wraps(whole)
    def load(self: Task, split: Any, tier: Any, folder: Path | None = None) -> Any:
        if tier != "mini" or not self.entry.shipped:
            return whole(self, split, tier, folder)
        key = type(self), type(self).mini, self.entry, split  # a test may give a class another generator
        if key not in made:
            made[key] = whole(self, split, tier, folder)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Task, "load", load)
        yield


@pytest.fixture(scope="session", autouse=True)
def _fork_server_is_only_made_heavier() -> Iterator[None]:
    with fork_servers.only_heavier():
        yield


@pytest.fixture
def light_server() -> Iterator[None]:
    """For fake cells, which need no torch: a file of tests alone does not wait for libraries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "PRELOAD", fork_servers.LIGHT)
        yield


@pytest.fixture(autouse=True)
def _broken_files_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that failed to import in one test is not told of in the next."""
    monkeypatch.setattr(loading, "_broken", {sort: dict(files) for sort, files in loading._broken.items()})


@pytest.fixture
def without_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test begins without plugins and leaves none behind; what the repository registers and was
    imported meanwhile stays registered, as its module stays imported."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    before = dict(declarations._registered)
    yield
    for key, (cls, _) in list(declarations._registered.items()):
        if cls.__module__.partition(".")[0] not in ("architectures", "tasks", "harness"):
            del declarations._registered[key]
    declarations._registered.update(before)  # a plugin may have taken a name


@pytest.fixture
def of_a_terminal() -> Iterator[None]:
    """SIGINT and SIGHUP do what they do in a terminal; `nohup make test &` hands both on as
    ignored, to this process and those that it starts."""
    before = [
        (signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler)),
        (signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL)),
    ]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.fixture
def make_cell() -> Callable[..., Cell]:
    """A cell named after what it does; keyword arguments replace its fields."""

    def make(architecture: str = "dan", **fields: object) -> Cell:
        known = dict(
            architecture_version=1,
            task="sst2",
            task_version=1,
            tier="mini",
            protocol="smoke",
            hyperparameters={},
            seed=0,
        )
        return Cell(architecture=architecture, **known | fields)

    return make


@pytest.fixture
def make_settings(tmp_path: Path) -> Callable[..., Settings]:
    """Settings whose results folder is the test's own; keyword arguments replace fields."""

    def make(**fields: object) -> Settings:
        results = tmp_path / "results"
        known = dict(
            data_dir=None,
            plugins=(),
            threads=1,
            timeout=None,
            memory_limit_mib=None,
            work=results / "work",
            command="archbench run",
        )
        return Settings(results=results, **known | fields)

    return make

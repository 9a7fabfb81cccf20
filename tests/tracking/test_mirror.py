"""MLflow is a mirror: a run never waits for it, and says what it could not show."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from harness import registry
from harness.records import Record, Store
from harness.running.pending import Planned
from harness.running.preflight import Preflight
from harness.running.request import Request
from harness.running.session import Session
from harness.tracking import Mirror, NotMirrored, Tracker, TrackingError, database, default_uri, mirror
from tests.support.fake_plugins import PLUGIN
from tests.support.made_records import record


class Fake:
    """A tracker that does with each record what a test says."""

    def __init__(self, do: Callable[[Record], None]):
        self.do, self.seen = do, []

    def __call__(self, uri: str, folder: Path) -> Fake:
        return self

    def log(self, record: Record, artifacts: list[Path | None]) -> None:
        self.seen.append(record.seed)
        self.do(record)


@pytest.fixture
def mirror_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A mirror and what it told, over a tracker that does as told."""

    def make(do: Callable[[Record], None] = lambda record: None, uri: str | None = None):
        fake = Fake(do)
        monkeypatch.setattr(mirror, "Tracker", fake)
        told: list[str] = []
        return Mirror(uri, Store(tmp_path), told.append), fake, told

    yield make
    for thread in threading.enumerate():  # one that hung until now would meet the tracker of the next test
        if thread.name == "mlflow":
            threading.Thread.join(thread, 10)


def test_records_are_sent_in_order_and_the_end_waits_for_them(mirror_of):
    made, fake, told = mirror_of(lambda record: time.sleep(0.05))
    with made as send:
        for seed in range(5):
            send(record(seed=seed))
    assert fake.seen == [0, 1, 2, 3, 4]
    assert told == []


def test_a_run_does_not_wait_for_mlflow(mirror_of, monkeypatch: pytest.MonkeyPatch):
    """While it waited, limits, signals and leases of its cells were nobody's business."""
    monkeypatch.setattr(mirror, "DRAIN_S", 0.4)
    monkeypatch.setattr(mirror, "QUIET_S", 0.1)
    hangs = threading.Event()
    made, fake, told = mirror_of(lambda record: hangs.wait() and None)
    began = time.monotonic()
    with made as send:
        for seed in range(5):
            send(record(seed=seed))
    hangs.set()
    assert 0.3 < time.monotonic() - began < 5
    assert fake.seen == [0]
    assert len(told) == 2 and "waiting" in told[0] and "archbench sync" in told[1]


def test_ctrl_c_ends_the_wait(mirror_of, monkeypatch: pytest.MonkeyPatch):
    """The records are written: nothing but the mirror is lost, and the run ends as usual."""
    hangs = threading.Event()
    made, _, told = mirror_of(lambda record: hangs.wait() and None)

    def interrupted(timeout: float) -> None:
        raise KeyboardInterrupt

    with made as send:
        send(record())
        monkeypatch.setattr(send._thread, "join", interrupted)
    hangs.set()
    assert len(told) == 1 and "archbench sync" in told[0]


def test_a_record_that_mlflow_refuses_costs_itself(mirror_of):
    def refuse(made: Record) -> None:
        if made.seed == 1:
            raise NotMirrored("seed 1 was not mirrored")

    made, fake, told = mirror_of(refuse)
    with made as send:
        for seed in range(3):
            send(record(seed=seed))
    assert fake.seen == [0, 1, 2]
    assert told == ["seed 1 was not mirrored"]


def test_a_server_that_fails_is_told_once_and_left_alone(mirror_of):
    def fail(made: Record) -> None:
        raise TrackingError("gone")

    made, fake, told = mirror_of(fail)
    with made as send:
        for seed in range(3):
            send(record(seed=seed))
    assert fake.seen == [0]
    assert told == ["gone"]


def test_none_is_no_mirror(mirror_of):
    made, fake, _ = mirror_of(uri="none")
    with made as send:
        send(record())
    assert fake.seen == []


def test_cells_that_a_run_skips_are_sent_but_for_those_that_never_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever looks at MLflow alone would not see that a cell waits for its parent. The pairs that
    do not fit are thousands in a large grid, and the results of a run would wait for them."""
    sent: list[Record] = []
    monkeypatch.setattr(mirror, "Tracker", Fake(sent.append))
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    monkeypatch.setattr(Preflight, "read", lambda *_, **__: {})  # no process of its own reads the data
    (tmp_path / "toys.py").write_text(PLUGIN)
    registry.add_plugin(tmp_path / "toys.py")
    session = Session(Request(tmp_path / "results", architectures="toy_text", tasks="toy_topic,toy_tags"))
    cell = session.pending.run.pop()
    session.pending.skip.append(Planned(cell, "its parent is not there"))
    session.run()
    assert {made.status for made in session.store.all()} == {"skipped"}
    assert len(list(session.store.all())) == 2
    assert [made.key for made in sent] == [cell.key]


def test_a_lock_that_somebody_holds_is_waited_for_a_moment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An archbench that was stopped while it connected holds it for ever."""
    monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 0.2)
    began = time.monotonic()
    with FileLock(tmp_path / "mlflow.db.lock"), pytest.raises(TrackingError, match=r"mlflow\.db\.lock.*archbench sync"):
        Tracker(default_uri(tmp_path))
    assert time.monotonic() - began < 8

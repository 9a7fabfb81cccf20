"""Whatever lies in a results folder that is no record: it is named and left as it is, and
everything else goes on."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

import pytest

import leaderboard
from harness.errors import RecordError
from harness.records import Record, Store
from harness.scoring.rescore import rescore
from harness.tracking import mlflow_runs
from tests.support.made_records import judged, record


def state(folder: Path) -> dict[str, object]:
    """Every entry of a folder: what it is, and the content of regular files (of small ones)."""
    found: dict[str, object] = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        small = stat.S_ISREG(status.st_mode) and status.st_size < 1 << 20
        found[os.fsencode(path).decode("latin-1")] = (
            stat.S_IFMT(status.st_mode),
            path.read_bytes() if small else status.st_size,
        )
    return found


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two sound records with predictions and outcomes, among rubbish."""
    store = Store(tmp_path / "results")
    good = [judged(store, "1101", seed=seed, protocol="equal") for seed in (0, 1)]
    records, place = store.folder / "records", store.path(good[0]).parent
    (records / "README.txt").write_text("no record")
    (records / "stray.json").write_bytes(bytes(range(256)))
    (records / "sst2" / "other").mkdir()
    (records / "sst2" / "other" / f"{good[0].key}.json").write_text(
        good[0].to_json()
    )  # a sound record in a wrong place
    (place / "empty.json").touch()
    (place / "text.json").write_text("[" * 100_000)
    (place / "folder.json").mkdir()
    (place / "gone.json").symlink_to("nowhere")
    (place / "loop.json").symlink_to("loop.json")
    (place / "device.json").symlink_to("/dev/zero")
    os.mkfifo(place / "pipe.json")
    with (place / "huge.json").open("wb") as file:
        file.truncate(1 << 36)  # 64 GiB that take no room on the disk
    Path(os.fsdecode(os.fsencode(place) + b"/\xff.json")).write_text("{}")
    damaged = record(seed=7)
    store.path(damaged).write_text(damaged.to_json().replace('"ok"', '"fine"'))
    evil = record(seed=8).to_json().replace('"sst2"', '"../../sst2"')
    (place / "evil.json").write_text(evil)
    store.path(good[0]).with_suffix(".outcomes.json.gz").write_bytes(b"rubbish")
    store.path(good[1]).with_suffix(".predictions.json.xz").write_bytes(b"rubbish")
    return store


NAMES = ["stray", "empty", "text", "folder", "gone", "loop", "device", "pipe", "huge", "evil"]


def test_each_is_named_and_left_alone(store):
    """One bad file must not cost the others, and nobody's file may be replaced."""
    before = state(store.folder)
    with pytest.warns(UserWarning, match="record skipped") as warned:
        assert len(list(store.all())) == 2
    said = "\n".join(str(warning.message) for warning in warned)
    assert all(f"{name}.json: " in said for name in NAMES) and "belongs in" in said and "status: " in said
    assert len(store.damaged) == len(warned) == len(NAMES) + 3
    said.encode()
    assert state(store.folder) == before


def test_the_leaderboard_rescoring_and_mlflow_go_on(store, capsys, recwarn):
    """They show the sound records, and say what they left out."""
    before = state(store.folder)
    assert leaderboard.main(["--results", str(store.folder), "--out", str(store.folder.parent / "pages")]) == 0
    said = capsys.readouterr()
    assert "2 records" in said.out and all(f"{name}.json" in said.err for name in NAMES)
    assert rescore(store, None) == []
    assert any("not rescored" in str(warning.message) for warning in recwarn)
    uri = f"sqlite:///{store.folder.parent / 'mlflow.db'}"
    assert mlflow_runs.sync(store, uri) == (2, 0, 0)
    assert state(store.folder) == before


def test_an_unreadable_record_is_named(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    store = Store(tmp_path)
    path = store.write(record())
    path.chmod(0)
    with pytest.raises(RecordError, match=f"{path.name}: Permission denied"):
        store.read(path)


@pytest.mark.parametrize("make", ["folder", "link", "rubbish"])
def test_a_foreign_thing_in_a_records_place_is_never_replaced(tmp_path, make):
    """A cell that ends where somebody's file lies says so; that file stays."""
    store, made = Store(tmp_path), record()
    path = store.path(made)
    path.parent.mkdir(parents=True)
    {"folder": path.mkdir, "link": lambda: path.symlink_to("nowhere"), "rubbish": lambda: path.write_text("mine")}[
        make
    ]()
    before = state(tmp_path)
    with pytest.raises(RecordError, match=path.name):
        store.find(made.cell)
    with pytest.raises(RecordError, match=path.name):
        store.write(made)
    assert state(tmp_path) == before


@pytest.mark.parametrize("name", ["../x", "/etc/x", "..", ".", "", "a/b", "a\\b", "a\0b", "ä", "a b", "x\n"])
def test_a_name_is_checked_before_it_becomes_a_path(tmp_path, name):
    """A plugin's id and a foreign record's task go into the paths of records, logs and pages."""
    store = Store(tmp_path / "results")
    for fields in ({"architecture": name}, {"task": name}):
        with warnings.catch_warnings(), pytest.raises(RecordError, match="cannot be the name of a folder"):
            store.write(Record.model_validate(record(**fields).model_dump()))
    assert not list(tmp_path.iterdir())

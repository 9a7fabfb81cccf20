"""One foreign or odd record costs itself: whoever reads a results folder names it, or shows it, and
goes on with the rest."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import leaderboard
from harness.records import Cell, Record, Store
from harness.running.estimate import Estimate
from harness.running.pending import Planned, pending
from harness.tracking import Tracker, default_uri
from tests.support.odd_records import CELL_FIELDS, ODD, READ, REFUSED, sound, text_of, write_odd


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A folder with one sound record, of another seed than the odd ones."""
    store = Store(tmp_path / "results")
    store.write(record_of(seed=0))
    return store


def record_of(**changes: object) -> Record:
    fields = sound() | changes
    cell = Cell(**{name: fields[name] for name in CELL_FIELDS})
    return Record(**fields | {"key": cell.key})


def test_there_are_enough_sorts():
    """The review tried 57, of which 16 stopped the pages."""
    assert len(ODD) > 100 and not REFUSED.keys() & READ.keys()


@pytest.mark.parametrize("name", ODD)
def test_a_plan_and_its_estimate_go_on(store: Store, name: str):
    """`archbench run` on a folder with such a file ran nothing at all."""
    path = write_odd(store.folder, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = list(store.all())
        estimate = Estimate(store.all())
    assert [record.seed for record in records if record.seed == 0] == [0]
    assert (list(store.damaged) == [path]) == (name in REFUSED)
    if name in REFUSED:
        assert str(path) in store.damaged[path]
    other = record_of(seed=5).cell
    planned = [Planned(other, None)]
    try:
        odd = Cell(**{field: json.loads(text_of(name))[field] for field in CELL_FIELDS})
        if odd.key == path.stem:
            planned.append(Planned(odd, None))
    except (ValueError, TypeError, KeyError, RecursionError):  # no cell at all
        pass
    left = pending(planned, store)
    assert left.run == [other]
    assert len(left.finished) + len(left.damaged) == len(planned) - 1
    assert estimate(other) is not None


@pytest.mark.parametrize("names", [[*REFUSED], *([name] for name in READ)], ids=lambda names: names[-1])
def test_the_pages_go_on(store: Store, names: list[str], tmp_path: Path):
    """The other results must stay visible, and each file is named that cannot be read."""
    paths = {name: write_odd(store.folder, name) for name in names}
    board = leaderboard.read(store.folder)
    leaderboard.write(board, tmp_path / "pages")
    for name, path in paths.items():
        assert any(path.name in notice for notice in board.notices) == (name in REFUSED), name
    exported = json.loads((tmp_path / "pages" / "leaderboard.json").read_text(encoding="utf-8"))
    assert any(0 in result["seeds"] for result in exported["results"])
    for file in (tmp_path / "pages").glob("*.html"):
        assert "<script>alert" not in (text := file.read_text(encoding="utf-8")) and "<b>" not in text


MIRRORED = [name for name in READ if name.split()[0] in ("metric", "loss", "hyperparameter", "time", "seconds", "log")]
"""Sorts with something in them that MLflow might refuse."""


def test_mlflow_goes_on(tmp_path: Path):
    """All at once: every record that MLflow takes is there afterwards, the others are named."""
    store = Store(tmp_path / "results")
    for seed in (0, 7):
        store.write(record_of(seed=seed))
    for name in [*REFUSED, *MIRRORED]:
        write_odd(store.folder, name)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tracker = Tracker(default_uri(tmp_path))
        added, kept, replaced = tracker.sync(store)
        readable = len(list(store.all()))
    failed = [str(warning.message) for warning in said if "not mirrored" in str(warning.message)]
    assert (kept, replaced) == (0, 0)
    assert added + tracker.refused == readable == len(MIRRORED) + 2
    assert 0 < tracker.refused == len(failed) <= 10
    assert all(".json was not mirrored" in message for message in failed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert tracker.sync(store) == (0, added, 0)

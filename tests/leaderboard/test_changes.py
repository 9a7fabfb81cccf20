"""The page on changes since an earlier build tells every result that is not what it was, and none
that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import leaderboard
from harness.leaderboard.tables.changes import change, matched, read_earlier
from harness.records import Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import record


@pytest.fixture(autouse=True)
def known(monkeypatch):
    entries = [architecture(id, id.upper(), family="feedforward") for id in ("dan", "nse")]
    register_alone(monkeypatch, entries, [task("sst2", "classify", "accuracy")])


def result(*keys: str, score: float | None = 0.5, **fields: Any) -> dict[str, Any]:
    """A result with a record for each key, the seeds from 0 on."""
    records = [{"key": key, "seed": n, "status": "ok", "commit": "c" * 40} for n, key in enumerate(keys)]
    scores = {} if score is None else {"accuracy": {"mean": score, "sd": None, "n": len(keys)}}
    identity = {"task": "sst2", "architecture": "dan", "settings": "", "tier": "local", "protocol": "equal"}
    identity |= {"protocol_version": 2, "budget": "small", "sees": [], "vectors": None, "inputs": None, "tokens": None}
    shown = {"name": "DAN", "group": "g", "main_metric": "accuracy", "rank": 1, "records": records, "scores": scores}
    return identity | shown | fields


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (None, result("a"), "new"),
        (result("a"), None, "gone"),
        (result("a"), result("a"), ""),
        (result("a"), result("a", rank=7), ""),
        (result("a"), result("a", score=0.6), "score"),
        (result("a"), result("a", "b", score=0.6), "seeds, score"),
        (result("a"), result("a", group="h"), "data or budget"),
        (result("a", score=None, group=None), result("a"), "score"),
    ],
)
def test_a_change_is_told_in_words(old, new, words):
    """A place alone changes whenever a neighbour comes: it is none of the row's own."""
    assert change(old, new) == words


def test_a_result_is_the_same_by_its_records_and_else_by_what_it_is_a_result_of():
    """A second configuration gives the first one other words: it is not new for that."""
    plain, named = result("a"), result("a", settings="hidden 50")
    other, again = result("b", settings="hidden 90"), result("z", architecture="nse")
    earlier = [plain, result("y", architecture="nse"), result("x", budget="full")]
    assert matched(earlier, [named, other, again]) == [
        (plain, named),
        (None, other),
        (earlier[1], again),
        (earlier[2], None),
    ]


def build(folder: Path, *more: str) -> int:
    return leaderboard.main(["--results", str(folder), *more])


def test_the_page_counts_and_links_and_goes_with_the_next_build(tmp_path):
    """Who builds after a night of new cells sees them first; without the option no page of an
    earlier night is left over."""
    store, out = Store(tmp_path), tmp_path / "leaderboard"
    store.write(record("dan", "sst2", 0.71))
    assert build(tmp_path) == 0
    before = (out / "leaderboard.json").rename(tmp_path / "before.json")
    store.write(record("nse", "sst2", 0.83))
    assert build(tmp_path, "--since", str(before)) == 0
    page = (out / "changes.html").read_text(encoding="utf-8")
    assert "1 results are new, 0 are gone, 0 changed" in page
    assert 'href="architecture-nse.html"' in page and 'href="architecture-dan.html"' not in page
    assert 'href="changes.html"' in (out / "index.html").read_text(encoding="utf-8")
    assert build(tmp_path) == 0
    assert not (out / "changes.html").exists()
    assert "changes.html" not in (out / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No such file"),
        ("tables", "not the leaderboard.json of a build"),
        ("[]", "not the leaderboard.json of a build"),
        ('{"schema": 1, "results": []}', "schema 1, expected 2"),
        ('{"schema": 2, "results": [{"task": "sst2"}]}', "'architecture'"),
    ],
)
def test_another_file_is_named(tmp_path, capsys, content, told):
    file = tmp_path / "earlier.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    (tmp_path / "records").mkdir()
    assert build(tmp_path, "--since", str(file)) == 2
    error = capsys.readouterr().err
    assert str(file) in error and told in error
    assert not (tmp_path / "leaderboard").exists()


def test_what_a_build_writes_can_be_read_back(tmp_path):
    Store(tmp_path).write(record("dan", "sst2", 0.71))
    assert build(tmp_path) == 0
    file = tmp_path / "leaderboard" / "leaderboard.json"
    [read], [written] = read_earlier(file), json.loads(file.read_text(encoding="utf-8"))["results"]
    assert read.items() <= written.items()
    file.write_text(file.read_text(encoding="utf-8").replace('"inputs": null, ', ""), encoding="utf-8")
    assert read_earlier(file) == [read], "of a build before there were inputs"

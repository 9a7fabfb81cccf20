"""Records that an edit leaves as they are: one that keeps its digest wrongly shows a score that the
code of now does not have, and one that loses it wrongly costs hours."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.records import Store
from tests.support.made_records import record
from tools import same_results
from tools.same_results import Group, outcome

THEN, NOW = Path("then"), same_results.ROOT
OLDEST, OLD, NEW = (letter * 64 for letter in "abc")
"""Digests of code."""


def group(architecture: str, wraps: str, type: str, trained: bool = False) -> Group:
    return Group(architecture, wraps, type, "equal", trained)


def made(architecture: str, digest: str = OLD, **fields: Any) -> Any:
    return record(architecture, score=0.5, code={"architecture": digest, "task": "d" * 64, "harness": 2}, **fields)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Records of architectures whose code is another since then: that of ``lstm`` has the same
    results on texts, that of ``gru`` others, and ``rnn`` failed both times."""
    store = Store(tmp_path)
    records = {
        "same": made("lstm", hyperparameters={}),
        "pairs": made("lstm", task="snli"),
        "other": made("gru"),
        "failed": made("rnn"),
        "older": made("lstm", OLDEST, seed=1),
        "wrapping": made("vat", hyperparameters={"wraps": "gru"}),
        "inputs": made("lstm", hyperparameters={"inputs": {"char_cnn_words": {"version": 1, "settings": {}}}}),
    }
    for each in records.values():
        store.write(each)
    found = {
        THEN: {group("lstm", "", "classify"): 1, group("lstm", "", "match"): 1, group("gru", "", "classify"): 1},
        NOW: {group("lstm", "", "classify"): 1, group("lstm", "", "match"): 2, group("gru", "", "classify"): 2},
    }
    for tree in found.values():
        tree[group("vat", "gru", "classify")] = 3
    keys = [each.key for each in records.values()]
    monkeypatch.setattr(same_results, "worktree", lambda commit: nullcontext(THEN))
    monkeypatch.setattr(same_results, "digests", lambda tree, _: dict.fromkeys(keys, OLD if tree == THEN else NEW))
    monkeypatch.setattr(
        same_results, "outcomes", lambda tree, tasks: {g: found[tree][g] for g in tasks if g in found[tree]}
    )
    return store


def digests_of(store: Store) -> dict[str, str]:
    return {
        f"{each.architecture} {each.task} {each.seed} {each.hyperparameters}": each.code["architecture"]
        for each in store.all()
    }


def test_records_of_the_same_results_alone_get_the_digest_of_now(store, capsys):
    """Not those of an older code, of other results, or of what nobody tried."""
    before = digests_of(store)
    assert same_results.main(["HEAD", "--results", str(store.folder), "--write"]) == 1
    assert digests_of(store) == before | {"lstm sst2 0 {}": NEW, "vat sst2 0 {'wraps': 'gru'}": NEW}
    assert capsys.readouterr().out.splitlines() == [
        "other results: gru on sst2 equal: 1 records",
        "the same: lstm on sst2 equal: 1 records",
        "other results: lstm on snli equal: 1 records",
        "not tried: rnn on sst2 equal: 1 records",
        "the same: vat gru on sst2 equal: 1 records",
        "3 of 5 records have to be run again",
    ]


def test_nothing_is_written_unasked(store):
    before = digests_of(store)
    same_results.main(["HEAD", "--results", str(store.folder)])
    assert digests_of(store) == before


def test_small_cells_repeat_and_tell_what_was_computed():
    """Trained in processes of their own by the code of a folder, as ``main`` has them trained."""
    plain, wrapping = (
        group("avg_vectors", "", "classify", trained=True),
        group("vat", "avg_vectors", "classify", trained=True),
    )
    first = same_results.outcomes(NOW, {plain: "sst2", wrapping: "sst2"})
    assert all(each["curve"][0]["train_loss"] > 0 and each["predictions"] for each in first.values())
    assert first.keys() == {plain, wrapping} and first[plain] != first[wrapping]
    assert same_results.outcomes(NOW, {plain: "sst2"}) == {plain: first[plain]}


def test_times_are_no_results():
    rows = [
        [{"epoch": 1, "train_loss": loss, "seconds": seconds}] for loss, seconds in ((1.0, 2.0), (1.0, 3.0), (1.5, 2.0))
    ]
    first, later, other = (outcome(record(training={"curve": curve})) for curve in rows)
    assert first == later != other

"""What the task's page and the listing say of test examples that stand in train."""

from __future__ import annotations

import json

from harness.leaderboard.board import read
from harness.leaderboard.pages.task_page import task_tables
from harness.leaderboard.tables.overlap import Counted, overlaps, short
from harness.records import Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import record


def counted(store: Store, name: str, train: int, exact: int, near: int | None = None, **fields) -> None:
    found = {"exact": exact} if near is None else {"exact": exact, "near": near, "words": 13}
    counts = {"train": train, "dev": 5, "test": 1821}
    store.write(record(name, score=0.5, counts=counts, overlap=found, **fields))


def test_a_page_says_it_of_the_largest_training_set(tmp_path, monkeypatch):
    """A row trained on a tenth has met fewer of the test examples than the sentence says."""
    known = [architecture(name, name) for name in ("dan", "nse", "gru")]
    register_alone(monkeypatch, known, [task("sst2", "classify", "accuracy")])
    store = Store(tmp_path)
    counted(store, "dan", 500, 0, 1)
    counted(store, "nse", 6920, 2, 1003)
    store.write(record("gru", score=0.5))
    [table] = task_tables(read(tmp_path), "sst2")
    assert (
        "Of 1,821 test examples, 2 stand among the 6,920 of train exactly and 1,003 nearly: 13 words in a row in common"
        " with one of them (of a pair, in both texts)." in table.lead
    )


def test_a_page_of_recordings_has_no_words_and_one_of_old_records_no_sentence(tmp_path, monkeypatch):
    tasks = [task("fsdd", "transcribe", "wer"), task("sst2", "classify", "accuracy")]
    register_alone(monkeypatch, [architecture("dan", "DAN")], tasks)
    store = Store(tmp_path)
    counted(store, "dan", 2400, 3, task="fsdd")
    store.write(record("dan", score=0.5))
    board = read(tmp_path)
    [table] = task_tables(board, "fsdd")
    assert table.lead[-2] == "Of 1,821 test examples, 3 stand among the 2,400 of train exactly."
    [table] = task_tables(board, "sst2")
    assert not any("exactly" in sentence for sentence in table.lead)


def test_a_listing_takes_real_data_before_generated_ones(tmp_path):
    store = Store(tmp_path)
    counted(store, "dan", 9999, 5, 5, tier="mini")
    counted(store, "nse", 500, 1, 2)
    counted(store, "dan", 700, 3, 4, tier="hub")
    counted(store, "dan", 800, 6, task="fsdd", tier="mini")
    store.write(record("gru", score=0.5))
    found = overlaps(tmp_path)
    assert found["sst2"] == Counted("hub", 700, 1821, {"exact": 3, "near": 4, "words": 13})
    assert {name: short(each) for name, each in found.items()} == {"sst2": "3 / 4", "fsdd": "6"}


def test_a_listing_leaves_out_what_is_no_record(tmp_path):
    store = Store(tmp_path)
    counted(store, "dan", 500, 1, 2)
    [file] = (tmp_path / "records").rglob("*.json")
    whole = json.loads(file.read_text())
    for number, bad in enumerate(("", "{", '"overlap"', json.dumps(whole | {"overlap": None, "key": '"overlap"'}))):
        (file.parent / f"bad{number}.json").write_text(bad)
    (file.parent / "bad.json").write_text(json.dumps(whole | {"overlap": {"exact": "many"}}))
    assert overlaps(tmp_path) == {"sst2": Counted("local", 500, 1821, {"exact": 1, "near": 2, "words": 13})}
    assert overlaps(tmp_path / "nowhere") == {}

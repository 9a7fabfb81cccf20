"""One row for each family: who asks "are recurrent networks any good here?" need not read them
all."""

from __future__ import annotations

import pytest

from harness.leaderboard.board import read
from harness.leaderboard.tables.family_table import family_tables
from harness.records import Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import judged, record


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four recurrent architectures, one feed-forward one, and a floor."""
    entries = [architecture(id, id.upper()) for id in ("lstm", "gru", "rnn", "slow")]
    entries += [architecture("dan", "DAN", family="feedforward"), architecture("majority", "most", kind="floor")]
    register_alone(monkeypatch, entries, [task("sst2", "classify", "accuracy"), task("fsdd", "transcribe", "wer")])


def rows_of(store: Store, id: str) -> dict[str, list[str]]:
    """The cells of each family's row."""
    [table] = family_tables(read(store.folder), id)
    return {row.name: [cell[0].text for cell in row.cells] for row in table.blocks[0].rows}


def test_a_family_has_its_best_and_the_median_of_what_is_ranked(store):
    """One at the floor is counted, and moves neither."""
    for name, right in (("lstm", 90), ("gru", 80), ("rnn", 60), ("slow", 50), ("dan", 70), ("majority", 50)):
        judged(store, "1" * right + "0" * (100 - right), architecture=name)
    found = rows_of(store, "sst2")
    assert list(found) == ["recurrent", "feedforward"], "the best one first"
    assert found == {
        "recurrent": ["3 of 4", "90.0 (1)", "LSTM", "80.0"],
        "feedforward": ["1 of 1", "70.0 (1)", "DAN", "70.0"],
    }


def test_of_error_rates_the_lowest_is_the_best(store):
    for name, rate in (("lstm", 0.2), ("gru", 0.4), ("dan", 0.1)):
        store.write(record(name, "fsdd", {"wer": rate}))
    assert rows_of(store, "fsdd") == {
        "feedforward": ["1 of 1", "10.0 (1)", "DAN", "10.0"],
        "recurrent": ["2 of 2", "20.0 (1)", "LSTM", "30.0"],
    }


def test_one_family_alone_needs_no_table(store):
    for name in ("lstm", "gru"):
        store.write(record(name, score=0.8))
    assert family_tables(read(store.folder), "sst2") == []

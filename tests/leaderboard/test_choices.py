"""Tables of what systems that act chose: who pays by the word reads there what less would cost."""

from __future__ import annotations

import pytest

from harness.leaderboard.tables.choices import choice_tables
from harness.records import Record, Store
from tests.support.made_pages import architecture, board_of, task
from tests.support.made_records import record

NAMES = [
    architecture("id_lstm", "ID-LSTM"),
    architecture("hs_lstm", "HS-LSTM", year=2018),
    architecture("lstm", "LSTM"),
]
NAMES += [architecture("lots", "by lot", source="reference", paper="none", year=0)]
READ = "share of words read"


def tables(store: Store, *records: Record) -> list[list[list[str]]]:
    for each in records:
        store.write(each)
    board = board_of(store, NAMES, [task("sst5", "classify", "accuracy")])
    return [
        [table.columns, *([row.name, *(cell[0].text for cell in row.cells)] for row in table.blocks[0].rows)]
        for table in choice_tables(board, "sst5")
    ]


def acted(id: str, score: float, seed: int = 0, *, share: float = 0.5, **fields) -> Record:
    choices = fields.pop("choices", {READ: share})
    settings = {"hidden": 100} | ({"share": share} if fields.pop("given", False) else {})
    return record(id, "sst5", score, seed=seed, choices=choices, hyperparameters=settings, **fields)


def test_what_was_read_stands_beside_the_score(store):
    """Of several seeds the mean; who chose nothing has no row."""
    found = tables(
        store,
        acted("id_lstm", 0.40, share=0.8),
        acted("id_lstm", 0.42, 1, share=0.7),
        acted("hs_lstm", 0.38, choices={"phrases for each word": 0.62}),
        record("lstm", "sst5", 0.5),
    )
    assert found == [
        [
            ["Architecture", "settings", "accuracy", "at random, as much", "phrases for each word", READ],
            ["ID-LSTM", "–", "41.0 ± 1.4 (2)", "–", "–", "75.0 %"],
            ["HS-LSTM", "–", "38.0 (1)", "–", "0.62", "–"],
        ]
    ]


def test_each_share_that_was_asked_for_has_a_row(store):
    (found,) = tables(
        store, acted("id_lstm", 0.40, share=0.8, given=True), acted("id_lstm", 0.30, share=0.2, given=True)
    )
    assert [(row[0], row[4]) for row in found[1:]] == [("ID-LSTM", "20.0 %"), ("ID-LSTM", "80.0 %")]
    assert len({row[1] for row in found[1:]}) == 2


def beside(store: Store, *records: Record) -> str:
    """The score at random that stands beside that of ID-LSTM."""
    return next(row[3] for found in tables(store, *records) for row in found if row[0] == "ID-LSTM")


def test_a_random_choice_of_as_many_words_stands_beside_a_policy(store):
    """Of several the nearest: only the distance at an equal share is what the policy knows."""
    lots = [acted("lots", score, share=share, given=True) for share, score in ((0.5, 0.3), (0.795, 0.37), (0.8, 0.38))]
    assert beside(store, acted("id_lstm", 0.40, share=0.7995), *lots) == "38.0 (1)"


@pytest.mark.parametrize(
    "other",
    [{"share": 0.77}, {"choices": {"phrases for each word": 0.79}}, {"data": {"test": "u" * 64}}, {"tier": "hub"}],
    ids=("share", "choice", "test", "tier"),
)
def test_a_random_choice_of_something_else_is_not_beside_it(store, other):
    known = {"share": 0.79, "data": {"test": "t" * 64}}
    assert beside(store, acted("id_lstm", 0.40, **known), acted("lots", 0.38, **known | other)) == "–"
    assert beside(store, acted("lots", 0.37, given=True, **known)) == "37.0 (1)", "the equal one is"


def test_another_policy_is_no_random_choice(store):
    assert beside(store, acted("id_lstm", 0.40), acted("hs_lstm", 0.38)) == "–"


def test_what_is_compared_nowhere_is_in_no_table_together(store):
    found = tables(store, acted("id_lstm", 0.4), acted("hs_lstm", 0.4, protocol="paper"))
    assert [[row[0] for row in each[1:]] for each in found] == [["ID-LSTM"], ["HS-LSTM"]]


def test_without_choices_there_is_no_table(store):
    failed = record("id_lstm", "sst5", None, status="timeout", error={"type": "timeout", "message": "x"})
    assert tables(store, record("lstm", "sst5", 0.5), failed, acted("jumper", 0.4, protocol="smoke")) == []

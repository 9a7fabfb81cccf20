"""Pages on what is read of a word: the same architecture with and without, and nothing else beside
it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import leaderboard
from harness.leaderboard.board import read
from harness.leaderboard.comparison import p_beside_first
from harness.leaderboard.significance import estimate, holm
from harness.leaderboard.tables.axis import INPUTS, TOKENS, VECTORS, Axis, axis_tables, lines
from harness.records import Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import judged

RIGHT = "1100110011" * 12
"""Outcomes of a middling system."""


@pytest.fixture(autouse=True)
def known(monkeypatch):
    entries = [architecture(id, id.upper(), family="feedforward") for id in ("dan", "lstm")]
    register_alone(monkeypatch, entries, [task("sst2", "classify", "accuracy")])


def parent(role: str, name: str, row: str) -> dict[str, Any]:
    fields = {"architecture": name, "task": "text_mix", "key": "k" * 16, "row": row * 16}
    return {"hidden": 100, "parents": {role: fields}}


def add(store: Store, right: str, hyperparameters: dict[str, Any], seeds: int = 3, **fields: Any) -> None:
    """Records of seeds that differ in one unit each."""
    for seed in range(seeds):
        of_seed = right[:seed] + "0" + right[seed + 1 :]
        judged(store, of_seed, seed=seed, hyperparameters=hyperparameters, **fields)


def shown(tmp_path, axis: Axis) -> dict[str, list[list[str]]]:
    """The texts of the rows of the tables, with the columns first, by title."""
    return {
        table.title: [
            table.columns,
            *([row.name, *(cell[0].text for cell in row.cells)] for block in table.blocks for row in block.rows),
        ]
        for table in axis_tables(read(tmp_path), axis)
    }


def test_vectors_stand_beside_none_and_what_is_told_apart_is_marked(tmp_path):
    """Whoever asks what vectors are worth gets a verdict of one architecture on equal terms."""
    store = Store(tmp_path)
    add(store, RIGHT, {"hidden": 100})
    add(store, "1" * 120, parent("vectors", "skipgram", "a"))
    add(store, "0" * 60 + RIGHT[:60], parent("vectors", "glove", "b"))
    add(store, RIGHT, {"hidden": 100}, architecture="lstm")
    add(store, "1" * 120, parent("vectors", "skipgram", "a"), seeds=2, architecture="lstm")
    [(title, [columns, dan, lstm])] = shown(tmp_path, VECTORS).items()
    assert "accuracy by vectors, tier local, protocol equal" in title
    assert columns == ["Architecture", "at random", "glove bbbbbbbb", "skipgram aaaaaaaa"]
    assert [name for name, *_ in (dan, lstm)] == ["DAN", "LSTM"]
    assert "▲" not in dan[1] + dan[2] and "▼" in dan[2] and "▲" in dan[3]
    assert lstm[2] == "–" and lstm[3].endswith("(2)"), "two seeds tell nothing apart"


def test_rows_that_differ_in_more_do_not_stand_together(tmp_path):
    """Another size, another budget or a change of the data would be taken for the vectors' work."""
    store = Store(tmp_path)
    add(store, RIGHT, {"hidden": 100})
    add(store, RIGHT, parent("vectors", "skipgram", "a") | {"hidden": 50})
    add(store, RIGHT, parent("vectors", "glove", "b"), counts={"train": 500})
    assert lines(read(tmp_path), "sst2", VECTORS) == {}


@pytest.mark.parametrize(
    ("axis", "hyperparameters", "title", "columns"),
    [
        (TOKENS, parent("tokens", "bpe", "c"), "by tokens", ["words", "bpe cccccccccccc"]),
        (INPUTS, parent("inputs", "elmo", "d"), "by inputs", ["no other", "elmo dddddddd"]),
    ],
)
def test_tokens_and_inputs_have_tables_too(tmp_path, axis, hyperparameters, title, columns):
    store = Store(tmp_path)
    add(store, RIGHT, {"hidden": 100})
    add(store, RIGHT, hyperparameters)
    [(found, [names, _])] = shown(tmp_path, axis).items()
    assert title in found and names[1:] == columns


def test_p_is_that_of_the_paired_test_with_holms_correction(tmp_path):
    store = Store(tmp_path)
    rights = RIGHT, "1" * 120, "0" * 12 + RIGHT[12:]
    for right, setting in zip(rights, ({"hidden": 1}, {"hidden": 2}, {"hidden": 3}), strict=True):
        add(store, right, setting)
    board = read(tmp_path)
    by_setting = {
        result.first.hyperparameters["hidden"]: result
        for section in board.sections
        for _, result in board.results(section, "sst2")
    }
    results = [by_setting[n] for n in (1, 2, 3)]
    arrays = []
    for result in results:
        outcomes = [store.load_outcomes(record, None) for record in result.ok]
        arrays.append(tuple([getattr(each, part) for each in outcomes] for part in ("numerators", "denominators")))
    wanted = holm(estimate([(np.stack(a), np.stack(b)) for a, b in arrays]).p_values()[0, 1:].tolist())
    assert p_beside_first(board, "accuracy", results) == pytest.approx(wanted)


def test_pages_are_there_where_they_have_something_to_say(tmp_path):
    store = Store(tmp_path)
    add(store, RIGHT, {"hidden": 100})
    assert leaderboard.main(["--results", str(tmp_path)]) == 0
    assert not (tmp_path / "leaderboard" / "vectors.html").exists()
    add(store, "1" * 120, parent("vectors", "skipgram", "a"))
    assert leaderboard.main(["--results", str(tmp_path)]) == 0
    page = (tmp_path / "leaderboard" / "vectors.html").read_text(encoding="utf-8")
    assert re.search(r"skipgram aaaaaaaa", page) and "▲" in page
    assert 'href="vectors.html"' in (tmp_path / "leaderboard" / "index.html").read_text(encoding="utf-8")

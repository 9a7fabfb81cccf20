"""Data that are too large for lists of Python objects."""

from __future__ import annotations

import pytest

from harness.data import loaded_rows
from harness.data.corpus import Corpus
from harness.views.words import Words
from tests.user_data.conftest import reviews


def test_rows_read_in_portions_are_encoded_as_rows_read_at_once(own, monkeypatch: pytest.MonkeyPatch):
    """A million rows must not give another model than the same rows on a larger machine."""
    task = own(reviews_csv=reviews(100))
    at_once = Corpus(task, "own", None, Words(), "vector")
    monkeypatch.setattr(loaded_rows, "LISTED", 0)
    monkeypatch.setattr(loaded_rows, "AT_ONCE", 7)
    rows = loaded_rows.listed_rows(task.load("train"))
    assert not isinstance(rows, list), "a large table was made a list"
    assert (list(rows), rows[3], rows[2:5]) == (task.read("train"), task.read("train")[3], task.read("train")[2:5])
    in_portions = Corpus(task, "own", None, Words(), "vector")
    assert in_portions.fingerprints == at_once.fingerprints
    for split in ("train", "dev"):
        one, other = getattr(at_once, split), getattr(in_portions, split)
        assert (one.inputs["text"]["ids"].values == other.inputs["text"]["ids"].values).all()
        assert (one.targets["label"] == other.targets["label"]).all()

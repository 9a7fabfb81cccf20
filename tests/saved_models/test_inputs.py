"""Cells that read input sources, from their record to a kept model that answers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness import registry
from harness.cli.models import models
from harness.errors import ModelError
from harness.records import Record, Store
from harness.saved_models.model import load
from tests.saved_models.cells import kept_cell, loaded, rows_of_test

BOTH = ("char_lstm_words", "char_cnn_words")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def record(results: Path) -> Record:
    return kept_cell("avg_vectors", "sst2", results, inputs=BOTH)


def test_a_record_says_what_was_read_beside_the_table(record: Record) -> None:
    """By it rows are put into groups, and a reader knows how many numbers a word had."""
    assert (record.status, record.error) == ("ok", None)
    assert record.inputs == [{"name": "char_cnn_words", "dims": 30}, {"name": "char_lstm_words", "dims": 50}]
    assert record.vectors["dims"] == 8 and record.view["view"] == "WordsAndCharacters"


def test_a_kept_model_answers_as_in_its_cell(record: Record, results: Path) -> None:
    """Its characters and weights are read again from the folder alone."""
    rows = rows_of_test("sst2")
    found = [answer["prediction"] for answer in loaded(record, results).answers(rows)]
    assert found == Store(results).load_predictions(record)[1]


def test_models_says_what_a_kept_model_reads(record: Record, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models(results, None)
    assert "avg_vectors with char_cnn_words and char_lstm_words on sst2, seed 0" in capsys.readouterr().out


def test_a_model_that_another_version_of_a_source_made_is_refused(
    record: Record, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its weights would be taken for those of other equations."""
    entry = registry.entry

    def raised(sort: registry.Sort, id: str) -> registry.Entry:
        found = entry(sort, id)
        return dataclasses.replace(found, version=2) if id == "char_cnn_words" else found

    monkeypatch.setattr(registry, "entry", raised)
    with pytest.raises(ModelError, match="made by version 1 of char_cnn_words, and here is version 2"):
        load(results / "models" / record.key)

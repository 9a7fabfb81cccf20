"""``archbench.load``: a kept model that answers texts, rows and data frames."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import archbench
from harness.errors import DataError, UsageError
from harness.records import Record
from tests.saved_models.cells import kept_cell


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def classifier(results: Path) -> Record:
    return kept_cell("avg_vectors", "sst2", results)


def test_texts_are_answered_with_probabilities(results: Path, classifier: Record) -> None:
    model = archbench.load(classifier.key[:10], results)
    assert (model.key, model.architecture, model.task) == (classifier.key, "avg_vectors", "sst2")
    assert (model.type, model.inputs, model.classes) == ("classify", ("text",), ("negative", "positive"))
    answers = model.predict(["a warm film", "it is dull"])
    assert len(answers) == 2
    for answer in answers:
        shares = answer["probabilities"]
        assert set(shares) == {"negative", "positive"} and sum(shares.values()) == pytest.approx(1)
        assert answer["prediction"] == max(shares, key=shares.get)
        assert answer["probability"] == shares[answer["prediction"]]


def test_rows_and_data_frames_give_the_same_answers(results: Path, classifier: Record) -> None:
    """A data frame is also a sequence of its column names, which nobody wants answered."""
    model = archbench.load(results / "models" / classifier.key)
    wanted = model.predict(iter(["a warm film", "it is dull"]))
    frame = pd.DataFrame({"stars": [4, 1], "text": ["a warm film", "it is dull"]})
    assert model.predict(frame) == model.predict(frame["text"]) == wanted
    assert model.predict([{"text": "a warm film"}, {"text": "it is dull"}]) == wanted
    assert model.predict([]) == []


def test_a_text_that_cannot_be_read_is_named_by_its_place(results: Path, classifier: Record) -> None:
    """A list of answers that is shorter than that of the texts would be matched wrongly."""
    model = archbench.load(classifier.key, results)
    with pytest.raises(DataError, match=r"texts\[1\]: a float, expected an object with text"):
        model.predict(["fine", float("nan"), "last"])
    with pytest.raises(DataError, match=r"texts\[0\]: no text"):
        model.predict(pd.DataFrame({"review": ["fine"]}))
    with pytest.raises(UsageError, match="expected a list of texts"):
        model.predict("a warm film")


def test_a_model_that_is_not_kept_is_named(results: Path, classifier: Record) -> None:
    with pytest.raises(UsageError, match="no such model is kept"):
        archbench.load("nothing", results)

"""Delta TF-IDF: weights by hand, what the SVM reads, and why more than two classes are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from architectures.classical.delta_tfidf import DeltaTfIdf, delta_idf
from harness import registry
from harness.running import fitting

TRAIN = [
    {"text": "good good film", "label": "pos"},
    {"text": "good cast", "label": "pos"},
    {"text": "fine film", "label": "pos"},
    {"text": "bad film", "label": "neg"},
    {"text": ["Bad", "bad", "cast"], "label": "neg"},
]
LABELS = np.array([row["label"] for row in TRAIN])


def fitted(train=TRAIN, **settings) -> DeltaTfIdf:
    model = DeltaTfIdf(**settings)
    model.fit(train, [])
    return model


def weights(model: DeltaTfIdf) -> dict[str, float]:
    return dict(zip(model.counter.get_feature_names_out(), model.weights, strict=True))


def test_the_weight_of_a_word_by_hand():
    """Three positive and two negative texts; a word repeated in its text is in one text. good 2:0
    film 2:1 cast 1:1 fine 1:0 bad 0:2."""
    expected = {"good": (2, 0), "film": (2, 1), "cast": (1, 1), "fine": (1, 0), "bad": (0, 2)}
    found = weights(fitted(ngrams=1))
    assert found == pytest.approx(
        {t: math.log2(3 / (p + 0.5)) - math.log2(2 / (n + 0.5)) for t, (p, n) in expected.items()}
    )
    assert found["good"] < 0 < found["bad"]


def test_a_word_as_common_in_both_classes_weighs_nothing_and_the_classes_are_opposites():
    """The share of a class's texts counts, not their number: 2 of 4 and 1 of 2 are equal."""
    counts = sparse.csr_array(np.array([[1, 5], [3, 0], [0, 0], [0, 0], [2, 0], [0, 0]]))
    positive = np.array([True, True, True, True, False, False])
    found = delta_idf(counts, positive, smoothing=0.0 + 1e-12)
    assert found[0] == pytest.approx(0, abs=1e-9) and found[1] < 0
    assert np.allclose(delta_idf(counts, ~positive, 1e-12), -found)


def test_features_are_counts_times_weights_and_the_machine_reads_them():
    """Counts, not presence: a word said twice weighs twice."""
    model = fitted(C=0.5)
    counts = model.counter.transform([row["text"] for row in TRAIN]).toarray()
    assert counts.max() == 2
    features = counts * model.weights
    assert np.allclose(model.features(TRAIN).toarray(), features)
    machine = LinearSVC(C=0.5, random_state=0).fit(sparse.csr_array(features), LABELS == "pos")
    assert np.allclose(model.machine.decision_function(features), machine.decision_function(features), atol=1e-3)
    assert model.predict(TRAIN) == LABELS.tolist()
    assert model.predict([{"text": "good"}, {"text": "bad"}]) == ["pos", "neg"]
    assert model.features([{"text": "unheard-of words"}]).nnz == 0


@pytest.mark.parametrize(("task", "reason"), [("sst2", None), ("sst5", "sst5 has 5"), ("ag_news", "ag_news has 4")])
def test_a_task_of_more_classes_is_a_skipped_cell_with_its_reason(task, reason):
    """Otherwise the grid would record a failure for every run on such a task."""
    found = fitting.reason_to_skip(registry.entry("architectures", "delta_tfidf"), registry.entry("tasks", task), {})
    assert found is None if reason is None else reason in found


def test_recordings_are_refused_for_what_they_are():
    """Not for the number of their classes: with two of them there would be no text to read."""
    assert "offers audio" in DeltaTfIdf.unfit(registry.entry("tasks", "fsdd_class"), {})


@pytest.mark.parametrize("names", [["pos"], ["neg", "neutral", "pos"]])
def test_other_numbers_of_classes_are_refused_by_name(names):
    with pytest.raises(ValueError, match=f"two classes to train on, and found {', '.join(names)}"):
        fitted([{"text": "film", "label": name} for name in names])

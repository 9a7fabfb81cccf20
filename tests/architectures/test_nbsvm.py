"""NBSVM: the ratio by hand, what the SVM reads, and the interpolation of its weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from architectures.classical.nbsvm import NaiveBayesSVM, log_count_ratio
from tasks.mini import diseases

TRAIN = [
    {"text": "good good film", "label": "pos"},
    {"text": "good cast", "label": "pos"},
    {"text": "bad film", "label": "neg"},
    {"text": ["not", "good"], "label": "neg"},
    {"text": "bad bad cast", "label": "neg"},
]
LABELS = np.array([row["label"] for row in TRAIN])


def fitted(train=TRAIN, **settings) -> NaiveBayesSVM:
    model = NaiveBayesSVM(**settings)
    model.fit(train, [])
    return model


def features(model: NaiveBayesSVM, train=TRAIN) -> np.ndarray:
    """Which n-grams each text has, dense."""
    return model.counter.transform([row["text"] for row in train]).toarray()


def ratio(binary: np.ndarray, positive: np.ndarray) -> np.ndarray:
    p, q = 1 + binary[positive].sum(0), 1 + binary[~positive].sum(0)
    return np.log((p / p.sum()) / (q / q.sum()))


def test_the_ratio_of_a_word_by_hand():
    """Unigrams good film cast bad not: one text each in pos (2 1 1 0 0) and neg (1 1 1 2 1), one
    added to each."""
    model = fitted(ngrams=1)
    binary = sparse.csr_array(features(model))
    found = dict(zip(model.counter.get_feature_names_out(), log_count_ratio(binary, LABELS == "pos", 1.0), strict=True))
    assert found == pytest.approx(
        {
            "good": math.log((3 / 9) / (2 / 11)),
            "film": math.log((2 / 9) / (2 / 11)),
            "cast": math.log((2 / 9) / (2 / 11)),
            "bad": math.log((1 / 9) / (3 / 11)),
            "not": math.log((1 / 9) / (2 / 11)),
        }
    )


def test_a_repeated_word_counts_once():
    """Wang and Manning binarise: `good good film` has good once, in training and in answering."""
    model = fitted()
    assert features(model).max() == 1
    one, two = model.scores([{"text": "bad , good"}, {"text": "bad , good , bad , good"}])
    assert features(model, [{"text": "good good good"}]).sum() == 2 and np.allclose(one, two)


def test_capitals_do_not_matter():
    """At the beginning of a sentence a word would be another one."""
    small, large = fitted().scores([{"text": "bad , good"}, {"text": "Bad , GOOD"}])
    assert np.array_equal(small, large) and small.any()


def test_without_the_svms_differences_the_score_is_proportional_to_the_sum_of_the_ratios():
    """beta = 0 makes all weights equal, so what is left is naive Bayes without the prior, up to a
    factor."""
    model = fitted(beta=0.0)
    binary = features(model)
    sums = binary @ ratio(binary, LABELS == "pos")
    factors = model.scores(TRAIN)[:, 0] / sums
    assert factors[0] > 0 and np.allclose(factors, factors[0])


@pytest.mark.parametrize("beta", [0.25, 1.0])
def test_the_machine_reads_the_scaled_features_and_its_weights_are_interpolated(beta):
    """On labels drawn by lot, so that the machine turns some ratios round: the mean is of sizes,
    not of weights that cancel."""
    lot = np.random.default_rng(0)
    train = [{"text": list(lot.choice(list("abcdef"), 5)), "label": str(lot.integers(2))} for _ in range(30)]
    positive = np.array([row["label"] == "1" for row in train])
    model = fitted(train, beta=beta, C=2.0)
    binary = features(model, train)
    r = ratio(binary, positive)
    machine = LinearSVC(C=2.0, fit_intercept=False, random_state=0).fit(sparse.csr_array(binary * r), positive)
    w = machine.coef_[0]
    assert (w < 0).any()
    expected = (binary * r) @ ((1 - beta) * np.abs(w).sum() / len(w) + beta * w)
    assert np.allclose(model.scores(train)[:, 0], expected, atol=1e-3)
    assert NaiveBayesSVM().beta == 0.25


def test_many_classes_are_each_set_against_the_rest_with_their_own_ratio():
    train = [*TRAIN, {"text": "film about trains", "label": "travel"}, {"text": "trains , ships", "label": "travel"}]
    labels = np.array([row["label"] for row in train])
    model = fitted(train, beta=0.0)
    binary = features(model, train)
    for column, name in enumerate(["neg", "pos", "travel"]):
        sums = binary @ ratio(binary, labels == name)
        found = model.scores(train)[:, column]
        assert np.allclose(found * sums[0], found[0] * sums)
    assert fitted(train).predict(train) == labels.tolist()
    assert model.parameter_count == 3 * binary.shape[1]


def test_the_rarest_of_many_unbalanced_classes_is_not_said_of_every_text():
    """An intercept that fits the SVM's weights outweighs the interpolated ones, which are smaller:
    with it the rarest class, whose intercept is nearest to zero, is said 45 times of 266 where 6
    would be right. Balanced classes do not show it."""
    test = list(diseases.rows("test"))
    predicted = fitted(list(diseases.rows("train"))).predict(test)
    assert predicted.count(diseases.RAREST) < 12
    assert np.mean([row["label"] == name for row, name in zip(test, predicted, strict=True)]) > 0.8


def test_two_classes_need_one_machine_whose_sign_decides():
    model = fitted()
    assert model.scores(TRAIN).shape == (5, 1) and model.predict(TRAIN) == LABELS.tolist()
    assert model.predict([{"text": "good film"}, {"text": "bad"}]) == ["pos", "neg"]


def test_one_class_alone_is_refused():
    with pytest.raises(ValueError, match="all 2 training texts are 'pos'"):
        fitted(TRAIN[:2])

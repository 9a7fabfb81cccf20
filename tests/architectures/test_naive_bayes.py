"""Naive Bayes: its log-probabilities against hand-worked ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from architectures.classical.naive_bayes import NaiveBayes

TRAIN = [
    {"text": "Good good film", "label": "pos"},
    {"text": ["good"], "label": "pos"},
    {"text": "bad film", "label": "neg"},
]
# Vocabulary: good, film, bad, "good good", "good film", "bad film". N_pos = 3 + 1 + 1 + 1 = 6,
# N_neg = 1 + 1 + 1 = 3.


def fitted(ngrams: int = 2, **settings) -> NaiveBayes:
    model = NaiveBayes(ngrams=ngrams, **settings)
    model.fit(TRAIN, [])
    return model


def log_probability(model: NaiveBayes, ngram: str) -> list[float]:
    """log p(ngram | class) for the classes neg, pos."""
    return model.model.feature_log_prob_[:, model.counter.vocabulary_[ngram]].tolist()


@pytest.mark.parametrize(
    ("ngram", "negative", "positive"),
    [
        ("good", 1 / 9, 4 / 12),
        ("film", 2 / 9, 2 / 12),
        ("bad", 2 / 9, 1 / 12),
        ("good good", 1 / 9, 2 / 12),
        ("bad film", 2 / 9, 1 / 12),
    ],
)
def test_an_ngram_has_its_smoothed_share_of_the_classs_counts(ngram, negative, positive):
    """Without the one in the numerator a word of one class alone would decide every text; without
    |V| the shares would not sum to one."""
    assert np.allclose(log_probability(fitted(), ngram), [math.log(negative), math.log(positive)])


def test_the_score_adds_the_prior_and_every_occurrence():
    model = fitted()
    text = "film film Good"  # film twice, good once; "film film" and "film good" were never seen
    negative = math.log(1 / 3) + 2 * math.log(2 / 9) + math.log(1 / 9)
    positive = math.log(2 / 3) + 2 * math.log(2 / 12) + math.log(4 / 12)
    scores = model.model.predict_joint_log_proba(model.counter.transform([text]))
    assert np.allclose(scores, [[negative, positive]])
    assert model.predict([{"text": text}]) == ["pos"] and isinstance(model.predict([{"text": text}])[0], str)


def test_unknown_words_leave_the_prior_to_decide():
    assert fitted().predict([{"text": "zebra"}, {"text": ""}, {"text": ["zebra", "bad"]}]) == ["pos", "pos", "neg"]


def test_word_order_counts_through_bigrams_alone():
    """A bigram model tells `not good , bad` from `not bad , good`; without bigrams the two are one
    text."""
    train = [{"text": "not bad , good", "label": "pos"}, {"text": "not good , bad", "label": "neg"}]
    rows = [{"text": "not bad"}, {"text": "not good"}]
    for ngrams, expected in ((2, ["pos", "neg"]), (1, ["neg", "neg"])):
        model = NaiveBayes(ngrams=ngrams)
        model.fit(train, [])
        assert model.predict(rows) == expected


def test_parameters_are_one_per_class_and_ngram_and_the_priors():
    assert fitted().parameter_count == 2 * 6 + 2
    assert fitted(ngrams=1).parameter_count == 2 * 3 + 2

"""LDA against variational Bayes written out text by text and word by word."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma
from sklearn.svm import LinearSVC

from architectures.classical.lda import LatentDirichletFeatures

TEXTS = [
    "goal match goal team",
    ["Team", "goal", "referee"],
    "match referee team team",
    "bank profit bank",
    "profit shares bank shares",
    "shares profit market",
    "market bank team",
]
TRAIN = [{"text": text, "label": label} for text, label in zip(TEXTS, "sssbbbb", strict=True)]
VOCABULARY = ["bank", "goal", "market", "match", "profit", "referee", "shares", "team"]


def counts(text) -> np.ndarray:
    words = [word.lower() for word in (text if isinstance(text, list) else text.split())]
    return np.array([words.count(word) for word in VOCABULARY], dtype=float)


def exp_log(weights: np.ndarray) -> np.ndarray:
    """exp(E[log p]) of a Dirichlet distribution over the last axis."""
    return np.exp(digamma(weights) - digamma(weights.sum(-1, keepdims=True)))


def theta(text, topics: np.ndarray, prior: float, steps: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """A text's Dirichlet weights gamma (K,), and phi (K, V), each word's shares of the topics: the
    updates of Blei et al. 2003, figure 6."""
    found, beta = counts(text), exp_log(topics)
    gamma = np.ones(len(topics))
    for _ in range(steps):
        phi = exp_log(gamma)[:, None] * beta
        phi /= phi.sum(0)
        gamma = prior + phi @ found
    return gamma, phi


def fitted(**settings) -> LatentDirichletFeatures:
    model = LatentDirichletFeatures(**{"topics": 2, "passes": 5} | settings)
    model.fit(TRAIN, [])
    return model


def test_a_texts_shares_are_the_mean_of_its_variational_distribution():
    model = fitted(topics=3)
    assert model.counter.get_feature_names_out().tolist() == VOCABULARY
    texts = [*TEXTS, "goal goal zebra market", "zebra"]
    shares = model.shares(texts)
    for text, found in zip(texts, shares, strict=True):
        gamma, _ = theta(text, model.model.components_, 1 / 3)
        assert np.allclose(found, gamma / gamma.sum(), atol=5e-3)
    assert np.allclose(shares.sum(1), 1)
    assert (shares > 0).all()
    assert np.allclose(shares[-1], 1 / 3)


def test_topics_are_fitted_until_they_explain_the_words_of_all_texts():
    """At the end a topic's weights are 1 / K plus the counts of the words that it explains: a step
    more changes nothing."""
    model = fitted(passes=500)
    weights = model.model.components_
    again = np.full_like(weights, 1 / 2)
    for text in TEXTS:
        again += theta(text, weights, 1 / 2)[1] * counts(text)
    assert np.allclose(again, weights, atol=0.05)
    assert weights.sum() == pytest.approx(1 / 2 * weights.size + sum(counts(text).sum() for text in TEXTS))
    first, second = weights[:, VOCABULARY.index("goal")].argsort()[::-1]
    assert weights[second, VOCABULARY.index("bank")] > weights[first, VOCABULARY.index("bank")]


def test_passes_go_over_all_texts_and_are_as_many_as_asked():
    """Topics that keep a part of what they were, pass by pass, would be Hoffman's online LDA."""
    assert fitted(passes=7).model.n_iter_ == 7
    once = fitted(passes=1).model.components_
    assert once.sum() == pytest.approx(1 / 2 * once.size + sum(counts(text).sum() for text in TEXTS))
    assert fitted(topics=4).shares(TEXTS).shape == (7, 4)


def test_folding_in_changes_no_topic_and_each_text_is_alone():
    model = fitted()
    before = model.model.components_.copy()
    together = model.shares(TEXTS)
    assert np.array_equal(before, model.model.components_)
    assert np.array_equal(together, np.concatenate([model.shares([text]) for text in TEXTS]))


def test_equal_seeds_give_equal_shares_and_others_start_elsewhere():
    one, same, other = fitted(), fitted(), fitted(seed=1)
    assert np.array_equal(one.shares(TEXTS), same.shares(TEXTS))
    assert not np.allclose(one.model.components_, other.model.components_, atol=1e-3)


def test_the_machine_reads_the_shares():
    model = fitted(C=3.0)
    machine = LinearSVC(C=3.0, random_state=0).fit(model.shares(TEXTS), list("sssbbbb"))
    expected = machine.decision_function(model.shares(TEXTS))
    assert np.allclose(model.machine.decision_function(model.shares(TEXTS)), expected, atol=1e-6)
    assert model.predict([{"text": "goal match"}, {"text": "profit shares"}]) == ["s", "b"]
    assert model.parameter_count == 2 * 8 + 2 + 1


def test_a_restored_model_has_the_same_shares():
    model, other = fitted(), LatentDirichletFeatures(topics=2, passes=5)
    other.restore_fitted(model.fitted_state())
    assert np.allclose(other.shares(TEXTS), model.shares(TEXTS), atol=1e-12)

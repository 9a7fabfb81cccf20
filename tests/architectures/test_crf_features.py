"""The CRF on hand-made features: the features of a word, the likelihood by enumeration, its optimum
by another method, and decoding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp

from architectures.classical import crf_features
from architectures.classical.crf_features import FeatureCRF, features, shape


def row(tagged: str) -> dict[str, list[str]]:
    words, tags = zip(*(pair.split("/") for pair in tagged.split()), strict=True)
    return {"text": list(words), "tags": list(tags)}


CORPUS = [row("dog/N"), row("the/D dog/N saw/V Ann/N"), row("Ann/N saw/V"), row("the/D saw/N sleeps/V")]
SETTINGS = {"l2": 0.5, "affix": 2, "min_count": 1}


def log_scores(crf: FeatureCRF, weights: np.ndarray, words: list[str]) -> dict[tuple[str, ...], float]:
    """Score of every sequence of tags of a sentence, feature by feature."""
    tags, known = crf.tags, crf.known
    moves, start, end = weights[len(known) : -2], weights[-2], weights[-1]
    named = [
        [known[name] for name in features(words, place, crf.affix) if name in known] for place in range(len(words))
    ]
    emitted = [weights[rows].sum(0) for rows in named]
    found = {}
    for chosen in itertools.product(range(len(tags)), repeat=len(words)):
        score = start[chosen[0]] + end[chosen[-1]] + sum(moves[a, b] for a, b in itertools.pairwise(chosen))
        score += sum(scores[tag] for scores, tag in zip(emitted, chosen, strict=True))
        found[tuple(tags[tag] for tag in chosen)] = score
    return found


def penalised(flat: np.ndarray, crf: FeatureCRF) -> float:
    """Minus the log-likelihood of the corpus and the penalty, by enumeration."""
    weights, total = flat.reshape(-1, len(crf.tags)), crf.l2 / 2 * (flat**2).sum()
    for sentence in CORPUS:
        scores = log_scores(crf, weights, sentence["text"])
        total += logsumexp(list(scores.values())) - scores[tuple(sentence["tags"])]
    return total


@pytest.fixture(scope="module")
def fitted() -> FeatureCRF:
    crf = FeatureCRF(**SETTINGS, iterations=500)
    crf.fit(CORPUS, [])
    return crf


def test_the_features_of_a_word():
    assert sorted(features(["The", "U.S.-led", "War"], 1, 3)) == sorted(
        ["any word", "word u.s.-led", "shape X.X.-x", "before the", "shape before Xx", "after war", "shape after Xx"]
        + [f"begins {part}" for part in ("u", "u.", "u.s")]
        + [f"ends {part}" for part in ("d", "ed", "led")]
    )
    assert sorted(features(["7"], 0, 4)) == sorted(
        ["any word", "word 7", "shape 0", "begins 7", "ends 7", "nothing before", "nothing after"]
    )
    assert shape("McDonald's2004") == "XxXx'x0"


@pytest.mark.parametrize("at_once", [1, 256])
def test_loss_and_gradient_are_those_of_all_sequences(fitted, at_once, monkeypatch):
    """Sentences of several lengths in one batch and each alone: a word that stands at another place
    among all, a sentence without words that counts, a lost end score or a penalty twice as large
    would show here."""
    monkeypatch.setattr(crf_features, "AT_ONCE", at_once)
    words, sentences = fitted.read([*CORPUS, {"text": []}])
    gold = crf_features.torch.tensor([fitted.tags.index(tag) for sentence in CORPUS for tag in sentence["tags"]])
    flat = np.random.default_rng(0).normal(size=fitted.weights.size)
    value, gradient = fitted.loss(flat, words, sentences, gold)
    assert value == pytest.approx(penalised(flat, fitted))
    moves = list(range(len(flat) - 15, len(flat)))
    places = np.random.default_rng(1).choice(len(flat) - 15, 10, replace=False).tolist() + moves

    def moved(changes: np.ndarray) -> float:
        other = flat.copy()
        other[places] += changes
        return penalised(other, fitted)

    np.testing.assert_allclose(gradient[places], approx_fprime(np.zeros(len(places)), moved, 1e-6), atol=1e-3)


def test_the_weights_are_the_best_of_all(fitted):
    """Another method, started elsewhere, finds no better ones: it minimises the enumerated
    likelihood over the weights of moves and ends, at the features' weights that were found."""
    found = fitted.weights.ravel()
    emitting = len(fitted.known) * len(fitted.tags)

    def rest(changed: np.ndarray) -> float:
        return penalised(np.concatenate([found[:emitting], changed]), fitted)

    other = minimize(rest, np.ones(len(found) - emitting), method="BFGS")
    assert penalised(found, fitted) == pytest.approx(other.fun, rel=1e-4)
    np.testing.assert_allclose(other.x, found[emitting:], atol=0.02)
    assert fitted.parameter_count == len(found) == emitting + 3 * 3 + 2 * 3


def test_the_most_probable_tags_are_found(fitted):
    """Of sentences with known and new words, longest first, and one without any."""
    asked = [["Ann", "saw", "the", "cats"], ["the", "saw"], [], ["zebra"]]
    found = fitted.predict([{"text": words} for words in asked])
    assert found[2] == []
    for words, tags in zip(asked, found, strict=True):
        if words:
            scores = log_scores(fitted, fitted.weights, words)
            assert tuple(tags) == max(scores, key=scores.get)
    assert fitted.predict(CORPUS) == [sentence["tags"] for sentence in CORPUS]


def test_rare_features_are_left_out():
    crf = FeatureCRF(**SETTINGS | {"min_count": 2}, iterations=1)
    crf.fit(CORPUS, [])
    assert "word saw" in crf.known and "word sleeps" not in crf.known
    assert "word ann" in crf.known and "after sleeps" not in crf.known


def test_a_stronger_penalty_gives_smaller_weights(fitted):
    """And fewer iterations stop before the optimum."""
    strong, short = FeatureCRF(**SETTINGS | {"l2": 50.0}), FeatureCRF(**SETTINGS, iterations=1)
    for crf in (strong, short):
        crf.fit(CORPUS, [])
    assert np.abs(strong.weights).max() < 0.2 * np.abs(fitted.weights).max()
    assert penalised(short.weights.ravel(), fitted) > 1.05 * penalised(fitted.weights.ravel(), fitted)

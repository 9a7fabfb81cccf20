"""Latent semantic analysis against a dense decomposition of a matrix that is counted by hand."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from architectures.feedforward.lsa import LatentSemanticAnalysis, spread

TEXTS = [
    "human machine interface for lab computer applications",
    "survey of user opinion of computer system response time",
    "The user interface system system management",
    ["graph", "minors", "the", "survey"],
    "the intersection graph of paths in trees",
    "graph minors trees trees widths of trees",
    "paths of trees , graph of paths",
    "response time of the human user",
]
LABELS = ["computer", "computer", "computer", "graph", "graph", "graph", "graph", "computer"]
TRAIN = [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)]


def words(text) -> list[str]:
    return [word.lower() for word in (text if isinstance(text, list) else text.split())]


VOCABULARY = sorted({word for text in TEXTS for word in words(text)})


def weights(texts) -> dict[str, float]:
    """1 + sum of p log p / log N of each word, text by text."""
    found = {}
    for word in VOCABULARY:
        counts = [words(text).count(word) for text in texts]
        shares = [count / sum(counts) for count in counts if count]
        found[word] = 1 + sum(p * math.log(p) for p in shares) / math.log(len(texts))
    return found


def column(text) -> np.ndarray:
    """A text's column of X."""
    counts, weight = Counter(words(text)), weights(TEXTS)
    return np.array([math.log2(1 + counts[word]) * weight[word] for word in VOCABULARY])


def dense(dimensions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, S and V of X (terms by texts); the largest entry of each column of U is positive."""
    U, S, Vt = np.linalg.svd(np.stack([column(text) for text in TEXTS], axis=1), full_matrices=False)
    U, S, V = U[:, :dimensions], S[:dimensions], Vt[:dimensions].T
    signs = np.sign(U[np.abs(U).argmax(0), np.arange(dimensions)])
    return U * signs, S, V * signs


def fitted(**settings) -> LatentSemanticAnalysis:
    model = LatentSemanticAnalysis("classify", **{"dimensions": 3} | settings)
    model.fit(TRAIN, [])
    return model


def test_a_training_text_is_folded_in_as_its_row_of_the_decomposition():
    """With other weights or without S^-1 a text would lie elsewhere than the texts it is like."""
    model, (U, S, V) = fitted(), dense(3)
    assert model.counter.get_feature_names_out().tolist() == VOCABULARY
    assert np.allclose(model.values, S)
    assert np.allclose(model.terms, U)
    assert np.allclose(model.fold_in(TEXTS), V)


def test_an_unseen_text_is_projected_and_unknown_words_are_ignored():
    model, (U, S, _) = fitted(), dense(3)
    text = "trees trees user zebra"
    expected = column("trees trees user") @ U / S
    assert np.allclose(model.fold_in([text])[0], expected)
    place = expected * S
    assert np.allclose(model.coordinates([text])[0], place / np.linalg.norm(place))
    assert not model.coordinates(["zebra"]).any()


def test_a_word_of_all_texts_alike_weighs_nothing_and_one_of_one_text_all():
    """That is why there is no list of stop words."""
    model = LatentSemanticAnalysis("classify", dimensions=2)
    model.fit([{"text": f"the {word} {word} the", "label": word} for word in ("cat", "dog", "cow")], [])
    assert dict(zip(model.counter.get_feature_names_out(), model.weights, strict=True)) == pytest.approx(
        {"cat": 1, "cow": 1, "dog": 1, "the": 0}
    )


def test_the_words_of_one_text_alone_weigh_one():
    """Its logarithm is zero, by which nothing can be divided."""
    assert spread(sparse.csr_array(np.array([[2, 1]]))).tolist() == [1.0, 1.0]


def test_the_machine_reads_the_coordinates():
    model, (_, S, V) = fitted(C=0.3), dense(3)
    features = V * S / np.linalg.norm(V * S, axis=1, keepdims=True)
    machine = LinearSVC(C=0.3, random_state=0).fit(features, LABELS)
    found = model.machine.decision_function(model.coordinates(TEXTS))
    assert np.allclose(found, machine.decision_function(features), atol=1e-3)
    assert model.predict(TRAIN) == LABELS
    assert model.parameter_count == (1 + 3) * len(VOCABULARY) + 3 + 3 + 1


def test_fewer_directions_than_wanted_are_taken_without_rounding():
    """Division by a singular value of 1e-17 would make noise of every coordinate."""
    model = LatentSemanticAnalysis("classify", dimensions=100)
    model.fit([*TRAIN[:3], TRAIN[4], *TRAIN[:3]], [])  # seven texts, four of them different
    assert len(model.values) == 4
    assert np.abs(model.fold_in(TEXTS)).max() < 10


PAIRS = [
    {"first": "who is the user", "second": TEXTS[2], "label": "0", "group": "a"},
    {"first": "who is the user", "second": TEXTS[5], "label": "1", "group": "a"},
    {"first": ["graph", "of", "trees"], "second": TEXTS[6], "label": "1", "group": "b"},
    {"first": ["graph", "of", "trees"], "second": TEXTS[7], "label": "0", "group": "b"},
]


def test_a_candidate_is_scored_by_its_cosine_with_the_question():
    """Each different text of either side is one document; the labels say nothing."""
    model = LatentSemanticAnalysis("rank", dimensions=4)
    model.fit(PAIRS, [])
    texts = ["who is the user", TEXTS[2], TEXTS[5], "graph of trees", TEXTS[6], TEXTS[7]]
    twin = LatentSemanticAnalysis("classify", dimensions=4)
    twin.fit([{"text": text, "label": str(number % 2)} for number, text in enumerate(texts)], [])
    assert np.allclose(model.values, twin.values)
    for row, score in zip(PAIRS, model.predict(PAIRS), strict=True):
        u, v = (twin.fold_in([row[side]])[0] * twin.values for side in ("first", "second"))
        assert score == pytest.approx(u @ v / np.linalg.norm(u) / np.linalg.norm(v))
    flipped = LatentSemanticAnalysis("rank", dimensions=4)
    flipped.fit([row | {"label": "0"} for row in PAIRS], [])
    assert np.allclose(flipped.predict(PAIRS), model.predict(PAIRS))
    assert isinstance(model.predict(PAIRS)[0], float)


def test_words_of_others_start_from_the_rows_of_us():
    vectors, (U, S, _) = fitted().word_vectors(), dense(3)
    assert np.allclose([vectors[word] for word in VOCABULARY], U * S)

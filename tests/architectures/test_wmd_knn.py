"""Word mover's distance against linear programmes, and the search against all distances."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse.linalg import svds

from architectures.blocks.corpus_graph import count_pairs, positive_pmi
from architectures.classical import wmd_knn
from architectures.classical.wmd_knn import WordMoversNeighbours, transport, vote
from harness.ragged import Ragged

WORDS = [f"w{number}" for number in range(12)]
VECTORS = dict(zip(WORDS, np.random.default_rng(0).normal(size=(12, 3)), strict=True))


def programme(first: np.ndarray, second: np.ndarray, costs: np.ndarray) -> float:
    """The least cost by a dense linear programme over every share that may be moved."""
    n, m = costs.shape
    constraints = np.zeros((n + m, n * m))
    for i in range(n):
        for j in range(m):
            constraints[i, i * m + j] = constraints[n + j, i * m + j] = 1
    shares = np.concatenate([first / first.sum(), second / second.sum()])
    return linprog(costs.ravel(), A_eq=constraints, b_eq=shares).fun


def bag(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Counts of a text's words, and their vectors."""
    words = sorted(set(text.split()))
    return np.array([text.split().count(word) for word in words]), np.array([VECTORS[word] for word in words])


def exact(first: str, second: str) -> float:
    (one, u), (other, v) = bag(first), bag(second)
    return programme(one, other, np.sqrt(((u[:, None] - v) ** 2).sum(-1)))


def drawn(texts: int, seed: int = 1) -> list[dict]:
    random = np.random.default_rng(seed)
    return [
        {"text": " ".join(random.choice(WORDS, random.integers(1, 6))), "label": str(random.integers(3))}
        for _ in range(texts)
    ]


TRAIN, ASKED = drawn(14), drawn(6, seed=2)


def fitted(train=TRAIN, dev=ASKED, vectors=VECTORS, **settings) -> WordMoversNeighbours:
    model = WordMoversNeighbours(**settings)
    if vectors:
        model.inherit("vectors", SimpleNamespace(word_vectors=lambda: vectors), [])
    model.fit(train, dev)
    return model


@pytest.mark.parametrize("most", [0, wmd_knn.MOST_UNITS], ids=["programme", "assignment"])
def test_the_cost_is_that_of_the_linear_programme(most, monkeypatch):
    """Both ways to it, for counts that differ, of several totals."""
    monkeypatch.setattr(wmd_knn, "MOST_UNITS", most)
    random = np.random.default_rng(3)
    for n, m in ((1, 1), (1, 4), (3, 2), (4, 5)):
        first, second, costs = random.integers(1, 4, n), random.integers(1, 4, m), random.random((n, m))
        assert transport(first, second, costs) == pytest.approx(programme(first, second, costs))


def test_long_texts_are_left_to_the_programme(monkeypatch):
    """An assignment of thousands of units would take minutes."""
    monkeypatch.setattr(wmd_knn, "linear_sum_assignment", None)
    assert transport(np.array([3, 14]), np.array([1, 12]), np.array([[1.0, 2], [3, 5]])) > 0
    with pytest.raises(TypeError):
        transport(np.array([3, 13]), np.array([1, 11]), np.array([[1.0, 2], [3, 5]]))


def test_as_many_units_as_are_few_are_assigned(monkeypatch):
    monkeypatch.setattr(wmd_knn, "MOST_UNITS", 6)
    monkeypatch.setattr(wmd_knn, "linprog", None)
    assert transport(np.array([1, 1]), np.array([1, 2]), np.array([[0.0, 2], [3, 0]])) == pytest.approx(1 / 6 * 2)


def test_the_nearest_text_is_found_wherever_it_stands_in_training():
    """A search that ends by the number of a text, not by its distance, would miss some."""
    distances = {(row["text"], other["text"]): exact(row["text"], other["text"]) for row in ASKED for other in TRAIN}
    for start in range(len(TRAIN)):
        train = TRAIN[start:] + TRAIN[:start]
        model = fitted(train, prefetch=len(TRAIN))
        for row in ASKED:
            nearest = min(distances[row["text"], other["text"]] for other in train)
            assert model.nearest(row["text"], 1)[0][0] == pytest.approx(nearest)


def test_distances_are_those_of_the_nearest_texts():
    """Every distance, in order: pruning by the relaxed one loses none of them."""
    model = fitted(prefetch=len(TRAIN))
    for row in ASKED:
        distances = sorted((exact(row["text"], other["text"]), place) for place, other in enumerate(TRAIN))
        found = model.nearest(row["text"], 4)
        assert [distance for distance, _ in found] == pytest.approx([distance for distance, _ in distances[:4]])
        assert [place for _, place in found] == [place for _, place in distances[:4]]


def test_the_distance_is_a_metric():
    texts = [row["text"] for row in TRAIN]
    model = fitted(prefetch=len(TRAIN))
    table = np.zeros((len(texts), len(texts)))
    for i, text in enumerate(texts):
        for distance, j in model.nearest(text, len(texts)):
            table[i, j] = distance
    assert np.allclose(np.diag(table), 0)
    assert np.allclose(table, table.T)
    assert (table[:, None] <= table[:, :, None] + table.T[None] + 1e-9).all()
    assert model.nearest("w3 W3 w3", 1)[0][0] == pytest.approx(min(exact("w3", text) for text in texts))


def test_the_relaxed_distance_is_below_the_exact_one_and_so_are_the_centroids():
    """A bound that is too large would prune a neighbour. Of the two neither is always the larger:
    the same words in other shares have other centroids, and cost nothing when each is free."""
    model = fitted()
    for row in ASKED:
        asked, own = bag(row["text"])
        words = np.array([model.places[word] for word in sorted(set(row["text"].split()))])
        bounds = model.relaxed(words, asked)
        for other, bound in zip(TRAIN, bounds, strict=True):
            counts, vectors = bag(other["text"])
            costs = np.sqrt(((own[:, None] - vectors) ** 2).sum(-1))
            ways = (asked / asked.sum() * costs.min(1)).sum(), (counts / counts.sum() * costs.min(0)).sum()
            assert bound == pytest.approx(max(ways))
            centroids = np.linalg.norm(asked @ own / asked.sum() - counts @ vectors / counts.sum())
            assert max(centroids, bound) <= exact(row["text"], other["text"]) + 1e-9


def test_only_so_many_distances_are_computed_and_none_that_cannot_matter(monkeypatch):
    """What is asked costs a programme each: a limit that is ignored makes hours of minutes."""
    asked = []
    monkeypatch.setattr(wmd_knn, "transport", lambda *args: asked.append(args) or transport(*args))
    model = fitted(prefetch=5)
    asked.clear()
    model.nearest(ASKED[0]["text"], 3)
    assert 3 <= len(asked) <= 5
    asked.clear()
    assert len(model.nearest(ASKED[0]["text"], 8)) == len(asked) == 8
    asked.clear()
    assert model.nearest(TRAIN[0]["text"], 1)[0][0] == pytest.approx(0)
    assert len(asked) == 1, "nothing is nearer than the same text"


def test_neighbours_vote_and_the_nearest_break_a_tie():
    assert vote(["a", "b", "b"]) == "b"
    assert vote(["a", "b", "b", "a"]) == "b", "as that of three"
    assert vote(["a", "b"]) == "a"
    assert vote(["c", "a", "b", "a", "b"]) == "a"


def test_the_number_of_neighbours_is_the_best_on_dev():
    """The smallest of those that are as good."""
    train = [{"text": f"w{number}", "label": label} for number, label in enumerate("aabbb")]
    line = {f"w{number}": np.array([float(number)]) for number in range(5)} | {"x": np.array([1.1])}
    for label, k in (("a", 1), ("b", 5)):
        model = fitted(train, [{"text": "x", "label": label}], line, neighbours=(5, 3, 1))
        assert model.k == k
        assert model.predict([{"text": "x"}]) == [label]


def test_of_a_long_dev_some_300_rows_are_asked(monkeypatch):
    """A distance costs too much to ask all of them for the number of neighbours."""
    asked: list[str] = []
    monkeypatch.setattr(WordMoversNeighbours, "nearest", lambda self, text, k: asked.append(text) or [(0.0, 0)])
    fitted(dev=[{"text": str(number), "label": "a"} for number in range(630)])
    assert asked == [str(number) for number in range(0, 630, 2)]


def test_words_without_vector_and_stop_words_are_left_out():
    """Stop words and marks have vectors in every published table."""
    model = fitted(vectors=VECTORS | {"the": np.ones(3), "of": np.zeros(3), "!": -np.ones(3), ",": np.ones(3)})
    row, plain = f"The , {ASKED[0]['text'].upper()} of zebra !", ASKED[0]["text"]
    assert model.nearest(row, 3) == model.nearest(plain, 3)
    labels = [row["label"] for row in TRAIN]
    assert model.predict([{"text": "the zebra ?"}]) == [max(sorted(set(labels)), key=labels.count)]
    short = fitted([{"text": "the of", "label": "2"}, {"text": "zebra", "label": "2"}, *TRAIN[:3]], TRAIN[:1])
    assert short.nearest(TRAIN[1]["text"], 1)[0] == (pytest.approx(0), 1)
    assert short._answer(short.nearest(TRAIN[1]["text"], 1)) == TRAIN[1]["label"]


def test_without_given_vectors_they_are_the_directions_of_positive_pmi():
    """Vectors times their own transposes are the PMI, up to what the directions leave out."""
    model = fitted(vectors=None, dimensions=4, window=3)
    words = sorted({word for row in TRAIN for word in row["text"].split()})
    assert list(model.places) == words
    ids = Ragged.of([words.index(word) for word in row["text"].split()] for row in TRAIN)
    pmi = positive_pmi(*count_pairs(ids, len(words), 3)).toarray()
    U, S, _ = svds(pmi, 4)
    expected = U * np.sqrt(S)
    assert np.allclose(model.vectors @ model.vectors.T, expected @ expected.T)
    assert model.parameter_count == model.vectors.size == 4 * len(words)
    assert WordMoversNeighbours.takes == ("vectors",)


@pytest.mark.parametrize("neighbours", [(), (0, 3)])
def test_no_neighbours_are_refused_by_name(neighbours):
    with pytest.raises(
        ValueError, match=f"neighbours={re.escape(str(neighbours))}: expected is a number of 1 at least"
    ):
        WordMoversNeighbours(neighbours=neighbours)

"""TextRank against a linear solve, and graphs that are drawn by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from architectures.blocks.content_words import content_words
from architectures.graph.textrank import TextRank, importance, neighbours, similarity

# One heavy edge, a triangle, a tail, and a vertex by itself.
EDGES = {(0, 1): 3.0, (1, 2): 1.0, (2, 3): 0.5, (1, 3): 2.0, (3, 4): 0.25}


def graph(edges: dict[tuple[int, int], float], size: int) -> np.ndarray:
    weights = np.zeros((size, size))
    for (i, j), weight in edges.items():
        weights[i, j] = weights[j, i] = weight
    return weights


def solved(weights: np.ndarray, damping: float = 0.85) -> np.ndarray:
    """The scores that solve the equations, vertex by vertex."""
    size = len(weights)
    system = np.eye(size)
    for i in range(size):
        for j in range(size):
            if weights[j, i]:
                system[i, j] -= damping * weights[j, i] / weights[j].sum()
    return np.linalg.solve(system, np.full(size, 1 - damping))


def test_importance_solves_the_equations_of_five_vertices():
    """Weights count, each vertex hands on what it has by their shares, and one by itself keeps 1 -
    d."""
    weights = graph(EDGES, 6)
    found = importance(weights, 0.85, 1e-12)
    assert np.allclose(found, solved(weights))
    assert found[5] == pytest.approx(0.15)
    assert np.allclose(importance(weights, 0.5, 1e-12), solved(weights, 0.5))
    assert found[:5].sum() == pytest.approx(5), "as much in all as at the start"


def test_importance_starts_at_one_and_ends_with_the_first_small_change():
    """Of two vertices whose edges differ only the first step is needed; a coarse tolerance ends
    early."""
    weights = graph({(0, 1): 1.0, (1, 2): 1.0}, 3)
    once = 0.15 + 0.85 * np.array([0.5, 2.0, 0.5])
    assert np.allclose(importance(weights, 0.85, 0.9), once)
    change = np.abs(importance(weights, 0.85, 0.9) - 1).max()
    assert not np.allclose(importance(weights, 0.85, change), once), "a change of the tolerance itself is not small"
    assert np.array_equal(importance(graph({(0, 1): 7.0}, 2), 0.85, 1e-4), [1, 1])
    assert importance(np.zeros((0, 0)), 0.85, 1e-4).size == 0
    fine = importance(weights, 0.85, 1e-4)
    assert 0 < np.abs(fine - solved(weights)).max() < 1e-3


def test_words_within_a_window_are_joined_once_in_both_directions():
    """A window of two words is a pair of neighbours; stop words and marks are gone before."""
    words = content_words("The cat saw the dog . A dog , the CAT , and dog eat")
    assert words == ["cat", "saw", "dog", "dog", "cat", "dog", "eat"]
    names, together = neighbours(words, 2)
    assert names == ["cat", "dog", "eat", "saw"]
    assert together.tolist() == [[0, 1, 0, 1], [1, 0, 1, 1], [0, 1, 0, 0], [1, 1, 0, 0]]
    _, wider = neighbours(words, 3)
    assert wider.tolist() == [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]


TRAIN = [
    {"text": "goal goal match referee goal team player", "label": "s"},
    {"text": ["team", "match", "goal", "of", "the", "Team"], "label": "s"},
    {"text": "bank profit bank shares market bank", "label": "b"},
    {"text": "shares bank profit", "label": "b"},
]


def fitted(**settings) -> TextRank:
    model = TextRank("classify", **settings)
    model.fit(TRAIN, [])
    return model


def test_the_top_third_of_the_words_count_by_their_importance():
    """Five words: two keywords; goal is said three times and has two neighbours as match has."""
    model = TextRank("classify", tolerance=1e-10)
    # goal - match - referee - goal - team - player: goal has match, referee and team.
    expected = solved(graph({(0, 1): 1, (1, 4): 1, (4, 0): 1, (0, 2): 1, (2, 3): 1}, 5))
    found = model.keywords(TRAIN[0]["text"])
    assert found == pytest.approx({"goal": 3 * expected[0], "team": expected[2]})
    assert model.keywords("the of !") == {}
    assert model.keywords("zebra") == pytest.approx({"zebra": 0.15})
    four = model.keywords("a one1 two2 three3 two2 four4")
    assert list(four) == ["two2", "four4"], "a third is rounded up, and the alphabet decides"


def test_the_machine_reads_the_keywords():
    model = fitted(C=0.2, window=3)
    keywords = [model.keywords(row["text"]) for row in TRAIN]
    names = sorted({word for text in keywords for word in text})
    features = np.array([[text.get(name, 0.0) for name in names] for text in keywords])
    machine = LinearSVC(C=0.2, random_state=0).fit(features, list("ssbb"))
    assert list(model.places) == names
    assert np.allclose(model.machine.decision_function(model.features(TRAIN)), machine.decision_function(features))
    assert model.predict([{"text": "a goal , a goal"}, {"text": "bank"}]) == ["s", "b"]
    assert model.features([{"text": "zebra"}]).nnz == 0
    assert model.parameter_count == len(names) + 1


def test_settings_reach_the_graph():
    text = "one1 two2 three3 four4 two2 five5 six6"
    plain = TextRank("classify").keywords(text)
    for other in ({"window": 4}, {"damping": 0.5}, {"tolerance": 0.5}):
        assert TextRank("classify", **other).keywords(text) != plain


def test_the_similarity_of_sentences_by_hand():
    first, second = ["cat", "dog", "cat", "eat"], ["cat", "saw", "eat", "mouse", "cat"]
    assert similarity(first, second) == pytest.approx(2 / (math.log(4) + math.log(5)))
    assert similarity(["cat"], ["cat"]) == 0 == similarity([], ["cat"])
    assert similarity(["cat"], ["cat", "dog"]) == pytest.approx(1 / math.log(2))


QUESTION = "Who bought the red car ?"
CANDIDATES = [
    "A farmer bought the red car .",
    "The red ship sank .",
    "A farmer saw a ship and a car .",
    "Nobody knows .",
]


def pairs(group: str, question: str, candidates: list[str]) -> list[dict]:
    return [{"first": question, "second": candidate, "group": group} for candidate in candidates]


def test_candidates_are_ranked_in_one_graph_with_their_question():
    """The words that are left: bought red car | farmer bought red car | red ship sank | farmer saw
    ship car | knows."""
    model = TextRank("rank", tolerance=1e-10)
    model.fit([], [])
    logs = {2: math.log(2), 3: math.log(3), 4: math.log(4), 1: 0.0}
    edges = {
        (0, 1): 3 / (logs[3] + logs[4]),
        (0, 2): 1 / (logs[3] + logs[3]),
        (0, 3): 1 / (logs[3] + logs[4]),
        (1, 2): 1 / (logs[4] + logs[3]),
        (1, 3): 2 / (logs[4] + logs[4]),
        (2, 3): 1 / (logs[3] + logs[4]),
    }
    assert content_words(CANDIDATES[3]) == ["knows"]
    expected = solved(graph(edges, 5))[1:]
    rows = pairs("a", QUESTION, CANDIDATES)
    found = model.predict(rows)
    assert found == pytest.approx(expected.tolist())
    others = pairs("b", "Where is the ship ?", CANDIDATES[::-1][:3])
    mixed = [row for two in zip(rows, others, strict=False) for row in two] + rows[3:]
    both = model.predict(mixed)
    assert [both[0], both[2], both[4], both[6]] == found, "another question has a graph of its own"
    assert model.predict(mixed[::-1]) == both[::-1]
    assert model.predict(rows[:1]) == [pytest.approx(1)]


def test_ranking_learns_nothing():
    model = TextRank("rank")
    model.fit([row | {"label": "1"} for row in pairs("a", QUESTION, CANDIDATES)], [])
    assert model.parameter_count == 0
    assert model.fitted_state() == {}

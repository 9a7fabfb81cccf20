"""The corpus graph: counts, weights and normalisation by hand and against dense numpy, and which
texts it can place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from architectures.blocks import corpus_graph as block
from architectures.blocks.corpus_graph import TextGraph, corpus_graph, count_pairs, normalised, positive_pmi, tf_idf
from harness.ragged import Ragged

# Words 0 to 3; windows of two words: 01 | 01 | 12, 23 | 3
TEXTS = Ragged.of([[0, 1], [0, 1], [1, 2, 3], [3]])


def dense_counts(texts: list[list[int]], words: int, window: int) -> tuple[np.ndarray, int]:
    """Windows with both of two words, counted one by one."""
    sets = [set(t[i : i + window]) for t in texts if t for i in range(max(1, len(t) - window + 1))]
    return np.array([[sum(i in s and j in s for s in sets) for j in range(words)] for i in range(words)]).reshape(
        words, words
    ), len(sets)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 4), max_size=9), min_size=1, max_size=6), st.integers(1, 4))
def test_pairs_are_counted_as_one_by_one(texts, window):
    """Each window counts once, repeats inside it do not, and a short text is one window."""
    counts, windows = count_pairs(Ragged.of(texts), 5, window)
    expected, number = dense_counts(texts, 5, window)
    assert windows == number and np.array_equal(counts.toarray(), expected)


def test_windows_beyond_those_counted_at_once_are_not_lost(monkeypatch):
    monkeypatch.setattr(block, "WINDOWS_AT_ONCE", 2)
    counts, windows = count_pairs(TEXTS, 4, 2)
    assert windows == 5 and np.array_equal(
        counts.toarray(), dense_counts([list(text) for text in map(TEXTS.__getitem__, range(4))], 4, 2)[0]
    )


def test_pmi_by_hand_and_none_where_it_is_not_positive():
    """Of five windows 0 is in 2, 1 in 3, 2 in 2, 3 in 2: p(1, 2) = 1/5 < 6/25 = p(1) p(2) gives no
    edge."""
    found = positive_pmi(*count_pairs(TEXTS, 4, 2)).toarray()
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = math.log((2 / 5) / (2 / 5 * 3 / 5))
    expected[2, 3] = expected[3, 2] = math.log((1 / 5) / (2 / 5 * 2 / 5))
    assert np.allclose(found, expected)


def test_independent_words_have_no_edge():
    """PMI 0: p(0, 1) = 1/4 = 1/2 * 1/2."""
    assert positive_pmi(*count_pairs(Ragged.of([[0, 1], [0], [1], [2]]), 3, 20)).nnz == 0


def test_a_text_and_its_word_are_joined_by_tf_idf():
    found = tf_idf(Ragged.of([[0, 0, 1], [1], [1, 2]]), 3).toarray()
    assert np.allclose(found, [[2 * math.log(3), 0, 0], [0, 0, 0], [0, 0, math.log(3)]])


def test_the_graph_has_no_edge_between_texts_and_one_from_each_node_to_itself():
    graph = corpus_graph(TEXTS, 4, 2).toarray()
    assert graph.shape == (8, 8) and np.array_equal(graph, graph.T)
    assert np.array_equal(graph[:4, :4], np.eye(4)) and np.array_equal(graph.diagonal(), np.ones(8))
    assert np.allclose(graph[:4, 4:], tf_idf(TEXTS, 4).toarray())
    assert np.allclose(graph[4:, 4:] - np.eye(4), positive_pmi(*count_pairs(TEXTS, 4, 2)).toarray())


def test_the_graph_is_normalised_on_both_sides():
    graph = corpus_graph(TEXTS, 4, 2)
    dense = graph.toarray()
    scale = np.diag(dense.sum(1) ** -0.5)
    assert np.allclose(normalised(graph).toarray(), scale @ dense @ scale)


ROWS = [{"id": "a", "text": "good film"}, {"id": "b", "text": ["Good", "cast"]}, {"id": "c", "text": "film film"}]


def test_rows_become_the_graph_of_their_lower_cased_words():
    """Texts first, in their order; good film cast are the words 0, 1 and 2."""
    graph = TextGraph.of(iter(ROWS), window=20, min_count=1)
    expected = normalised(corpus_graph(Ragged.of([[0, 1], [0, 2], [1, 1]]), 3, 20))
    assert np.array_equal(graph.adjacency.toarray(), expected.toarray())
    assert graph.places(ROWS[::-1]).tolist() == [2, 1, 0]


def test_rare_words_are_left_out_and_a_text_may_lose_all_its_words():
    graph = TextGraph.of([*ROWS, {"id": "d", "text": "cast"}], window=20, min_count=3)
    assert graph.adjacency.shape == (5, 5)
    assert np.array_equal(graph.adjacency.toarray()[3], np.eye(5)[3])


def test_only_texts_of_the_graph_have_a_place():
    """A known id with another text is another text: its scores would be those of the old one."""
    graph = TextGraph.of(ROWS, window=20, min_count=1)
    for strange in ({"id": "x", "text": "good film"}, {"id": "a", "text": "bad film"}):
        with pytest.raises(ValueError, match=f"row {strange['id']} was not"):
            graph.places([ROWS[1], strange])

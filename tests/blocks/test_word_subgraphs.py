"""Sub-graphs of a text's words: roots, breadth-first sequences and their batch."""

from __future__ import annotations

import numpy as np

from architectures.blocks.word_subgraphs import SubgraphsInOrder, WordSubgraphs, breadth_first, neighbours_of, roots_of

EDGES = np.array([[0, 1, 2], [0, 2, 5], [1, 3, 1], [2, 4, 1], [2, 3, 1], [5, 6, 1]])
"""Nodes 0 to 4 in one part of the graph, 5 and 6 in another, 7 alone."""


def test_a_breadth_first_search_by_hand():
    """Heavy edges first, of equally heavy ones the first node; what is met once is not met again,
    and a sequence ends where its part of the graph does."""
    neighbours = neighbours_of(8, EDGES)
    assert neighbours == [[2, 1], [0, 3], [0, 3, 4], [1, 2], [2], [6], [5], []]
    assert breadth_first(0, neighbours, 10) == [0, 2, 1, 3, 4]
    assert breadth_first(3, neighbours, 10) == [3, 1, 2, 0, 4]
    assert breadth_first(3, neighbours, 3) == [3, 1, 2]
    assert breadth_first(6, neighbours, 10) == [6, 5]
    branching = neighbours_of(5, np.array([[0, 1, 2], [0, 2, 1], [1, 3, 1], [2, 4, 1]]))
    assert breadth_first(0, branching, 10) == [0, 1, 2, 3, 4], "what was met first is asked first"
    assert breadth_first(7, neighbours, 10) == [7] and breadth_first(0, neighbours, 1) == [0]


def test_roots_have_most_neighbours_then_occur_most_then_have_well_joined_neighbours():
    """Nodes 0, 1 and 3 have two neighbours each: 1 occurs most, and those of 0 and 3 have five."""
    neighbours = neighbours_of(8, EDGES)
    assert roots_of(neighbours, [1, 2, 1, 1, 1, 1, 1, 9], 8) == [2, 1, 0, 3, 4, 5, 6, 7]
    assert roots_of(neighbours, [1, 1, 1, 1, 1, 1, 1, 9], 8) == [2, 0, 3, 1, 4, 5, 6, 7]
    assert roots_of(neighbours, [1] * 8, 2) == [2, 0]


def test_a_text_is_the_sequences_of_its_content_words_by_hand():
    """Words at most two places apart are joined once the stop words are gone: rocket-engine,
    rocket-burns, engine-burns, engine-rocket again, burns-rocket again."""
    view = WordSubgraphs(min_count=1, roots=3, around=4)
    texts = ["The Rocket, engine burns the rocket.", "engine", "the of"]
    view.fit(texts)
    columns = view.encode(texts)
    batch = view.collate(columns, np.arange(3))
    names = ["", "?", *view.vocabulary.words]
    found = [[names[id] for id in row] for row in batch.ids.tolist()]
    rocket, engine, burns = "rocket", "engine", "burns"
    # rocket stands twice, and each time near both others, which are near each other once
    assert found[0] == [rocket, engine, burns, "", engine, rocket, burns, "", burns, rocket, engine, ""]
    assert found[1] == [engine, *[""] * 11]
    assert batch.mask.sum(1).tolist() == [9, 1, 1] and batch.lengths.tolist() == [12, 4, 4]


def test_the_first_root_of_equally_joined_words_is_the_one_that_stands_most_often():
    view = WordSubgraphs(min_count=1, roots=1, around=3)
    text = "moon tide boat tide"
    view.fit([text])
    found = view.collate(view.encode([text]), np.arange(1)).ids[0].tolist()
    assert ["", "?", *view.vocabulary.words][found[0]] == "tide" and len(set(found)) == 3


def test_unknown_words_are_nodes_of_their_own():
    view = WordSubgraphs(min_count=2, roots=5, around=2)
    view.fit(["known known"])
    batch = view.collate(view.encode(["alpha beta known"]), np.arange(1))
    assert batch.mask.sum() == 6 and sorted(batch.ids[batch.mask].unique().tolist()) == [1, 2]


def test_sequences_in_the_order_of_the_text_have_the_same_words():
    """By where the text says each first: the last word is a root too, and stands behind what it is
    near. The order of the roots stays."""
    texts = ["dusk moon tide moon dusk boat"]
    searched, ordered = (cls(min_count=1, roots=4, around=3) for cls in (WordSubgraphs, SubgraphsInOrder))
    found = []
    for view in (searched, ordered):
        view.fit(texts)
        names = ["", "?", *view.vocabulary.words]
        batch = view.collate(view.encode(texts), np.arange(1))
        found.append([[names[id] for id in row] for row in batch.ids.reshape(-1, 3).tolist()])
    places = {"dusk": 0, "moon": 1, "tide": 2, "boat": 3}
    assert len(found[0]) == 4 and found[0] != found[1]
    assert found[1] == [sorted(each, key=lambda word: places[word]) for each in found[0]]

"""Graph networks see of a text only what its graph has: each distinct word once, and who stands
near whom."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.views.graph import WordGraphs, WordPairGraphs
from harness.views.words import UNKNOWN
from tests.support.graphs import near

TEXTS = ["the cat saw the dog", "dog", "a cat a cat , zebra and yak"]


def fitted(cls: type = WordGraphs, **options) -> WordGraphs:
    view = cls(min_count=1, **options)
    view.fit(TEXTS[:2])
    return view


def edges_of(batch, text: int, words: list[str]) -> dict[tuple[str, str], int]:
    """Edges of one text of a batch by their words, source first."""
    nodes = batch.mask.shape[1]
    found = {}
    for s, t, count in zip(batch.sources.tolist(), batch.targets.tolist(), batch.counts.tolist(), strict=True):
        if t // nodes == text:
            assert s // nodes == text, "an edge leads from one text into another"
            found[words[s % nodes], words[t % nodes]] = count
    return found


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=9), min_size=1, max_size=4), st.integers(1, 4))
def test_edges_count_the_places_at_which_two_words_are_near(texts, reach):
    """In each text of a batch, whatever its neighbours; distinct words in the order of their
    appearance."""
    view = fitted(reach=reach)
    batch = view.collate(view.encode(texts), np.arange(len(texts)))
    for number, words in enumerate(texts):
        distinct = list(dict.fromkeys(words))
        assert batch.lengths[number] == len(distinct) == batch.mask[number].sum()
        assert edges_of(batch, number, distinct) == near(words, reach)
    assert (batch.targets.diff() >= 0).all()


def test_rows_are_taken_in_their_order_and_padded():
    view = fitted()
    columns = view.encode(TEXTS)
    assert view.lengths(columns).tolist() == [4, 1, 6]
    batch = view.collate(columns, np.array([1, 0]))
    the, cat, saw, dog = view.vocabulary.ids(["the", "cat", "saw", "dog"])
    assert batch.ids.tolist() == [[dog, 0, 0, 0], [the, cat, saw, dog]]
    assert edges_of(batch, 0, ["dog"]) == {} and len(edges_of(batch, 1, ["the", "cat", "saw", "dog"])) == 12
    assert batch.spellings[0, 0] == batch.spellings[1, 3]


def test_unknown_words_are_different_nodes():
    """As one node, zebra and yak would be neighbours of the same words."""
    view = fitted(reach=1)
    batch = view.collate(view.encode(TEXTS[2:]), np.array([0]))
    assert (batch.ids == UNKNOWN).sum() == 5 and len(set(batch.spellings[0].tolist())) == 6
    words = ["a", "cat", ",", "zebra", "and", "yak"]
    assert edges_of(batch, 0, words)["a", "cat"] == 3 and ("zebra", "yak") not in edges_of(batch, 0, words)


def test_the_matrix_has_the_counts_of_each_text():
    view = fitted(reach=1)
    batch = view.collate(view.encode(["a b a b", "b", "x y z"]), np.arange(3))._replace(vectors=torch.zeros(3, 3, 2))
    matrix = batch.adjacency()
    assert matrix.tolist() == [
        [[0, 3, 0], [3, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 1, 0], [1, 0, 1], [0, 1, 0]],
    ]


@pytest.mark.parametrize("text", ["", "one one one"])
def test_a_text_of_one_word_has_one_node_and_no_edge(text):
    view = fitted()
    batch = view.collate(view.encode([text]), np.array([0]))
    assert batch.mask.tolist() == [[True]] and len(batch.sources) == len(batch.counts) == 0


def test_state_survives_json_and_the_reach_is_part_of_the_name_of_what_is_cached():
    view, other = fitted(), WordGraphs()
    other.restore(json.loads(json.dumps(view.state())))
    assert other.encode(TEXTS)["ids"].values.tolist() == view.encode(TEXTS)["ids"].values.tolist()
    assert WordGraphs(reach=2).settings() != WordGraphs().settings()


def pair_numbers(view: WordPairGraphs, text: str) -> dict[tuple[str, str], int]:
    """The number of each edge of a text, source first."""
    batch = view.collate(view.encode(["the", text]), np.array([0, 1]))
    words, nodes = list(dict.fromkeys(text.split())), batch.mask.shape[1]
    ends = ((words[s % nodes], words[t % nodes]) for s, t in zip(batch.sources, batch.targets, strict=True))
    return dict(zip(ends, batch.pairs.tolist(), strict=True))


def test_a_pair_of_words_has_one_number_in_every_text():
    """In training 'the cat' is near twice, with 'dog saw the' between; 'cat saw' once, and never
    'zebra': those share number 0."""
    view = fitted(WordPairGraphs, reach=1)
    view.fit(["the cat saw the dog", "a the cat", "dog the dog"])
    one, other = pair_numbers(view, "dog the cat saw zebra"), pair_numbers(view, "zebra cat the yak")
    assert one["the", "cat"] == other["the", "cat"] and one["cat", "the"] == other["cat", "the"]
    numbers = [one["the", "cat"], one["cat", "the"], one["the", "dog"], one["dog", "the"]]
    assert sorted(numbers) == [1, 2, 3, 4] and view.pairs == 5
    assert {pair for pair, number in (one | other).items() if number == 0} == {
        (a, b) for a, b in one | other if {a, b} not in ({"the", "cat"}, {"the", "dog"})
    }


def test_pairs_with_an_unknown_word_are_not_told_apart():
    """Unknown words have one id, but are different words."""
    view = WordPairGraphs(min_count=2, reach=1)
    view.fit(["the x", "the y", "the z"])
    assert view.pairs == 1 and set(pair_numbers(view, "the x").values()) == {0}


def test_pairs_survive_json():
    """A kept model with other numbers would answer with other pairs' weights."""
    view, other = fitted(WordPairGraphs), WordPairGraphs()
    other.restore(json.loads(json.dumps(view.state())))
    assert view.pairs == other.pairs > 1
    assert pair_numbers(other, TEXTS[0]) == pair_numbers(view, TEXTS[0])
    assert WordPairGraphs(min_pairs=3).settings() != WordPairGraphs().settings()

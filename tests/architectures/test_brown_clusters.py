"""Brown clusters: every loss as a difference of mutual information, the tree by a plain search."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import sparse

from architectures.vectors.brown_clusters import BrownClusters, Window, pair_counts, paths, prefix_vectors
from harness.ragged import Ragged
from tests.support import planted_topics


def information(counts: np.ndarray) -> float:
    """Mutual information of neighbouring classes times the number of pairs, cell by cell."""
    total, left, right = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    return sum(
        n * math.log(n * total / (left[i] * right[j])) for (i, j), n in np.ndenumerate(counts) if n > 0
    )  # fmt: skip


def merged(counts: np.ndarray, kept: int, gone: int) -> np.ndarray:
    found = counts.copy()
    found[kept] += found[gone]
    found[:, kept] += found[:, gone]
    found[gone] = found[:, gone] = 0
    return found


def drawn(words: int, seed: int = 0) -> np.ndarray:
    """Counts with many zeros, as of real words."""
    return np.random.default_rng(seed).poisson(0.7, (words, words)).astype(float)


def test_pairs_are_those_of_a_loop():
    """Within a text, and none across the unknown word (1)."""
    texts = [[2, 3, 2, 3, 1, 4], [], [4], [3, 3]]
    expected = Counter(
        (a, b) for text in texts for a, b in pairwise(text) if a != 1 and b != 1
    )  # fmt: skip
    found = pair_counts(Ragged.of(texts), 5).toarray()
    assert {(i, j): n for (i, j), n in np.ndenumerate(found) if n} == expected


def test_every_loss_is_information_before_less_information_after():
    """While words come and classes merge: a loss that is out of date would merge a wrong pair."""
    counts, window = drawn(7), Window(5)

    def check():
        for pair in combinations(np.flatnonzero(window.taken), 2):
            wanted = information(window.counts) - information(merged(window.counts, *pair))
            assert window.losses[pair] == window.losses[pair[::-1]] == pytest.approx(wanted, abs=1e-9)
        assert np.isinf(window.losses[~window.taken]).all() and np.isinf(window.losses.diagonal()).all()

    for place in range(5):
        seen = np.arange(5) <= place
        window.add(place, counts[place, :5] * seen, counts[:5, place] * seen)
        check()
    for kept, gone in ((1, 3), (0, 4)):
        window.merge(kept, gone)
        check()
    window.add(3, counts[5, :5], np.append(counts[:3, 5], [counts[5, 3], 0]))
    check()
    while window.taken.sum() > 1:
        window.merge(*window.best())
        check()


def branches(counts: np.ndarray, classes: int) -> set[frozenset[int]]:
    """Words below each branch of the tree, by a search that computes the information of every
    merger anew."""
    groups: list[frozenset[int]] = []

    def of(groups: list[frozenset[int]]) -> float:
        return information(np.array([[counts[np.ix_([*a], [*b])].sum() for b in groups] for a in groups]))

    def merge_best() -> None:
        options = []
        for a, b in combinations(groups, 2):
            after = [group for group in groups if group not in (a, b)] + [a | b]
            options.append((of(groups) - of(after), after))
        groups[:] = min(options, key=lambda option: option[0])[1]

    for word in range(len(counts)):
        groups.append(frozenset({word}))
        if len(groups) > classes:
            merge_best()
    found = set(groups)
    while len(groups) > 1:
        merge_best()
        found |= set(groups)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_is_that_of_a_plain_search(seed):
    counts = drawn(11, seed)
    found = paths(sparse.csr_array(counts), clusters=5)
    below = {
        frozenset(word for word, path in enumerate(found) if path.startswith(prefix))
        for each in found
        for prefix in (each[:length] for length in range(len(each) + 1))
    }
    assert below == branches(counts, 5)
    assert len(set(found)) == 5


def test_words_of_equal_contexts_are_one_branch():
    """Which is what others start from."""
    rng = np.random.default_rng(0)
    kinds = [["the", "a"], ["cat", "dog", "cow"], ["sees", "hears"]]
    texts = [" ".join(str(rng.choice(kinds[place])) for place in (0, 1, 2, 0, 1)) for _ in range(400)]
    system = BrownClusters(prefixes=(20,))
    system.fit([{"text": text} for text in texts[:300]], [{"text": text} for text in texts[300:]])
    path_of = dict(zip(system.known.words, system.paths, strict=True))
    for kind in kinds:
        branches = [path_of[kind[0]][:length] for length in range(1, 7)]
        assert set(kind) in [{word for word, path in path_of.items() if path.startswith(b)} for b in branches]


def test_a_vector_says_the_prefixes_of_a_path():
    """Those of two bits, then whole paths where they are shorter than four."""
    found = prefix_vectors(["00", "010", "011", "1", "0110"], (2, 4))
    assert found.tolist() == [
        [1, 0, 0, 1, 0, 0, 0, 0],
        [0, 1, 0, 0, 1, 0, 0, 0],
        [0, 1, 0, 0, 0, 1, 0, 0],
        [0, 0, 1, 0, 0, 0, 0, 1],
        [0, 1, 0, 0, 0, 0, 1, 0],
    ]


def test_fewer_words_than_classes_are_classes_of_their_own():
    system = BrownClusters(clusters=200)
    system.fit(planted_topics.rows(60), planted_topics.rows(20, seed=1))
    assert len(set(system.paths)) == len(system.known.words) == 30
    assert (system.vectors[:2] == 0).all() and (system.vectors[2:].sum(axis=1) == 4).all()


def test_a_word_is_foretold_from_the_classes_beside_it():
    """By counts of a loop over the texts; nothing speaks for or against a word beside an end, an
    unknown word, or in an unknown word's place."""
    rows = planted_topics.rows(50)
    system = BrownClusters(clusters=4)
    system.fit(rows, planted_topics.rows(10, seed=1))
    class_of = dict(zip(system.known.words, system.paths, strict=True))
    pairs: Counter[tuple[str, str]] = Counter()
    for row in rows:
        classes = [class_of[word] for word in row["text"].split()]
        pairs.update(pairwise(classes))

    def q(c: str | None, d: str | None) -> float:
        if c is None or d is None:
            return 1.0
        left = sum(n for (each, _), n in pairs.items() if each == c)
        right = sum(n for (_, each), n in pairs.items() if each == d)
        return (pairs[c, d] + 1) / (left * right / pairs.total() + 1)

    for text, before, behind in (
        ("law1 law2 fish1", "law1", "fish1"),
        ("rail1 film2", "rail1", None),
        ("of0", None, None),
    ):
        ids, found = system.asked(text)
        assert len(ids) == 1
        sides = class_of.get(before), class_of.get(behind)
        wanted = [0.0, *(math.log(q(sides[0], c) * q(c, sides[1])) for c in class_of.values())]
        assert found[0] == pytest.approx(wanted, abs=1e-5)
    assert system.asked("never law2 seen")[1] == pytest.approx(0)

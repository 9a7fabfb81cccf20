"""Brown clusters: classes of words that stand beside the same classes, as paths in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from harness.problems.text import VectorTrainer, asked_places, numbered
from harness.ragged import Ragged
from harness.registry import register
from harness.views.base import Text
from harness.views.words import UNKNOWN, Vocabulary


def pair_counts(texts: Ragged, words: int) -> sparse.csr_array:
    """Number of times that one word stands right before another (words, words), in a text; an
    unknown word is none, and stands between others."""
    first, second = texts.values[:-1], texts.values[1:]
    text_of = np.repeat(np.arange(len(texts)), texts.lengths)
    beside = (text_of[:-1] == text_of[1:]) & (first > UNKNOWN) & (second > UNKNOWN)
    pair = first[beside], second[beside]
    return sparse.coo_array((np.ones(len(pair[0])), pair), shape=(words, words)).tocsr()


def shared(x: Any, y: Any) -> Any:
    """x log x + y log y - (x + y) log(x + y): the part of two counts, which become one, in what
    their merger costs; at most 0."""
    return xlogy(x, x) + xlogy(y, y) - xlogy(x + y, x + y)


class Window:
    """Classes, one in each taken place, and what the merger of each pair of them would cost.

    ``counts`` (n, n) are the numbers of times that a class stands right before another; ``losses``
    (n, n) those of mutual information of neighbours, in nats times the number of all pairs: inf on
    the diagonal and beside a free place. With n(c, d) the information is, but for a constant, the
    sum of n(c, d) log n(c, d) less that of n log n over the sums of rows and of columns. A loss is
    thus a sum over the classes beside the pair, and a merger changes few of its terms.
    """

    def __init__(self, places: int):
        self.counts = np.zeros((places, places))
        self.losses = np.full((places, places), np.inf)
        self.taken = np.zeros(places, dtype=bool)

    def add(self, place: int, before: np.ndarray, after: np.ndarray) -> None:
        """Put a class into a free place that stands so often right ``before`` each class (n,), its
        own place included, and right ``after`` it (n,)."""
        beside = np.flatnonzero(before + after)
        old = self._margins(beside)
        self.counts[place], self.counts[:, place] = before, after
        self.taken[place] = True
        self._change(beside, self._parts(beside, place) + old - self._margins(beside))
        self._renew(place)

    def merge(self, kept: int, gone: int) -> None:
        """Make one class of two, in the place of the first.

        Losses change for the neighbours of the second alone: for two other classes the counts with
        the first stay what they were.
        """
        beside = np.flatnonzero(self.counts[gone] + self.counts[:, gone])
        old = self._parts(beside, kept) + self._parts(beside, gone)
        for counts in (self.counts, self.counts.T):
            counts[kept] += counts[gone]
            counts[gone] = 0
        self.taken[gone] = False
        self._change(beside, self._parts(beside, kept) - old)
        self.losses[gone] = self.losses[:, gone] = np.inf
        self._renew(kept)

    def best(self) -> tuple[int, int]:
        """The pair whose merger costs least; of equal ones the first places."""
        return divmod(int(self.losses.argmin()), len(self.losses))

    def _parts(self, classes: np.ndarray, beside: int) -> np.ndarray:
        """Part of the counts with one class ``beside`` in the losses of some classes with each
        (m, n)."""
        return sum(shared(each[classes, None], each) for each in (self.counts[beside], self.counts[:, beside]))

    def _margins(self, classes: np.ndarray) -> np.ndarray:
        """The same of the sums of rows and columns, which the losses are less."""
        return sum(shared(sums[classes, None], sums) for sums in (self.counts.sum(axis=1), self.counts.sum(axis=0)))

    def _change(self, classes: np.ndarray, amounts: np.ndarray) -> None:
        self.losses[classes] += amounts
        self.losses[:, classes] = self.losses[classes].T

    def _renew(self, place: int) -> None:
        """The losses of one class with all others, from the counts."""
        own = self.counts.diagonal()
        found = np.zeros(len(own))
        for counts in (self.counts, self.counts.T):
            row, sums = counts[place], counts.sum(axis=1)
            others = np.flatnonzero(row)
            others = others[others != place]
            found += shared(row[others], counts[:, others]).sum(axis=1) - shared(row, own) - shared(sums[place], sums)
        both = (own[place], own, self.counts[place], self.counts[:, place])
        found += sum(xlogy(each, each) for each in both) - xlogy(sum(both), sum(both))
        found[~self.taken] = found[place] = np.inf
        self.losses[place] = self.losses[:, place] = found


def paths(counts: sparse.csr_array, clusters: int) -> list[str]:
    """The path of each word, by falling frequency, from the root of the tree to its class: a text
    of 0 and 1. ``counts`` (V, V) are those of neighbours."""
    places = min(clusters, counts.shape[0]) + 1
    window, members = Window(places), [np.zeros(0, np.int64)] * places
    back, place_of = sparse.csr_array(counts.T), np.full(counts.shape[0], -1)

    def beside(word: int, row: sparse.csr_array) -> np.ndarray:
        """Counts of a word with each place."""
        found, at = np.zeros(places), slice(row.indptr[word], row.indptr[word + 1])
        place = place_of[row.indices[at]]
        np.add.at(found, place[place >= 0], row.data[at][place >= 0])
        return found

    for word in range(counts.shape[0]):
        free = int(window.taken.argmin())
        place_of[word], members[free] = free, np.array([word])
        window.add(free, beside(word, counts), beside(word, back))
        if window.taken.all():
            kept, gone = window.best()
            window.merge(kept, gone)
            place_of[members[gone]] = kept
            members[kept] = np.concatenate([members[kept], members[gone]])
    found = [""] * places
    leaves = [[place] for place in range(places)]
    for _ in range(int(window.taken.sum()) - 1):
        kept, gone = window.best()
        window.merge(kept, gone)
        for bit, side in (("0", kept), ("1", gone)):
            for leaf in leaves[side]:
                found[leaf] = bit + found[leaf]
        leaves[kept] += leaves[gone]
    return [found[place] for place in place_of]


def prefix_vectors(paths: Sequence[str], lengths: Sequence[int]) -> np.ndarray:
    """Vectors (V, D) that say by a 1 which prefix of each of the lengths a path has; one that is
    shorter is its own prefix."""
    tables = []
    for length in lengths:
        prefixes = [path[:length] for path in paths]
        found, number = np.unique(prefixes, return_inverse=True)
        tables.append(np.eye(len(found), dtype=np.float32)[number])
    return np.concatenate(tables, axis=1)


@register(
    "brown_clusters",
    name="Brown clusters",
    kind="fit",
    paper="Brown et al. 1992",
    source="R25",
    year=1992,
    tiny={"clusters": 30},
    deviations=(
        "200 classes, where the paper has 1,000 of a vocabulary of 260,741 words.",
        "The vocabulary is that of all systems on plain text, words seen five times; two words with a rarer one between"
        " them are no neighbours.",
        "After the last word the paper moves single words from class to class while that helps; this is left out, as in"
        " the programs that others use.",
        "A word's vector says which prefixes of 4, 6, 10 and 20 bits its path has, as later systems read them; the"
        " paper makes a language model of the classes.",
        "How probable a class is by itself is counted beside the classes that stand so far; in the program that others"
        " use it is its share of all running words. Ends of texts part words here, not there.",
    ),
)
class BrownClusters(VectorTrainer):
    """Words that stand beside the same classes are one class, and classes are leaves of a binary
    tree.

    Words come by falling frequency, each as a class of its own; whenever there are more than
    ``clusters``, the two become one whose merger loses least of the mutual information of
    neighbouring classes. In the end these are merged likewise until one is left: that is the tree,
    and the way from its root to a class is the path of each of its words. Others start from
    :func:`prefix_vectors` of the ``prefixes`` of these paths. No random number is drawn.

    The class of a word says what stands beside it, not what is like it. So plain text is foretold
    by the model whose information is maximised: p(w | its neighbours) is proportional to count(w)
    (q(class before, c) q(c, class behind))^b, c being the class of w, and q(c, d) how much oftener
    than by chance d follows c (:meth:`associations`).
    """

    def __init__(self, seed: int = 0, clusters: int = 200, prefixes: tuple = (4, 6, 10, 20)):
        super().__init__(seed)
        self.clusters, self.prefixes = clusters, prefixes

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        """The texts are most, then the vectors of a vocabulary as 100 MB have it."""
        return (25.0 + 0.0075 * hyperparameters["clusters"]) * size

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        counts = pair_counts(texts, len(vocabulary))[2:, 2:]
        self.paths = paths(counts, self.clusters)
        self.class_of = np.array([0, 0, *1 + np.unique(self.paths, return_inverse=True)[1]])
        self.pulls = np.log(self.associations(counts)).astype(np.float32)
        made = prefix_vectors(self.paths, self.prefixes)
        return np.concatenate([np.zeros((2, made.shape[1]), np.float32), made])

    def associations(self, counts: sparse.csr_array) -> np.ndarray:
        """(n(c, d) + 1) / (n(c .) n(. d) / n + 1) of the classes, from 1 on; 1 beside number 0,
        that of unknown words and of the ends of texts."""
        members = np.eye(self.class_of.max() + 1)[self.class_of[2:]]
        pairs = members.T @ (counts @ members)
        chance = np.outer(pairs.sum(axis=1), pairs.sum(axis=0)) / max(pairs.sum(), 1)
        return (pairs + 1) / (chance + 1)

    def asked(self, text: Text) -> tuple[np.ndarray, np.ndarray]:
        ids = numbered([text], self.known).values
        places = np.array(asked_places(len(ids)))
        classes, words = np.pad(self.class_of[ids], 1), self.class_of[1:]
        before, behind = self.pulls[classes[places]], self.pulls.T[classes[places + 2]]
        return ids[places], before[:, words] + behind[:, words]

    def fitted_state(self) -> dict[str, Any]:
        return super().fitted_state() | {name: getattr(self, name) for name in ("paths", "class_of", "pulls")}

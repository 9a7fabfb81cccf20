"""Linear-chain conditional random field over hand-made features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from scipy.optimize import minimize
from torch import Tensor

from harness.kinds import Estimator
from harness.layers.crf import LinearChainCRF
from harness.registry import register
from harness.task import Row

AT_ONCE = 256
"""Sentences of about the same length whose sums are taken together."""


def shape(word: str) -> str:
    """The word with X for capitals, x for other letters and 0 for digits, each run of them once."""
    letters = "".join("X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word)
    return re.sub(r"(.)\1+", r"\1", letters)


def features(words: Sequence[str], place: int, affix: int) -> Iterator[str]:
    """Names of the features that are true of a word in its sentence."""
    word = words[place].lower()
    yield "any word"
    yield f"word {word}"
    yield f"shape {shape(words[place])}"
    for length in range(1, min(affix, len(word)) + 1):
        yield f"begins {word[:length]}"
        yield f"ends {word[-length:]}"
    for name, neighbour in (("before", place - 1), ("after", place + 1)):
        if 0 <= neighbour < len(words):
            yield f"{name} {words[neighbour].lower()}"
            yield f"shape {name} {shape(words[neighbour])}"
        else:
            yield f"nothing {name}"


class Sentences(NamedTuple):
    """Sentences of about the same length: ``places`` (B, T) of their words among all, and ``mask``
    (B, T)."""

    places: Tensor
    mask: Tensor


def by_length(lengths: np.ndarray) -> list[Sentences]:
    """The sentences of these lengths (N,), the shortest first, whose words lie behind one another;
    those without words are left out."""
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    parts = []
    for rows in (order[first : first + AT_ONCE] for first in range(0, len(order), AT_ONCE)):
        columns = np.arange(lengths[rows].max())
        mask = columns < lengths[rows, None]
        parts.append(Sentences(torch.from_numpy((starts[rows, None] + columns) * mask), torch.from_numpy(mask)))
    return parts


@register(
    "crf_features",
    name="CRF on hand-made features",
    kind="fit",
    paper="Lafferty et al. 2001",
    source="X4.5.3",
    year=2001,
    deviations=(
        "Found by L-BFGS with an L2 penalty, not by iterative scaling from a maximum-entropy Markov model's weights.",
        "Features are words, beginnings and endings, shapes and neighbours; the paper has words, nine endings and three"
        " facts of the spelling.",
        "Features of a single training word are left out.",
    ),
)
class FeatureCRF(Estimator):
    """P(tags | words) of a linear chain whose emissions are sums of weights, one for each feature
    of the word and each tag, and whose moves, first and last tags have weights of their own.

    The weights maximise the log-likelihood of the training sentences less ``l2`` / 2 times the sum
    of their squares, in at most ``iterations`` of L-BFGS, which keeps ``memory`` steps; the
    function is convex, so that the start at zero does not matter. A feature counts that training
    shows ``min_count`` times, ``affix`` letters make the longest beginning and ending. Decoding
    finds the most probable tags. Slow, because each iteration goes forward and backward through
    all sentences.
    """

    task_types = ("tag",)

    def __init__(
        self,
        seed: int = 0,
        l2: float = 0.1,
        affix: int = 4,
        min_count: int = 2,
        iterations: int = 100,
        memory: int = 6,
    ):
        super().__init__(seed)
        self.l2, self.affix, self.min_count = l2, affix, min_count
        self.iterations, self.memory = iterations, memory

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict) -> float:
        """By default, and what L-BFGS keeps: a few copies of as many weights as there are features
        and tags."""
        return 200.0 * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.tags = sorted({tag for row in train for tag in row["tags"]})
        found = [name for row in train for names in self.names(row["text"]) for name in names]
        counts = Counter(found)
        self.known = {name: n for n, name in enumerate(name for name, c in counts.items() if c >= self.min_count)}
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        gold = torch.tensor([numbers[tag] for row in train for tag in row["tags"]])
        words, sentences = self.read(train)
        start = np.zeros((len(self.known) + len(self.tags) + 2) * len(self.tags))
        options = {"maxiter": self.iterations, "maxcor": self.memory}
        best = minimize(self.loss, start, (words, sentences, gold), method="L-BFGS-B", jac=True, options=options)
        self.weights = best.x.reshape(-1, len(self.tags))
        self.parameter_count = self.weights.size

    def names(self, words: Sequence[str]) -> list[list[str]]:
        """The features of each word of a sentence."""
        return [list(features(words, place, self.affix)) for place in range(len(words))]

    def read(self, rows: Sequence[Row]) -> tuple[sparse.csr_array, list[Sentences]]:
        """The known features of all words, one behind the other (words, features), and their
        sentences."""
        lists = [names for row in rows for names in self.names(row["text"])]
        numbers = [[self.known[name] for name in names if name in self.known] for names in lists]
        bounds = np.cumsum([0, *map(len, numbers)])
        columns = np.fromiter((number for names in numbers for number in names), np.int64, bounds[-1])
        table = sparse.csr_array((np.ones(len(columns)), columns, bounds), shape=(len(lists), len(self.known)))
        return table, by_length(np.array([len(row["text"]) for row in rows]))

    def chain(self, weights: np.ndarray) -> LinearChainCRF:
        """The chain with the weights of moves, first and last tags: the last L + 2 rows of all."""
        crf = LinearChainCRF(len(self.tags)).double()
        with torch.no_grad():
            for parameter, rows in zip(
                (crf.transitions, crf.start, crf.end),
                (weights[-len(self.tags) - 2 : -2], weights[-2], weights[-1]),
                strict=True,
            ):
                parameter.copy_(torch.from_numpy(rows))
        return crf

    def loss(
        self, flat: np.ndarray, words: sparse.csr_array, sentences: Sequence[Sentences], gold: Tensor
    ) -> tuple[float, np.ndarray]:
        """Minus the penalised log-likelihood of the gold tags (words,), and its gradient, at these
        weights."""
        weights = flat.reshape(-1, len(self.tags))
        crf, emitting = self.chain(weights), weights[: len(self.known)]
        emissions = torch.from_numpy(words @ emitting)
        slopes, total = torch.zeros_like(emissions), 0.0
        for places, mask in sentences:
            scores = emissions[places].requires_grad_()
            loss = (crf.log_partition(scores, mask) - crf.score(scores, gold[places], mask)).sum()
            loss.backward()
            assert scores.grad is not None
            slopes[places[mask]] = scores.grad[mask]
            total += loss.item()
        chain = (crf.transitions.grad, crf.start.grad[None], crf.end.grad[None])
        gradient = np.concatenate([words.T @ slopes.numpy(), torch.cat(chain).numpy()])
        return total + self.l2 / 2 * float(flat @ flat), gradient.ravel() + self.l2 * flat

    def predict(self, rows: Sequence[Row]) -> list[list[str]]:
        words, sentences = self.read(rows)
        emissions, crf = torch.from_numpy(words @ self.weights[: len(self.known)]), self.chain(self.weights)
        best = np.zeros(words.shape[0], dtype=np.int64)
        for places, mask in sentences:
            best[places[mask].numpy()] = crf.viterbi(emissions[places], mask)[mask].numpy()
        ends = np.cumsum([len(row["text"]) for row in rows])[:-1]
        return [[self.tags[number] for number in part] for part in np.split(best, ends)]

"""A log-linear classifier over the candidate spans of a passage, with features made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from scipy.special import softmax

from architectures.blocks.ngrams import lower_words
from architectures.blocks.spans import FUNCTION_WORDS, is_word, phrases, sentences
from harness.kinds import Estimator
from harness.problems.rank import question_word
from harness.registry import register
from harness.task import Row

SLOTS = 1 << 20
"""Weights that words, pairs and shapes share: two features of one number have one weight."""
BUCKETS = 10
"""Shares of the training spans, as large, into which each amount is cut."""
AMOUNTS = 13
NEAR = 2
"""Words on either side of a span that stand near it."""
SAMPLE = 200
"""Training passages on which the buckets are laid."""
ROUNDING = 1e-12
"""Slope below which it is rounding: the first step of AdaGrad is as long for any other."""
INSIDE, BESIDE, SHAPE, ASKED_SHAPE, RUN = range(5)
"""Kinds of features that are numbered by their words."""


def number(text: str) -> int:
    """A number of 32 bits for a text, in every process the same."""
    return crc32(text.encode())


def slots(kind: int, first: Any, second: Any = 0) -> np.ndarray:
    """Numbers below :data:`SLOTS` of features of a kind, from the numbers of their texts."""
    one, other = (np.atleast_1d(np.asarray(each, np.uint64)) for each in (first, second))
    mixed = one * np.uint64(0x9E3779B97F4A7C15) + (other + np.uint64(kind + 1)) * np.uint64(0xC2B2AE3D27D4EB4F)
    return (mixed >> np.uint64(44)).astype(np.int64)


def shape(form: str) -> str:
    """A letter for a word: d with a digit, X with a capital, x without, a mark as it is."""
    if not is_word(form):
        return form
    return "d" if any(map(str.isdigit, form)) else "X" if form[0].isupper() else "x"


class Passage(NamedTuple):
    """A passage of T words and its C candidate spans.

    ``words`` (T,) are numbers of words, ``runs`` (T,) of the pairs that begin with them, -1 at the
    end of a sentence; ``starts`` and ``ends`` (T,) their characters. A candidate has the words from
    ``first`` to before ``last`` of the sentence from ``begin`` to before ``stop`` (C,), and a
    number for its shape. ``edges`` (T,) is true where a phrase may begin or end.
    """

    words: np.ndarray
    runs: np.ndarray
    edges: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    first: np.ndarray
    last: np.ndarray
    begin: np.ndarray
    stop: np.ndarray
    shapes: np.ndarray

    @classmethod
    def of(cls, text: str, longest: int) -> Passage:
        """The passage with its candidates of up to ``longest`` words."""
        found = sentences(text)
        spans, runs, shapes, begin = [], [], [], 0
        for sentence in found:
            stop, shaped = begin + len(sentence.words), [shape(form) for form in sentence.forms]
            for first, last in phrases(sentence, longest):
                spans.append((begin + first, begin + last, begin, stop))
                shapes.append(number(" ".join(shaped[first:last])))
            runs += [*(number(" ".join(pair)) for pair in pairwise(sentence.words)), -1]
            begin = stop
        words = [word for sentence in found for word in sentence.words]
        places = np.array(spans, np.int64).reshape(-1, 4).T
        return cls(
            np.array([number(word) for word in words], np.int64),
            np.array(runs, np.int64),
            np.array([is_word(word) and word not in FUNCTION_WORDS for word in words], bool),
            np.array([place for sentence in found for place in sentence.starts], np.int64),
            np.array([place for sentence in found for place in sentence.ends], np.int64),
            *places,
            np.array(shapes, np.int64),
        )

    def target(self, answers: dict[str, Any]) -> int | None:
        """The candidate of the first answer's words from the first to the last that may be an edge;
        None where there is none."""
        if not answers["text"]:
            return None
        begin = answers["start"][0]
        within = (self.ends > begin) & (self.starts < begin + len(answers["text"][0])) & self.edges
        places = np.flatnonzero(within)
        if not len(places):
            return None
        found = np.flatnonzero((self.first == places[0]) & (self.last == places[-1] + 1))
        return int(found[0]) if len(found) else None


class Features(NamedTuple):
    """Features of C candidates of T words for one question: ``own`` (C, features) numbers of
    weights, and ``inside`` and ``beside`` (question words, T) those of each word for the spans that
    have it, or that it stands near to."""

    passage: Passage
    own: np.ndarray
    inside: np.ndarray
    beside: np.ndarray

    def _ranges(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Numbers of words' weights, and the words from which to which each candidate has them."""
        p = self.passage
        return [
            (self.inside, p.first, p.last),
            (self.beside, np.maximum(p.first - NEAR, p.begin), p.first),
            (self.beside, p.last, np.minimum(p.last + NEAR, p.stop)),
        ]

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """The sum of its features' weights of each candidate (C,)."""
        scores = weights[self.own].sum(axis=1)
        for features, low, high in self._ranges():
            sums = np.append(0.0, weights[features].sum(axis=0).cumsum())
            scores += sums[high] - sums[low]
        return scores

    def back(self, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of weights, some of them more than once, and the slopes at each, from those at
        the scores (C,)."""
        numbers, slopes = [self.own.ravel()], [np.repeat(errors, self.own.shape[1])]
        for features, low, high in self._ranges():
            steps = np.zeros(features.shape[1] + 1)
            np.add.at(steps, low, errors)
            np.add.at(steps, high, -errors)
            numbers.append(features.ravel())
            slopes.append(np.tile(steps.cumsum()[:-1], len(features)))
        return np.concatenate(numbers), np.concatenate(slopes)


@register(
    "squad_logreg",
    name="Hand-built features + logistic regression",
    kind="fit",
    paper="Rajpurkar et al. 2016",
    source="M-T3[24]",
    year=2016,
    tiny={"longest": 3},
    deviations=(
        "No parser is at hand: candidates are spans of up to 8 words that neither begin nor end with a function word or"
        " a mark, not constituents; the features of roots, constituent labels and dependency paths are left out.",
        "No tagger either: a word's shape (digits, capital, small letters) stands for its part of speech.",
        "Words near a span are the two on either side of it, not those within two steps of the dependency tree.",
        "Words are not brought to their lemmas, and pairs have plain TF-IDF.",
        "Features of words and shapes share 2^20 weights; the paper has 180 million features.",
        "The penalty acts on the weights that a batch uses.",
        "A question whose answer is no candidate is left out; the paper takes the shortest constituent that holds it.",
        "It never says that there is no answer: SQuAD 2.0 came later.",
    ),
)
class SpanRegression(Estimator):
    """p(span) = softmax over a passage's candidates of the sum of their features' weights.

    Amounts, each cut into ten buckets of as many training spans: the TF-IDF of the question's words
    to the left of the span, inside, to its right and in the whole sentence; the same of its pairs
    of words; the numbers of words there; and the TF-IDF of all words of the span. Besides the
    span's shape, alone and with the question word; each question word with each word of the span;
    and with each word near it. The target is the answer without function words at its edges; where
    that is no candidate, no longer one holds it, and the question is not learnt from. Trained by
    AdaGrad in three ``passes``; a batch has all questions of a passage. Slow, because every phrase
    of a passage is scored for each of its questions.
    """

    task_types = ("extract",)

    def __init__(
        self,
        seed: int = 0,
        longest: int = 8,
        passes: int = 3,
        lr: float = 0.1,
        penalty: float = 0.1,
    ):
        super().__init__(seed)
        self.longest, self.passes, self.lr, self.penalty = longest, passes, lr, penalty

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return 15.0 * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        batches: dict[str, list[Row]] = {}
        for row in train:
            batches.setdefault(row["passage"], []).append(row)
        self._count(batches)
        self._cut(batches)
        self.weights = np.zeros(SLOTS + AMOUNTS * (BUCKETS + 1))
        squares, order = np.zeros_like(self.weights), np.random.default_rng(self.seed)
        penalty, texts = self.penalty / len(batches), list(batches)
        for _ in range(self.passes):
            for place in order.permutation(len(texts)).tolist():
                passage = Passage.of(texts[place], self.longest)
                slopes = [self._slopes(passage, row) for row in batches[texts[place]]]
                self._step(squares, *map(np.concatenate, zip(*slopes, strict=True)), penalty)
        self.parameter_count = int(np.count_nonzero(self.weights))

    def _count(self, texts: Sequence[str] | dict[str, Any]) -> None:
        """log(passages / passages with it) of each word and pair; unseen ones are as of half a
        passage."""
        having = np.full(SLOTS, 0.5)
        for text in texts:
            passage = Passage.of(text, 0)
            having[np.unique(slots(RUN, [*passage.words, *passage.runs[passage.runs >= 0]]))] += 1
        self.rarity = np.log((len(texts) + 0.5) / having).clip(min=0)

    def _cut(self, batches: dict[str, list[Row]]) -> None:
        """Bounds of the buckets of each amount (AMOUNTS, BUCKETS)."""
        some = list(batches.items())[:: max(1, len(batches) // SAMPLE)]
        amounts = [self._amounts(Passage.of(text, self.longest), rows[0]["question"]) for text, rows in some]
        shares = np.linspace(0, 1, BUCKETS + 1)[1:]
        self.bounds = np.quantile(np.concatenate([np.zeros((1, AMOUNTS)), *amounts]), shares, axis=0).T

    def _amounts(self, passage: Passage, question: str) -> np.ndarray:
        """The amounts of each candidate (C, AMOUNTS), in the order of the class's description."""
        words = lower_words(question)
        asked = [number(word) for word in words if is_word(word)]
        pairs = [number(" ".join(pair)) for pair in pairwise(words)]
        first, last, begin, stop = passage.first, passage.last, passage.begin, passage.stop
        single, double = self.rarity[slots(RUN, passage.words)], self.rarity[slots(RUN, passage.runs.clip(min=0))]
        one = np.append(0.0, (single * np.isin(passage.words, asked)).cumsum())
        two = np.append(0.0, (double * np.isin(passage.runs, pairs)).cumsum())
        every = np.append(0.0, single.cumsum())
        before = np.maximum(first - 1, begin)  # a pair that ends in the span is neither left of it nor inside
        return np.stack(
            [
                *(one[first] - one[begin], one[last] - one[first], one[stop] - one[last], one[stop] - one[begin]),
                *(two[before] - two[begin], two[last - 1] - two[first]),
                *(two[stop] - two[last], two[stop] - two[begin]),
                *(first - begin, last - first, stop - last, stop - begin),
                every[last] - every[first],
            ],
            axis=1,
        )

    def features(self, passage: Passage, question: str) -> Features:
        """Features of a passage's candidates for a question."""
        words = lower_words(question)
        asked = np.array(sorted({number(word) for word in words if is_word(word)}), np.int64)[:, None]
        amounts = self._amounts(passage, question)
        buckets = [
            SLOTS + place * (BUCKETS + 1) + np.searchsorted(bounds, amounts[:, place])
            for place, bounds in enumerate(self.bounds)
        ]
        shapes = [slots(SHAPE, passage.shapes), slots(ASKED_SHAPE, passage.shapes, number(question_word(words)))]
        inside, beside = (slots(kind, passage.words, asked) for kind in (INSIDE, BESIDE))
        return Features(passage, np.stack([*buckets, *shapes], axis=1), inside, beside)

    def _slopes(self, passage: Passage, row: Row) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of -log p(target), by the numbers of the weights; none without a target."""
        target = passage.target(row["answers"])
        if target is None:
            return np.zeros(0, np.int64), np.zeros(0)
        features = self.features(passage, row["question"])
        errors = softmax(features.scores(self.weights))
        errors[target] -= 1
        return features.back(errors)

    def _step(self, squares: np.ndarray, numbers: np.ndarray, slopes: np.ndarray, penalty: float) -> None:
        """A step of AdaGrad; ``squares`` are the sums of the squared slopes so far."""
        used, places = np.unique(numbers, return_inverse=True)
        total = np.bincount(places, slopes, minlength=len(used))
        total = np.where(np.abs(total) < ROUNDING, 0.0, total) + penalty * self.weights[used]
        squares[used] += total**2
        self.weights[used] -= self.lr * total / np.sqrt(np.where(squares[used], squares[used], 1.0))

    def answer(self, text: str, question: str) -> str:
        """The most probable span, the first of equal ones; empty for a passage without a
        candidate."""
        passage = Passage.of(text, self.longest)
        if not len(passage.first):
            return ""
        best = int(self.features(passage, question).scores(self.weights).argmax())
        return text[passage.starts[passage.first[best]] : passage.ends[passage.last[best] - 1]]

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return [self.answer(row["passage"], row["question"]) for row in rows]

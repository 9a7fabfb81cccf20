"""Solvers of questions of several choices, each by what a corpus says, and a regression that weighs
them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.linear_model import LogisticRegression

from architectures.blocks.ngrams import lower_words
from architectures.blocks.spans import is_word
from harness import registry
from harness.errors import ModelError
from harness.kinds import Estimator, Parent
from harness.problems.base import Answer, with_probability
from harness.problems.text import VectorTrainer
from harness.ragged import Ragged
from harness.registry import TaskEntry, register
from harness.task import Row
from harness.views.base import Text
from harness.views.sentences import sentences_of
from harness.views.words import UNKNOWN, Vocabulary

LEAST = 3
"""Words without which a sentence states nothing."""
WITHIN = 10
"""Words between which two runs of words stand together."""
K1, B = 1.2, 0.75
"""BM25's: how soon a word's further occurrences count less, and how much a long sentence does."""
STRETCH = 10
"""Words of the stretches into which texts are cut for vectors of words: which stand together in a
whole article tells little."""
ANY = ""
"""Stands in a run for any word."""


def plain_words(text: Text) -> list[str]:
    """Words of a text in lower case, without marks."""
    return [word for word in lower_words(text) if is_word(word)]


def content(words: Sequence[str]) -> list[str]:
    """The different words that are no stop words, in their order; a question loses its question
    words so, and is half of a statement."""
    return [word for word in dict.fromkeys(words) if word not in ENGLISH_STOP_WORDS]


def statements(text: Text) -> Iterator[str]:
    """Sentences of a text, as plain words with spaces between, but for questions and scraps."""
    for sentence in sentences_of(text):
        words = plain_words(sentence)
        if len(words) >= LEAST and sentence[-1] != "?":
            yield " ".join(words)


def runs(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The different runs of one to three words that neither begin nor end with a stop word; those
    of three also with any word in the middle."""
    found: dict[tuple[str, ...], None] = {}
    for start in range(len(words)):
        for length in (1, 2, 3):
            run = tuple(words[start : start + length])
            if len(run) == length and not {run[0], run[-1]} & ENGLISH_STOP_WORDS:
                found[run] = None
                if length == 3:
                    found[run[0], ANY, run[2]] = None
    return list(found)


def latent_vectors(texts: Ragged, words: int, dimensions: int, seed: int) -> np.ndarray:
    """Vectors (words, D) of words: their coordinates, times the singular values, on the main
    directions of the matrix log(1 + count) log(N / N_w) of N texts, N_w of which have word w."""
    ones = np.ones(len(texts.values))
    counts = sparse.csr_array((ones, texts.values, texts.offsets), shape=(len(texts), words))
    counts.sum_duplicates()
    having = np.bincount(counts.indices, minlength=words)
    counts.data = np.log1p(counts.data) * np.log(len(texts) / np.maximum(having, 1))[counts.indices]
    most = min(dimensions, min(counts.shape) - 1)
    if most < 1 or not counts.data.any():
        return np.zeros((words, 1))
    return TruncatedSVD(most, random_state=seed).fit_transform(sparse.csr_array(counts.T))


class Found(NamedTuple):
    """The best sentence by its number, and its score; number -1 and 0 where there is none."""

    sentence: int
    score: float


class SentenceIndex:
    """Sentences, each words with spaces between, and the places at which each word stands.

    Places are numbered through, with :data:`WITHIN` empty ones behind each sentence, so that words
    of two sentences are never near each other.
    """

    def __init__(self, sentences: Sequence[str]):
        self.sentences = list(sentences)
        split = [sentence.split(" ") for sentence in self.sentences]
        self.words = sorted({word for words in split for word in words})
        self.places = {word: place for place, word in enumerate(self.words)}
        self.texts = Ragged.of([self.places[word] for word in words] for words in split)
        values, lengths = self.texts.values, self.texts.lengths
        number = np.repeat(np.arange(len(split)), lengths)
        at = np.arange(len(values)) + WITHIN * number
        self.line = np.full(len(values) + WITHIN * (len(split) + 1), -1)
        self.line[at] = values
        self.sentence = np.zeros(len(self.line), np.int64)
        self.sentence[at] = number
        self.occurrences = at[np.argsort(values, kind="stable")]
        self.starts = np.append(0, np.bincount(values, minlength=len(self.words)).cumsum())
        self._weigh()

    def _weigh(self) -> None:
        """BM25's weight of each word in each sentence, and the rarity of each word."""
        lengths = self.texts.lengths
        counts = sparse.csc_array(
            (np.ones(len(self.texts.values)), (np.repeat(np.arange(len(lengths)), lengths), self.texts.values)),
            shape=(len(lengths), len(self.words)),
        )
        counts.sum_duplicates()
        self.rarities = self.rarity(np.diff(counts.indptr))
        norm = K1 * (1 - B + B * lengths * len(lengths) / max(lengths.sum(), 1))[counts.indices]
        every = np.repeat(self.rarities, np.diff(counts.indptr))
        counts.data = every * counts.data * (K1 + 1) / (counts.data + norm)
        self.weights = counts

    def rarity(self, having: Any) -> Any:
        """log(1 + (N - n + 1/2) / (n + 1/2)) for a word that n of the N sentences have."""
        return np.log1p((len(self.sentences) - having + 0.5) / (having + 0.5))

    def best(self, asked: Sequence[str], offered: Sequence[str]) -> Found:
        """The sentence of the highest BM25 score by the words of both lists, of those that have a
        word of either; the first of equal ones."""
        scores = np.zeros(len(self.sentences))
        having = np.zeros((2, len(self.sentences)), bool)
        for word in sorted({*asked, *offered} & self.places.keys()):
            begin, end = self.weights.indptr[self.places[word] :][:2]
            rows = self.weights.indices[begin:end]
            scores[rows] += self.weights.data[begin:end]
            for side, words in enumerate((asked, offered)):
                having[side, rows] |= word in words
        scores *= having.all(axis=0)
        place = int(scores.argmax()) if scores.any() else -1
        return Found(place, float(scores[place]) if place >= 0 else 0.0)

    def covered(self, words: Sequence[str], sentence: int) -> float:
        """Share of the words, by their rarity, that a sentence has; nothing where there is none."""
        if sentence < 0:
            return 0.0
        own = {*self.sentences[sentence].split(" ")}
        unseen = float(self.rarity(0))
        weights = {word: self.rarities[self.places[word]] if word in self.places else unseen for word in words}
        return float(sum(w for word, w in weights.items() if word in own) / sum(weights.values()))

    def found(self, run: Sequence[str]) -> np.ndarray:
        """Places of the first word of each occurrence of a run, ascending."""
        if any(word not in self.places for word in run if word != ANY):
            return np.zeros(0, np.int64)
        first = self.places[run[0]]
        at = self.occurrences[self.starts[first] : self.starts[first + 1]]
        for further, word in enumerate(run[1:], start=1):
            if word != ANY:
                at = at[self.line[at + further] == self.places[word]]
        return at

    def share(self, at: np.ndarray) -> float:
        """Share of the sentences in which such places lie."""
        return len(np.unique(self.sentence[at])) / len(self.sentences)

    def pmi(self, one: np.ndarray, other: np.ndarray) -> float:
        """log p(x, y) / (p(x) p(y)) of two runs by their places: shares of sentences, for x and y
        together of those where they stand at most :data:`WITHIN` words apart; 0 where none does."""
        near = other.searchsorted(one + WITHIN, side="right") > other.searchsorted(one - WITHIN)
        if not near.any():
            return 0.0
        return math.log(self.share(one[near]) / (self.share(one) * self.share(other)))

    def mean_pmi(self, asked: Sequence[str], offered: Sequence[str]) -> float:
        """Mean over all pairs of a run of the question and a run of the choice."""
        sides = [runs(words) for words in (asked, offered)]
        ours, theirs = ([at for at in map(self.found, side) if len(at)] for side in sides)
        pairs = len(sides[0]) * len(sides[1])
        return math.fsum(self.pmi(one, other) for one in ours for other in theirs) / max(pairs, 1)


class Library:
    """An index and the vectors (V, D) of its words: what the solvers know."""

    def __init__(self, sentences: Sequence[str], dimensions: int, seed: int, given: Mapping[str, np.ndarray]):
        self.index = SentenceIndex(sentences)
        if given:
            none = np.zeros(len(next(iter(given.values()))))
            self.vectors = np.array([given.get(word, none) for word in self.index.words], dtype=float)
        else:
            self.vectors = latent_vectors(self.index.texts, len(self.index.words), dimensions, seed)

    def cosine(self, one: Sequence[str], other: Sequence[str]) -> float:
        """Cosine of the mean vectors of some words; 0 where a side has none."""
        sides = [[self.index.places[word] for word in words if word in self.index.places] for words in (one, other)]
        if not all(sides):
            return 0.0
        u, v = (self.vectors[places].mean(axis=0) for places in sides)
        lengths = float(np.linalg.norm(u) * np.linalg.norm(v))
        return float(u @ v) / lengths if lengths else 0.0

    def solved(self, question: Text, choice: Text) -> dict[str, float]:
        """The score of a choice by each solver."""
        asked, offered = plain_words(question), plain_words(choice)
        known = content(asked), content(offered)
        sentence, score = self.index.best(*known)
        return {
            "retrieval": score,
            "pmi": self.index.mean_pmi(asked, offered),
            "vectors": self.cosine(*known),
            "coverage": self.index.covered([*known[0], *known[1]], sentence),
        }


SOLVERS = ("retrieval", "pmi", "vectors", "coverage")


class Combiner:
    """Logistic regression on three features of each solver's score: the score, its probability
    within the question, and its rank there.

    The probability is the softmax over the choices of scores in units of their deviation in
    training; equal scores have their mean rank, and the best one's is 1. Features are standardised.
    """

    def fit(self, scores: np.ndarray, groups: Sequence[str], right: np.ndarray, C: float) -> None:
        """Learn from scores (N, solvers) of choices and whether each is ``right`` (N,)."""
        self.deviation = spread(scores)
        features = self.raw(scores, groups)
        self.mean, self.scale = features.mean(axis=0), spread(features)
        machine = LogisticRegression(C=C, max_iter=1000).fit((features - self.mean) / self.scale, right)
        self.weights, self.bias = machine.coef_[0], float(machine.intercept_[0])

    def raw(self, scores: np.ndarray, groups: Sequence[str]) -> np.ndarray:
        """Features (N, 3 solvers): of all solvers the scores, then the probabilities, then the
        ranks."""
        members: dict[str, list[int]] = {}
        for place, group in enumerate(groups):
            members.setdefault(group, []).append(place)
        shares, ranks = np.zeros_like(scores), np.zeros_like(scores)
        for places in members.values():
            own = scores[places]
            powers = np.exp((own - own.max(axis=0)) / self.deviation)
            shares[places] = powers / [math.fsum(column) for column in powers.T]  # whatever the order of the choices
            ranks[places] = rankdata(-own, axis=0)
        return np.hstack([scores, shares, ranks])

    def __call__(self, scores: np.ndarray, groups: Sequence[str]) -> np.ndarray:
        """Logits (N,) of being right."""
        features = (self.raw(scores, groups) - self.mean) / self.scale
        return (features * self.weights).sum(axis=1) + self.bias


def spread(columns: np.ndarray) -> np.ndarray:
    """Standard deviation of each column; 1 for a constant one."""
    found = columns.std(axis=0)
    return np.where(found > 1e-12, found, 1.0)


@register(
    "aristo_corpus",
    name="Corpus of an Aristo-style system",
    kind="fit",
    paper="Clark et al. 2019",
    source="R25.6",
    year=2019,
    tiny={"dimensions": 24},
    deviations=(
        "The sentences are those of the texts at hand; the authors' are 280 GB of the web and school books.",
        "Vectors of words are latent semantic ones; aristo-mini has word2vec's.",
    ),
)
class SentenceCorpus(VectorTrainer):
    """The sentences of plain text, and vectors of ``dimensions`` numbers of their words by
    :func:`latent_vectors` of stretches of the texts; by these alone it is scored."""

    def __init__(self, seed: int = 0, dimensions: int = 100):
        super().__init__(seed)
        self.dimensions = dimensions

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        super().fit(train, dev, unlabelled)
        self.sentences = list(dict.fromkeys(sentence for row in train for sentence in statements(row["text"])))

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        stretches = np.union1d(texts.offsets, np.arange(0, len(texts.values), STRETCH))
        vectors = latent_vectors(Ragged(texts.values, stretches), len(vocabulary), self.dimensions, self.seed)
        vectors[: UNKNOWN + 1] = 0
        return vectors

    def fitted_state(self) -> dict[str, Any]:
        return super().fitted_state() | {"sentences": self.sentences}


@register(
    "aristo",
    name="Aristo-style, 4 solvers",
    kind="fit",
    paper="Clark et al. 2019",
    source="R25.6",
    year=2019,
    parents={"vectors": "aristo_corpus@encyclopedia_text"},
    tiny={"dimensions": 24},
    deviations=(
        "Four solvers of the authors' eight: those that need tables, rules, tuples or weights of BERT and RoBERTa are"
        " left out, and with these what makes the system of 2019 good.",
        "The corpus is Wikipedia at hand (WikiText-2, SQuAD, WikiQA), not one of science: it states few answers.",
        "The entailment solver is the share of the words of question and choice that the retrieved sentence has,"
        " without a model of entailment.",
        "The regression reads score, probability and rank of all solvers at once; the authors calibrate each before.",
        "Words are not stemmed, and words between which others lie are runs of three alone, as in aristo-mini.",
        "Without a corpus (--parent vectors=none) the training questions with their answers are one, and the"
        " regression learns from scores by those of the other half.",
    ),
)
class Aristo(Estimator):
    """An ensemble of ``solvers``, each of which scores a choice by a corpus, and the
    :class:`Combiner` that decides.

    *Retrieval* takes the BM25 score of the best sentence for question and choice, with a word of
    either; *pmi* the mean pointwise mutual information of runs of words of both; *vectors* the
    cosine of mean word vectors; *coverage* the share of the words of both that the best sentence
    has.
    """

    task_types = ("rank",)
    takes = ("vectors",)

    def __init__(
        self,
        seed: int = 0,
        solvers: Sequence[str] = SOLVERS,
        dimensions: int = 100,
        C: float = 1.0,
    ):
        super().__init__(seed)
        if strange := [name for name in solvers if name not in SOLVERS]:
            raise ValueError(f"solvers: {strange[0]!r} is none of {', '.join(SOLVERS)}")
        self.solvers, self.dimensions, self.C = list(solvers), dimensions, C
        self.given: list[str] = []
        self.given_vectors: Mapping[str, np.ndarray] = {}

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        corpus: Any = parent.estimator
        if not hasattr(corpus, "sentences"):
            raise ModelError("it keeps no sentences, as aristo_corpus does")
        self.given, self.given_vectors = corpus.sentences, parent.word_vectors() or {}

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        adapter: Any = registry.load(task)
        return None if adapter.choices else f"weighs choices, and the candidates of {task.id} are none"

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return 50.0 * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.library, scores = self._known(train) if self.given else self._held_out(train)
        self.given, self.given_vectors = [], {}
        right = np.array([row["label"] == "1" for row in train])
        if right.all() or not right.any():
            raise ValueError(f"right and wrong choices are told apart, and all {len(train)} training rows are alike")
        self.combiner = Combiner()
        self.combiner.fit(scores, [row["group"] for row in train], right, self.C)
        self.parameter_count = self.library.vectors.size + self.combiner.weights.size + 1

    def _known(self, train: Sequence[Row]) -> tuple[Library, np.ndarray]:
        """The parent's corpus, and the scores of the training rows by it, of which it has none."""
        library = Library(self.given, self.dimensions, self.seed, self.given_vectors)
        return library, self._scores(library, train)

    def _held_out(self, train: Sequence[Row]) -> tuple[Library, np.ndarray]:
        """A corpus of all training questions with their answers, and of each half of the questions
        the scores by those of the other one."""
        numbers = {group: number for number, group in enumerate(dict.fromkeys(row["group"] for row in train))}
        half = np.array([numbers[row["group"]] % 2 for row in train])
        scores = np.zeros((len(train), len(self.solvers)))
        for held in (0, 1):
            asked = [row for row, own in zip(train, half, strict=True) if own == held]
            others = [row for row, own in zip(train, half, strict=True) if own != held]
            scores[half == held] = self._scores(self._library_of(others), asked)
        return self._library_of(train), scores

    def _library_of(self, rows: Sequence[Row]) -> Library:
        answered = [[*plain_words(row["first"]), *plain_words(row["second"])] for row in rows if row["label"] == "1"]
        return Library(list(map(" ".join, filter(None, answered))), self.dimensions, self.seed, {})

    def _scores(self, library: Library, rows: Sequence[Row]) -> np.ndarray:
        """Scores (N, solvers) of the rows' choices."""
        solved = (library.solved(row["first"], row["second"]) for row in rows)
        return np.array([[each[name] for name in self.solvers] for each in solved]).reshape(-1, len(self.solvers))

    def logits(self, rows: Sequence[Row]) -> np.ndarray:
        """Logits of being right of the rows' choices (N,)."""
        return self.combiner(self._scores(self.library, rows), [row["group"] for row in rows])

    def predict(self, rows: Sequence[Row]) -> list[float]:
        return self.logits(rows).tolist()

    def answers(self, rows: Sequence[Row]) -> list[Answer]:
        logits = self.logits(rows)
        return with_probability(logits.tolist(), (1 / (1 + np.exp(-logits))).tolist())

    def fitted_state(self) -> dict[str, Any]:
        known = {"sentences": self.library.index.sentences, "vectors": self.library.vectors}
        return known | vars(self.combiner) | {"parameter_count": self.parameter_count}

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.parameter_count = state.pop("parameter_count")
        self.given, self.given_vectors = [], {}
        self.library = Library([], self.dimensions, self.seed, {})
        self.library.index, self.library.vectors = SentenceIndex(state.pop("sentences")), state.pop("vectors")
        self.combiner = Combiner()
        vars(self.combiner).update(state)

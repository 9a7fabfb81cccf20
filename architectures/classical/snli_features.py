"""Linear classifiers of pairs of texts, with features made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import LinearSVC

from architectures.blocks import linear_machine
from architectures.blocks.ngrams import lower_words
from architectures.blocks.spans import FUNCTION_WORDS, is_word
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row

SENTENCE_BLEU = BLEU(tokenize="none", effective_order=True)
"""BLEU of one sentence, up to as many words as it has."""


def is_content(word: str) -> bool:
    """True for a word that is neither a mark nor a function word."""
    return is_word(word) and word not in FUNCTION_WORDS


def measures(first: Sequence[str], second: Sequence[str]) -> list[float]:
    """Numbers that relate a second text to a first without saying which words they have: its BLEU,
    by how many words it is longer, and how many of its words the first has, as a number and as a
    share, of all words and of content words."""
    bleu = SENTENCE_BLEU.sentence_score(" ".join(second), [" ".join(first)]).score / 100
    found = [bleu, float(len(second) - len(first))]
    known = set(first)
    for words in (second, [word for word in second if is_content(word)]):
        common = sum(word in known for word in words)
        found += [float(common), common / max(len(words), 1)]
    return found


def runs(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """The runs of this many words, one behind the other."""
    return zip(*(words[start:] for start in range(length)), strict=False)


def indicators(first: Sequence[str], second: Sequence[str], longest: int) -> Iterator[str]:
    """Names of what is true of a pair: each run of 1 to ``longest`` words of the second text, and
    each two runs of the same length, one of either text, whose last words are of one class."""
    for length in range(1, longest + 1):
        others = list(runs(first, length))
        for run in runs(second, length):
            yield " ".join(run)
            for other in others:
                if is_content(other[-1]) == is_content(run[-1]):
                    yield f"{' '.join(other)} -> {' '.join(run)}"


@register(
    "snli_lexicalised",
    name="Lexicalised classifier of SNLI",
    kind="fit",
    paper="Bowman et al. 2015",
    source="M-T5[208]",
    year=2015,
    deviations=(
        "No tagger is at hand: in place of parts of speech there are two classes, content and function words.",
        "The linear classifier is a support vector machine; the paper does not name its own.",
        "Runs and pairs of a single training pair are left out.",
        "What the paper's run with unigrams alone keeps is not known to us: here it lacks runs of two words.",
    ),
    variants={
        "snli_unigrams": {
            "name": "Unigram classifier of SNLI",
            "hyperparameters": {"longest": 1},
        }
    },
)
class PairClassifier(Estimator):
    """A linear SVM on :func:`measures` and :func:`indicators` of the words of a pair, in lower
    case; one class against the rest.

    An indicator counts that ``min_count`` training pairs have. ``longest`` is 2 for words and pairs
    of neighbours, 1 for words alone. Measures are divided by their largest training value, without
    which the solver takes ten times as long.
    """

    task_types = ("match",)

    def __init__(self, seed: int = 0, longest: int = 2, min_count: int = 2, C: float = 0.1):
        super().__init__(seed)
        self.longest, self.min_count, self.C = longest, min_count, C

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        """Each word of a text meets each of the other: by far more names than words."""
        return 100.0 * hyperparameters["longest"] * size

    def counter(self, **settings: Any) -> CountVectorizer:
        """Says which indicators a pair has, of those that it was fitted to."""
        return CountVectorizer(
            analyzer=lambda pair: indicators(pair[0], pair[1], self.longest), binary=True, dtype=np.float64, **settings
        )

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        words = self.words(train)
        self.known = self.counter(min_df=min(self.min_count, len(train))).fit(words)
        largest = np.abs([measures(*pair) for pair in words]).max(axis=0)
        self.scale = np.where(largest > 0, largest, 1.0)
        self.machine = LinearSVC(C=self.C, random_state=self.seed)
        self.machine.fit(self.features(words), [row["label"] for row in train])
        self.parameter_count = self.machine.coef_.size + self.machine.intercept_.size

    def words(self, rows: Sequence[Row]) -> list[tuple[list[str], list[str]]]:
        """The words of both texts of each pair."""
        return [(lower_words(row["first"]), lower_words(row["second"])) for row in rows]

    def features(self, words: Sequence[tuple[list[str], list[str]]]) -> sparse.csr_array:
        """Measures, then indicators, of each pair (N, features)."""
        numbers = np.array([measures(*pair) for pair in words]) / self.scale
        return sparse.csr_array(sparse.hstack([numbers, self.known.transform(words)]))

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return self.machine.predict(self.features(self.words(rows))).tolist()

    def fitted_state(self) -> dict[str, Any]:
        state = {"indicators": self.known.get_feature_names_out(), "scale": self.scale}
        return state | linear_machine.learnt(self.machine)

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.known, self.scale = self.counter(vocabulary=state["indicators"]), state["scale"]
        self.machine = linear_machine.restored(state)

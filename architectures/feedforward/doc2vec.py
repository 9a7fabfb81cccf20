"""Paragraph vectors: a vector of each text that helps to foretell its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from sklearn.linear_model import LogisticRegression

from architectures.blocks import linear_machine
from architectures.blocks.hogwild import Hogwild, Rates, Rows, compiled, learn_passes, rate_at, states
from architectures.blocks.negative_sampling import Urn, ask, beginnings, example_of, foretell
from architectures.blocks.ngrams import lower_words
from harness.ragged import Ragged
from harness.registry import register
from harness.task import Row
from harness.views.base import Text
from harness.views.words import PAD, UNKNOWN, Vocabulary


@compiled
def learn_texts(order, rates, state, texts, documents, words, outputs, urn, negatives, frozen):
    """A step for each word of some texts, unknown ones left out: the vector of the text and those
    of the words before the word, side by side, foretell it.

    How many words are before it, the widths tell: ``documents`` (N, D), ``words`` (V, D),
    ``outputs`` (V, (context + 1) D). Before the beginning of a text stands padding. If ``frozen``,
    the vector of the text moves alone.
    """
    dims = documents.shape[1]
    context = outputs.shape[1] // dims - 1
    example = example_of(outputs.shape[1], negatives)
    hidden, change = example.hidden, example.change
    before = np.zeros(context, np.int64)
    for number in range(len(order)):
        text, rate = order[number], rate_at(rates, number, len(order))
        begin, end = texts.offsets[text], texts.offsets[text + 1]
        for place in range(begin, end):
            if texts.values[place] == UNKNOWN:
                continue
            for i in range(dims):
                hidden[i] = documents[text, i]
            for slot in range(context):
                read, behind = place - context + slot, dims * (slot + 1)
                word = before[slot] = texts.values[read] if read >= begin else PAD
                for i in range(dims):
                    hidden[behind + i] = words[word, i]
            ask(texts.values[place], urn, state, example)
            foretell(example, outputs, rate, frozen)
            for i in range(dims):
                documents[text, i] += change[i]
            for slot in range(0 if frozen else context):
                word, behind = before[slot], dims * (slot + 1)
                for i in range(dims):
                    words[word, i] += change[behind + i]


class ParagraphModel(NamedTuple):
    """Tables of :func:`learn_texts`: ``words`` (V, D), the vectors of the words before a word, and
    ``outputs`` (V, (context + 1) D), those that foretell. It is the distributed memory, PV-DM; with
    a context of no words the distributed bag of words, PV-DBOW."""

    words: np.ndarray
    outputs: np.ndarray

    @property
    def context(self) -> int:
        """Number of the words before a word that are read."""
        return self.outputs.shape[1] // self.words.shape[1] - 1


@register(
    "doc2vec",
    name="Paragraph vector (PV-DM and PV-DBOW)",
    kind="fit",
    paper="Le & Mikolov 2014",
    source="M2.1[32] M-T4",
    year=2014,
    version=2,
    tiny={"dims": 16, "contexts": (2, 0), "rate": 0.1, "epochs": 8},
    deviations=(
        "Words are foretold by negative sampling, which came after word2vec's first paper; the paper has hierarchical"
        " softmax.",
        "The rate, which falls linearly, is that of word2vec's program for bags of words; twenty passes and five drawn"
        " words are a later script's of an author, for skip-grams of all words, frequent ones left out at times. The"
        " paper has none of these.",
        "A word that training shows once is the unknown word, which is not foretold.",
        "The first words of a text are foretold from padding; the paper pads texts of less than nine words alone.",
        "A logistic regression reads the vectors, as the paper does for single sentences; above those of IMDB it has a"
        " hidden layer. Its penalty is small and ours.",
        "Two texts are ranked by the cosine of their vectors u and v, and matched by a logistic regression on u, v,"
        " |u - v| and u * v; the paper matches nothing.",
    ),
    variants={
        "doc2vec_dm": {
            "name": "Paragraph vector, distributed memory (PV-DM)",
            "hyperparameters": {"contexts": (7,)},
            "tiny": {"dims": 16, "contexts": (2,), "rate": 0.1, "epochs": 8},
        },
        "doc2vec_dbow": {
            "name": "Paragraph vector, bag of words (PV-DBOW)",
            "hyperparameters": {"contexts": (0,)},
            "tiny": {"dims": 16, "rate": 0.1, "epochs": 8},
        },
    },
)
class ParagraphVectors(Hogwild):
    """Texts by the vectors that one :class:`ParagraphModel` for each of the ``contexts`` learns,
    side by side, and a logistic regression on them (Le & Mikolov 2014, sections 2.2 to 2.4).

    Training texts have the vectors that were learnt with the words. Of any other text the vector is
    inferred by gradient steps that leave all words alone, with a seed of its words, so that it
    depends on no other text. No label is read but by the regression. Answering is slow for a system
    without layers, because an inference makes as many passes as the training. With several
    ``threads`` equal seeds give other bits (:func:`~architectures.blocks.hogwild.learn_passes`).
    """

    task_types = ("classify", "rank", "match")

    def __init__(
        self,
        task_type: str,
        seed: int = 0,
        contexts: tuple = (7, 0),
        dims: int = 400,
        negatives: int = 5,
        rate: float = 0.05,
        epochs: int = 20,
        min_count: int = 2,
        C: float = 100.0,
        threads: int = 1,
    ):
        super().__init__(seed, threads)
        self.task_type, self.contexts, self.dims, self.negatives = task_type, contexts, dims, negatives
        self.rate, self.epochs, self.min_count, self.C = rate, epochs, min_count, C

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        """A vector of each text, and those of a vocabulary as 100 MB have it."""
        vectors = sum(2 * context + 1 for context in hyperparameters["contexts"])
        return (30.0 + hyperparameters["dims"] * (0.08 + 0.004 * vectors)) * size

    def prepare(self) -> None:
        pair = {"first": "word", "second": "word"}
        ParagraphVectors("rank", dims=2, epochs=1, min_count=1).fit([pair], [])

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        sides = ("text",) if self.task_type == "classify" else ("first", "second")
        texts = list(dict.fromkeys(_words(row[side]) for row in train for side in sides))
        self.known = Vocabulary.of((word for text in texts for word in text), self.min_count)
        if not self.known.words:
            raise ValueError(f"no word stands {self.min_count} times in the {len(texts):,} training texts")
        self.urn = Urn.of(np.array(self.known.row_counts()))
        read = Rows.of(Ragged.of(map(self.known.ids, texts)))
        rng, self.models, learnt = np.random.default_rng(self.seed), [], []
        for context in self.contexts:
            words = beginnings(len(self.known), self.dims, rng)
            self.models.append(ParagraphModel(words, np.zeros((len(words), (context + 1) * self.dims), np.float32)))
            learnt.append(self._learnt(self.models[-1], read, rng))
        self.parameter_count = sum(each.outputs.size + each.words.size * (each.context > 0) for each in self.models)
        self.parameter_count += len(texts) * self.dims * len(self.contexts)
        if self.task_type != "rank":
            vectors = dict(zip(texts, np.concatenate(learnt, axis=1), strict=True))
            columns = [np.array([vectors[_words(row[side])] for row in train]) for side in sides]
            self.machine = LogisticRegression(C=self.C, max_iter=1000)
            self.machine.fit(_joined(columns), [row["label"] for row in train])
            self.parameter_count += self.machine.coef_.size + self.machine.intercept_.size

    def _learnt(self, model: ParagraphModel, texts: Rows, rng: np.random.Generator) -> np.ndarray:
        """Vectors (N, D) of training texts, learnt with the words'."""
        documents = beginnings(len(texts.offsets) - 1, self.dims, rng)
        tables = texts, documents, *model, self.urn, self.negatives

        def learn(order: np.ndarray, rates: Rates, state: np.ndarray) -> None:
            learn_texts(order, rates, state, *tables, False)

        learn_passes(learn, len(documents), self.epochs, self.rate, self.threads, rng)
        return documents

    def text_vectors(self, texts: Sequence[Text]) -> np.ndarray:
        """Inferred vectors (N, D times the number of models), the same for equal words."""
        words = list(map(_words, texts))
        vectors = {text: self._inferred(text) for text in set(words)}
        return np.array([vectors[text] for text in words])

    def _inferred(self, words: tuple[str, ...]) -> np.ndarray:
        """A text's vectors in all models, each of which alone moves in passes over the text."""
        rng = np.random.default_rng([self.seed, crc32(" ".join(words).encode())])
        text, passes = Rows.of(Ragged.of([self.known.ids(words)])), np.zeros(self.epochs, np.int64)
        found = []
        for model in self.models:
            documents, [state] = beginnings(1, self.dims, rng), states(1, rng)
            learn_texts(passes, Rates(self.rate, 0.0), state, text, documents, *model, self.urn, self.negatives, True)
            found.append(documents[0])
        return np.concatenate(found)

    def predict(self, rows: Sequence[Row]) -> list[Any]:
        if self.task_type == "classify":
            return self.machine.predict(self.text_vectors([row["text"] for row in rows])).tolist()
        both = self.text_vectors([row[side] for side in ("first", "second") for row in rows])
        first, second = both[: len(rows)], both[len(rows) :]
        if self.task_type == "match":
            return self.machine.predict(_joined([first, second])).tolist()
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        return ((first * second).sum(axis=1) / lengths).tolist()

    def word_vectors(self) -> Mapping[str, np.ndarray] | None:
        """Vectors of the words before a word; the bag of words alone has none."""
        tables = [model.words[2:] for model in self.models if model.context]
        return dict(zip(self.known.words, tables[0], strict=True)) if tables else None

    def fitted_state(self) -> dict[str, Any]:
        state = {"known": self.known.words, "counts": self.known.counts, "parameter_count": self.parameter_count}
        state["tables"] = [list(model) for model in self.models]
        return state if self.task_type == "rank" else state | linear_machine.learnt(self.machine)

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.parameter_count = state["parameter_count"]
        self.known = Vocabulary(state["known"], state["counts"])
        self.urn = Urn.of(np.array(self.known.row_counts()))
        self.models = [ParagraphModel(*tables) for tables in state["tables"]]
        if self.task_type != "rank":
            self.machine = linear_machine.restored(state)


def _words(text: Text) -> tuple[str, ...]:
    return tuple(lower_words(text))


def _joined(vectors: list[np.ndarray]) -> np.ndarray:
    """The vectors of a text; of two texts both, their difference and their product."""
    if len(vectors) == 1:
        [alone] = vectors
        return alone
    first, second = vectors
    return np.concatenate([first, second, np.abs(first - second), first * second], axis=1)

"""Paragraph vectors: a vector of each text that helps to foretell its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from architectures.blocks import linear_machine
from architectures.blocks.negative_sampling import LOWEST, SPREAD, TEXTS_AT_ONCE, NegativeSampling
from architectures.blocks.ngrams import lower_words
from harness.kinds import Estimator
from harness.ragged import Ragged, take
from harness.registry import register
from harness.rows import in_parts
from harness.task import Row
from harness.views.base import Text
from harness.views.words import PAD, UNKNOWN, Vocabulary

INFERRED_AT_ONCE, INFERRED_TEXTS = 4, 500
"""Words of a text in a step of its inference, since all of them move one vector, which the sum of
many gradients would throw too far; and texts whose vectors are inferred side by side."""


class Examples(NamedTuple):
    """Words (n,) to foretell, each with the number of its text (n,) and the k words before (n, k);
    before its beginning a text has :data:`PAD`."""

    texts: np.ndarray
    before: np.ndarray
    words: np.ndarray

    def some(self, places: np.ndarray) -> Examples:
        return Examples(self.texts[places], self.before[places], self.words[places])


def examples_of(texts: Ragged, context: int) -> Examples:
    """The known words of the texts, one after another, each with ``context`` words before it."""
    text_of = np.repeat(np.arange(len(texts)), texts.lengths)
    place, back = np.arange(len(text_of)), np.arange(context, 0, -1)
    inside = (place - texts.offsets[text_of])[:, None] >= back
    before = np.where(inside, texts.values[np.maximum(place[:, None] - back, 0)], PAD).astype(np.int64)
    return Examples(text_of, before, texts.values.astype(np.int64)).some(texts.values != UNKNOWN)


def drawn(rows: int, dims: int, rng: np.random.Generator) -> Tensor:
    """Vectors (rows, dims) as word2vec's begin: uniform in +-1/2D."""
    return torch.from_numpy(((rng.random((rows, dims)) - 0.5) / dims).astype(np.float32))


class ParagraphModel:
    """The vector of a text and those of the ``context`` words before a word, side by side, foretell
    the word by :class:`NegativeSampling`: the distributed memory, PV-DM. With a context of no words
    it is the distributed bag of words, PV-DBOW.

    ``words`` (V, D) are the vectors of the words before, ``outputs`` (V, (context + 1) D) those
    that foretell.
    """

    def __init__(self, context: int, words: Tensor, outputs: Tensor, counts: np.ndarray, negatives: int):
        self.context, self.words, self.outputs = context, words, outputs
        self.counts, self.negatives = counts, negatives

    def fit(self, texts: Ragged, rate: float, epochs: int, batch_size: int, rng: np.random.Generator) -> Tensor:
        """Vectors (N, D) of training texts, learnt with the words'; the examples of some texts come
        in an order of chance, so that few of a step are of one text."""
        documents = drawn(len(texts), self.words.shape[1], rng)
        sampling = NegativeSampling(documents, self.outputs, self.counts, self.negatives, rng)
        size = max(1, min(batch_size, len(texts) // SPREAD, len(self.words) // SPREAD))
        starts = range(0, len(texts), TEXTS_AT_ONCE)
        for number in range(epochs):
            order = rng.permutation(len(texts))
            for start in starts:
                part = order[start : start + TEXTS_AT_ONCE]
                found = examples_of(take(texts, part), self.context)
                now = rate * max(LOWEST, 1 - (number + start / len(texts)) / epochs)
                places = rng.permutation(len(found.words))
                for begin in range(0, len(places), size):
                    some = found.some(places[begin : begin + size])
                    self.learn(sampling, some._replace(texts=part[some.texts]), now)
        return documents

    def learn(
        self,
        sampling: NegativeSampling,
        some: Examples,
        rate: float,
        negatives: np.ndarray | None = None,
    ) -> None:
        """One step. Given ``negatives`` (n, negatives), it moves the vectors of the texts,
        ``sampling.inputs``, alone; else it draws them, and words move too."""
        frozen = negatives is not None
        chosen = np.column_stack([some.words, sampling.draw(len(some.words)) if negatives is None else negatives])
        texts, before = torch.from_numpy(some.texts), torch.from_numpy(some.before)
        hidden = torch.cat([sampling.inputs[texts], self.words[before].flatten(1)], dim=1)
        change = sampling.told(hidden, chosen, rate, frozen).unflatten(1, (-1, self.words.shape[1]))
        sampling.inputs.index_add_(0, texts, change[:, 0])
        if not frozen:
            self.words.index_add_(0, before.flatten(), change[:, 1:].flatten(0, 1))

    def infer(
        self, texts: Sequence[Sequence[int]], rngs: Sequence[np.random.Generator], rate: float, epochs: int
    ) -> np.ndarray:
        """Vectors (N, D) of texts, each by itself with random numbers of its own: those of
        training, while words stay as they are. A step takes a few words of every text."""
        documents = torch.cat([drawn(1, self.words.shape[1], rng) for rng in rngs])
        sampling = NegativeSampling(documents, self.outputs, self.counts, self.negatives, rngs[0])
        found = examples_of(Ragged.of(texts), self.context)
        lengths = np.bincount(found.texts, minlength=len(texts))
        starts = np.cumsum(lengths) - lengths
        turn = (np.arange(len(found.words)) - starts.repeat(lengths)) // INFERRED_AT_ONCE
        for number in range(epochs):
            now = rate * max(LOWEST, 1 - number / epochs)
            drawings = [(rng.permutation(n), sampling.draw(n, rng)) for n, rng in zip(lengths, rngs, strict=True)]
            places = np.concatenate([order + start for (order, _), start in zip(drawings, starts, strict=True)])
            negatives = np.concatenate([words for _, words in drawings])
            for step in range(turn.max(initial=-1) + 1):
                at = turn == step
                self.learn(sampling, found.some(places[at]), now, negatives[at])
        return documents.numpy()


@register(
    "doc2vec",
    name="Paragraph vector (PV-DM and PV-DBOW)",
    kind="fit",
    paper="Le & Mikolov 2014",
    source="M2.1[32] M-T4",
    year=2014,
    tiny={"dims": 16, "contexts": (2, 0), "rate": 0.1, "epochs": 8},
    deviations=(
        "Words are foretold by negative sampling, which came after word2vec's first paper; the paper has hierarchical"
        " softmax.",
        "The rate, which falls linearly, is that of word2vec's program for bags of words, and twenty passes are an"
        " author's later script's; the paper has none.",
        "The sum of the gradients of 256 words (fewer where words or texts are few) is one step, in an inference of 4;"
        " the paper makes a step for each word.",
        "A word that training shows once is the unknown word, which is not foretold.",
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
class ParagraphVectors(Estimator):
    """Texts by the vectors that one :class:`ParagraphModel` for each of the ``contexts`` learns,
    side by side, and a logistic regression on them (Le & Mikolov 2014, sections 2.2 to 2.4).

    Training texts have the vectors that were learnt with the words. Of any other text the vector is
    inferred by gradient steps that leave all words alone, with a seed of its words, so that it
    depends on no other text, but for rounding. No label is read but by the regression. Answering is
    slow for a system without layers, because an inference makes as many passes as the training.
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
        batch_size: int = 256,
        min_count: int = 2,
        C: float = 100.0,
    ):
        super().__init__(seed)
        self.task_type, self.contexts, self.dims, self.negatives = task_type, contexts, dims, negatives
        self.rate, self.epochs, self.batch_size = rate, epochs, batch_size
        self.min_count, self.C = min_count, C

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        """A vector of each text, and those of a vocabulary as 100 MB have it."""
        vectors = sum(2 * context + 1 for context in hyperparameters["contexts"])
        return (30.0 + hyperparameters["dims"] * (0.08 + 0.004 * vectors)) * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        sides = ("text",) if self.task_type == "classify" else ("first", "second")
        texts = list(dict.fromkeys(_words(row[side]) for row in train for side in sides))
        self.known = Vocabulary.of((word for text in texts for word in text), self.min_count)
        ids, counts = Ragged.of(map(self.known.ids, texts)), np.array(self.known.row_counts())
        if not self.known.words:
            raise ValueError(f"no word stands {self.min_count} times in the {len(texts):,} training texts")
        rng, self.models, learnt = np.random.default_rng(self.seed), [], []
        for context in self.contexts:
            tables = drawn(len(counts), self.dims, rng), torch.zeros(len(counts), (context + 1) * self.dims)
            self.models.append(ParagraphModel(context, *tables, counts, self.negatives))
            learnt.append(self.models[-1].fit(ids, self.rate, self.epochs, self.batch_size, rng).numpy())
        self.parameter_count = sum(
            each.outputs.numel() + each.words.numel() * (each.context > 0) for each in self.models
        )
        self.parameter_count += len(texts) * self.dims * len(self.contexts)
        if self.task_type != "rank":
            vectors = dict(zip(texts, np.concatenate(learnt, axis=1), strict=True))
            columns = [np.array([vectors[_words(row[side])] for row in train]) for side in sides]
            self.machine = LogisticRegression(C=self.C, max_iter=1000)
            self.machine.fit(_joined(columns), [row["label"] for row in train])
            self.parameter_count += self.machine.coef_.size + self.machine.intercept_.size

    def text_vectors(self, texts: Sequence[Text]) -> np.ndarray:
        """Inferred vectors (N, D times the number of models), the same for equal words."""
        words = list(map(_words, texts))
        places = {text: place for place, text in enumerate(sorted(set(words)))}  # whatever the rows' order
        parts = [self._inferred(part) for part in in_parts(list(places), INFERRED_TEXTS)]
        return np.concatenate(parts)[[places[text] for text in words]]

    def _inferred(self, texts: Sequence[tuple[str, ...]]) -> np.ndarray:
        rngs = [np.random.default_rng([self.seed, crc32(" ".join(words).encode())]) for words in texts]
        ids = [self.known.ids(words) for words in texts]
        return np.concatenate([model.infer(ids, rngs, self.rate, self.epochs) for model in self.models], axis=1)

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
        tables = [model.words[2:].numpy() for model in self.models if model.context]
        return dict(zip(self.known.words, tables[0], strict=True)) if tables else None

    def fitted_state(self) -> dict[str, Any]:
        state = {"known": self.known.words, "counts": self.known.counts, "parameter_count": self.parameter_count}
        state["tables"] = [[model.words, model.outputs] for model in self.models]
        return state if self.task_type == "rank" else state | linear_machine.learnt(self.machine)

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.parameter_count = state["parameter_count"]
        self.known = Vocabulary(state["known"], state["counts"])
        counts = np.array(self.known.row_counts())
        self.models = [
            ParagraphModel(context, *tables, counts, self.negatives)
            for context, tables in zip(self.contexts, state["tables"], strict=True)
        ]
        if self.task_type != "rank":
            self.machine = linear_machine.restored(state)


def _words(text: Text) -> tuple[str, ...]:
    return tuple(lower_words(text))


def _joined(vectors: list[np.ndarray]) -> np.ndarray:
    """The vectors of a text; of two texts both, their difference and their product."""
    if len(vectors) == 1:
        return vectors[0]
    first, second = vectors
    return np.concatenate([first, second, np.abs(first - second), first * second], axis=1)

"""Nearest-neighbour language model: the words that followed similar contexts in training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from architectures.blocks.random_vectors import random_vector
from harness.errors import ModelError
from harness.kinds import Estimator, LanguageModel
from harness.problems.language_model import UNKNOWN, vocabulary
from harness.registry import register
from harness.task import Row
from harness.views.base import words_of

if TYPE_CHECKING:
    from harness.saved_models.model import KeptModel

KEYS_AT_ONCE = 65_536
"""Keys whose distances are computed together."""
QUERIES_AT_ONCE = 16
"""Contexts that are looked up together: the keys of all neighbours of each are read."""


class Reading(NamedTuple):
    """Of each word of a text its number (T,), the state of the words before it (T, D), and its
    natural log-probability by the language model (T,)."""

    words: Tensor
    states: Tensor
    logs: Tensor


def nearest(queries: Tensor, keys: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Squared distances (Q, count) of the nearest keys of each query, and their places; fewer where
    there are fewer keys. ``queries`` (Q, D), ``keys`` (N, D).

    Blocks of keys are searched by products of matrices, which round; of what they find the
    distances are computed once more.
    """
    lengths, places = torch.empty(len(queries), 0), torch.empty(len(queries), 0, dtype=torch.long)
    for start in range(0, len(keys), KEYS_AT_ONCE):
        block = keys[start : start + KEYS_AT_ONCE].float()
        found = block.square().sum(1) - 2 * queries @ block.T
        numbers = torch.arange(start, start + len(block)).expand(len(queries), -1)
        lengths, places = torch.cat([lengths, found], 1), torch.cat([places, numbers], 1)
        lengths, kept = lengths.topk(min(count, lengths.shape[1]), dim=1, largest=False)
        places = places.gather(1, kept)
    return (queries[:, None] - keys[places].float()).square().sum(2), places


def read(parent: KeptModel, row: Row) -> Reading:
    """A text by a kept language model, which reads it stretch by stretch."""
    encoder, head = parent.model.encoder, parent.model.head
    with torch.inference_mode():
        words = parent.model.read(parent.split([row]).collate(np.array([0])).inputs)["text"]
        state, parts = encoder.start(1), []
        for start in range(0, int(words.lengths[0]), head.stretch):
            stop = start + head.stretch
            states, state = encoder(words.before(slice(None), start, stop), state)
            following = words.next[:, start:stop]
            parts.append(Reading(following[0], states[0], encoder.log_probabilities(states, following)[0]))
    return Reading(*(torch.cat(each).clone() for each in zip(*parts, strict=True)))


@register(
    "knn_lm",
    name="Nearest-neighbour language model (kNN-LM)",
    kind="fit",
    paper="Khandelwal et al. 2019",
    source="X4.3.1",
    year=2019,
    parents={"inputs": "rnn_lm_lstm"},
    tiny={"neighbours": 64},
    deviations=(
        "The language model is an LSTM's, or any other that `--parent inputs=...` names, and a key is the state that"
        " its softmax reads; the paper's is a Transformer of 16 layers, a key the input of its last feed-forward"
        " layer.",
        "The search is exact, and keys are numbers of half precision; the paper searches compressed keys.",
        "The weight of the neighbours is the paper's for WikiText-103, and not tuned on dev.",
        "Without a parent, as `archbench check` runs it, the language model is each word's share of the training"
        " words, and a state the sum of random vectors of the words before, halved at each step.",
    ),
)
class NearestNeighbourLanguageModel(Estimator):
    """p(w | h) = ``share`` p_kNN(w | h) + (1 - share) p_LM(w | h) (Khandelwal et al. 2019,
    equations 2 and 3).

    p_LM is a parent's, which stays as it is. Each place of the training texts is a key, the
    parent's state of the words before it, and a value, the word itself. p_kNN is the softmax over
    the negative squared distances of the nearest ``neighbours`` keys to the state of h, summed over
    those with the value w. Slow to answer, because each word is compared with all of training.
    """

    task_types = ("language_model",)
    takes = ("inputs",)
    parent: KeptModel | None = None

    def __init__(self, seed: int = 0, neighbours: int = 1024, share: float = 0.25, dims: int = 32):
        super().__init__(seed)
        self.neighbours, self.share, self.dims = neighbours, share, dims

    def inherit(self, role: str, parent: KeptModel, rows: Sequence[Row]) -> None:
        if parent.model is None or not isinstance(parent.model.encoder, LanguageModel):
            raise ModelError(f"{parent.description.part.architecture} is no language model of kind lm, with states")
        self.parent = parent

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        """A word has some five bytes, and its key 1,300 if the parent's state has 650 numbers."""
        return (30.0 + 1300 / 5) * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        """Read the training texts once: keys (N, D) and values (N,)."""
        if self.parent is None:
            self.words = vocabulary(train)
            counts = Counter(self.words)
            counts.update(word for row in train for word in words_of(row["text"]))
            self.logs = np.log([counts[word] / counts.total() for word in self.words])
        read = [self.read(row) for row in train if words_of(row["text"])]
        self.keys = torch.cat([each.states.half() for each in read])
        self.values = torch.cat([each.words for each in read])
        self.parameter_count = self.keys.numel() + self.values.numel()

    def read(self, row: Row) -> Reading:
        """A text by the parent, or without one."""
        if self.parent is not None:
            return read(self.parent, row)
        known = {word: number for number, word in enumerate(self.words)}
        words = [word if word in known else UNKNOWN for word in words_of(row["text"])]
        numbers = np.array([known[word] for word in words])
        states = np.array([*self._halved(words)], dtype=np.float32)
        return Reading(*map(torch.from_numpy, (numbers, states, self.logs[numbers])))

    def _halved(self, words: Sequence[str]) -> Iterator[np.ndarray]:
        state = np.zeros(self.dims)
        for word in words:
            yield state
            state = state / 2 + random_vector(word, self.dims, self.seed)

    @property
    def vocabulary(self) -> list[str]:
        """The words over which its probabilities sum to one: the parent's."""
        return self.words if self.parent is None else self.parent.target.vocabulary

    def predict(self, rows: Sequence[Row]) -> list[list[float]]:
        return [self._surprise(self.read(row)) if words_of(row["text"]) else [0.0, 0] for row in rows]

    def _surprise(self, text: Reading) -> list[float]:
        parts = zip(text.words.split(QUERIES_AT_ONCE), text.states.split(QUERIES_AT_ONCE), strict=True)
        shares = torch.cat([self.of_neighbours(*part) for part in parts])
        together = self.share * shares.double() + (1 - self.share) * text.logs.double().exp()
        return [together.log().sum().item(), len(text.words)]

    def of_neighbours(self, words: Tensor, states: Tensor) -> Tensor:
        """p_kNN (Q,) of the words behind the states (Q, D)."""
        distances, places = nearest(states, self.keys, self.neighbours)
        return (distances.neg().softmax(1) * (self.values[places] == words[:, None])).sum(1)

    def fitted_state(self) -> dict[str, Any]:
        names = ("keys", "values", "parameter_count", *(() if self.parent else ("words", "logs")))
        return {name: getattr(self, name) for name in names}

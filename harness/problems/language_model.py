"""Language modelling: the probability of a text, word by word."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from harness.errors import ContractError
from harness.problems.base import Batch, EncodedSplit, Head, Inputs, NoTarget, Problem
from harness.registry import register_problem
from harness.task import Row
from harness.views.base import words_of
from harness.views.stream import UNKNOWN, StreamBatch

Surprise = list[float]
"""A prediction: the sum of the words' natural log-probabilities, and the number of words."""
BEGINNING = 20
"""Words of a training text behind which a distribution is summed up."""


def vocabulary(train: Iterable[Row]) -> list[str]:
    """The words of training and :data:`UNKNOWN`, in their order."""
    return sorted({UNKNOWN, *(word for row in train for word in words_of(row["text"]))})


class Vocabulary(NoTarget):
    """The words over which a network's probabilities sum to one. Its answers are the words that it
    reads."""

    def fit(self, rows: Sequence[Row]) -> None:
        self.symbols = vocabulary(rows)

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def vocabulary(self) -> list[str]:
        """The words, as every system of language modelling says them."""
        return self.symbols


class Foretold(NamedTuple):
    """Natural log-probabilities (B, T) of the words of B texts, 0 at padding, with their mask, and
    the state behind them where all were read at once."""

    logs: Tensor
    mask: Tensor
    state: Any


class NextWord(Head):
    """The probability of each word, read stretch by stretch with the state carried along.

    A text's first stretch begins with the encoder's starting state; any other goes on from
    ``state`` among the inputs, where the texts stand in the same order, or begins anew where there
    is none. The loss is the mean of the negative log-probabilities: nats per word.
    """

    def __init__(self, encoder: Any, target: Vocabulary):
        super().__init__()
        self.target = target

    def forward(self, encoder: Any, inputs: Inputs) -> Foretold:
        words: StreamBatch = inputs["text"]
        state = carried(encoder, words.begins, inputs.get("state"))
        longest = words.ids.shape[1]
        if longest <= self.stretch:
            logs, state = self._read(encoder, words, slice(None), 0, state)
            return Foretold(logs * words.mask, words.mask, state)
        logs, texts = torch.zeros(words.ids.shape, device=words.ids.device), torch.arange(len(words.ids))
        for start in range(0, longest, self.stretch):
            going = (words.lengths[texts] > start).to(texts.device)
            texts, state = texts[going], tree_map(lambda each, going=going: each[going], state)
            part, state = self._read(encoder, words, texts, start, state)
            logs[texts, start : start + self.stretch] = part.to(logs.dtype)
        return Foretold(logs * words.mask, words.mask, None)

    def _read(
        self, encoder: Any, words: StreamBatch, texts: Tensor | slice, start: int, state: Any
    ) -> tuple[Tensor, Any]:
        """Log-probabilities of the words of one stretch of some texts, and the state behind it."""
        stop = start + self.stretch
        states, state = encoder(words.before(texts, start, stop), state)
        return encoder.log_probabilities(self.drop(states), words.next[texts, start:stop]), state

    def loss(self, encoder: Any, outputs: Foretold, target: None) -> Tensor:
        return -outputs.logs.sum() / outputs.mask.sum().clamp(min=1)

    def row_losses(self, encoder: Any, outputs: Foretold, target: None) -> Tensor:
        return -outputs.logs.sum(1)

    def decode(self, encoder: Any, outputs: Foretold, batch: Batch, split: EncodedSplit) -> list[Surprise]:
        sums, counts = outputs.logs.double().sum(1).tolist(), outputs.mask.sum(1).tolist()
        return [[total, count] for total, count in zip(sums, counts, strict=True)]

    def evidence(self, encoder: Any, outputs: Foretold) -> list[Tensor]:
        return [logs[mask] for logs, mask in zip(outputs.logs, outputs.mask, strict=True)]


def carried(encoder: Any, begins: Tensor, state: Any) -> Any:
    """The state before each stretch: that of a beginning where one ``begins`` (B,), or where there
    is no ``state`` yet. Of more states than stretches the first ones go on."""
    fresh = encoder.start(len(begins))
    if state is None:
        return fresh
    return tree_map(
        lambda new, old: torch.where(begins.view(-1, *[1] * (new.dim() - 1)), new, old[: len(new)]), fresh, state
    )


@register_problem(
    "language_model",
    name="Language modelling",
    columns=("text",),
    inputs=("text",),
    texts=("text",),
    metrics=("nats_per_token", "perplexity", "bits_per_character"),
    answers="harness.problems.answers.surprises:Surprises",
)
class LanguageModelProblem(Problem):
    """A text is given a probability, the product of those of its words.

    The probability of a word may depend on the words before it in the same text alone. A text has
    no end but what stands in it: a corpus with ends of lines has a word for them. A system says
    over which words its probabilities sum to one (``vocabulary``), among them :data:`UNKNOWN`,
    which all other words are read as.
    """

    heads: ClassVar = {"next words": NextWord}

    def target(self, gives: str) -> Vocabulary:
        return Vocabulary()

    floor_names: ClassVar[tuple[str, ...]] = ("unigram", "uniform")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[Surprise]]:
        """Each word by its share of the training words, every word of the vocabulary counted once
        more; and all words of the vocabulary alike."""
        counts = Counter(vocabulary(train))
        counts.update(word for row in train for word in words_of(row["text"]))
        total = math.log(counts.total())
        logs = {word: math.log(count) - total for word, count in counts.items()}
        texts = [words_of(row["text"]) for row in rows]
        return {
            "unigram": [[math.fsum(logs.get(word, logs[UNKNOWN]) for word in text), len(text)] for text in texts],
            "uniform": [[-len(text) * math.log(len(counts)), len(text)] for text in texts],
        }

    def right(self, row: Row) -> Surprise:
        """Certainty of every word."""
        return [0.0, len(words_of(row["text"]))]

    def by_heart(self, rows: Sequence[Row], encoder: Any) -> list[Surprise]:
        """Each word by its share of the words that the rows have behind the same words before it,
        as many of them as the encoder sees: nobody knows which text begins."""
        return known_by_heart([words_of(row["text"]) for row in rows], encoder.window)

    def tokens(self, system: Any) -> dict[str, Any]:
        """The vocabulary of a system, as a record has it: systems with another one are not
        compared. :class:`ContractError` for one that does not say."""
        words = sorted(set(getattr(system, "vocabulary", ())))
        if UNKNOWN not in words:
            raise ContractError(
                f"{type(system).__name__}: self.vocabulary has {len(words):,} words, and {UNKNOWN!r} is not one of"
                " them; a language model gives there the words over which its probabilities sum to one"
            )
        digest = hashlib.sha256(json.dumps(words).encode()).hexdigest()
        return {"name": f"{len(words):,} words", "symbols": len(words), "artefact": digest}

    def sound(self, system: Any, predict: Callable[[list[Row]], list[Surprise]], train: Sequence[Row]) -> None:
        """Raise :class:`ContractError` unless the probabilities of all words, behind a beginning
        of a training text and at its start, sum to one: without that a score means nothing."""
        self.tokens(system)
        words = sorted(set(system.vocabulary))
        beginning = words_of(train[0]["text"])[:BEGINNING]
        for context in (beginning[:1], beginning):
            texts = [context, *([*context, word] for word in words)]
            (before, _), *after = predict([{"id": str(number), "text": text} for number, text in enumerate(texts)])
            logs = (longer - before for longer, _ in after)
            require_sum_of_one(logs, len(words), f"behind {' '.join(context)!r}")


def require_sum_of_one(logs: Iterable[float], words: int, where: str) -> None:
    """Raise :class:`ContractError` unless the probabilities of all words at a place, given by their
    logarithms, sum to one."""
    total = math.fsum(map(math.exp, logs))
    if not math.isclose(total, 1, abs_tol=1e-3):
        raise ContractError(
            f"{where} the probabilities of the {words:,} words of its vocabulary sum to {total:.4g}, not 1"
        )


def known_by_heart(texts: Sequence[Sequence[str]], window: int | None = None) -> list[Surprise]:
    """Each unit by its share of those that the texts have behind the same units before it, at most
    a ``window`` of them (None: all)."""
    followed: Counter[tuple[str, ...]] = Counter()
    histories: Counter[tuple[str, ...]] = Counter()
    read = [_windows(text, window) for text in texts]
    for seen in read:
        followed.update(seen)
        histories.update(each[:-1] for each in seen)
    return [[sum(math.log(followed[w] / histories[w[:-1]]) for w in seen), len(seen)] for seen in read]


def _windows(words: Sequence[str], before: int | None) -> list[tuple[str, ...]]:
    """Each word of a text behind the words before it, at most so many; the text's beginning is
    one."""
    marked = ("", *words)
    return [marked[0 if before is None else max(0, place - before) : place + 1] for place in range(1, len(marked))]

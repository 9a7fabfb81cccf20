"""Language modelling: the probability of a text, word by word."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from harness.errors import ContractError
from harness.problems.base import Problem
from harness.registry import register_problem
from harness.task import Row
from harness.views.base import words_of

UNKNOWN = "<unk>"
"""Word that stands for every word outside of a vocabulary. Some corpora have it in their texts."""
Surprise = list[float]
"""A prediction: the sum of the words' natural log-probabilities, and the number of words."""
BEGINNING = 20
"""Words of a training text behind which a distribution is summed up."""


def vocabulary(train: Iterable[Row]) -> list[str]:
    """The words of training and :data:`UNKNOWN`, in their order."""
    return sorted({UNKNOWN, *(word for row in train for word in words_of(row["text"]))})


@register_problem(
    "language_model",
    name="Language modelling",
    columns=("text",),
    inputs=("text",),
    texts=("text",),
    metrics=("nats_per_token", "perplexity", "bits_per_character"),
    short_predictions=False,
)
class LanguageModelProblem(Problem):
    """A text is given a probability, the product of those of its words.

    The probability of a word may depend on the words before it in the same text alone. A text has
    no end but what stands in it: a corpus with ends of lines has a word for them. A system says
    over which words its probabilities sum to one (``vocabulary``), among them :data:`UNKNOWN`,
    which all other words are read as.
    """

    floor_names = ("unigram", "uniform")

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

    def tokens(self, system: Any) -> dict[str, Any]:
        """The vocabulary of a fitted system, as a record has it: systems with another one are not
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
            total = math.fsum(math.exp(longer - before) for longer, _ in after)
            if not math.isclose(total, 1, abs_tol=1e-3):
                raise ContractError(
                    f"behind {' '.join(context)!r} the probabilities of the {len(words):,} words of its vocabulary sum"
                    f" to {total:.4g}, not 1"
                )

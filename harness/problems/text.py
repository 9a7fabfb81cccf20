"""Plain text without labels: the probability of a word by the words around it, and systems that
make word vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from harness.kinds import Architecture, Estimator, PretrainedEncoder
from harness.problems.base import Head, Target
from harness.problems.language_model import UNKNOWN, LanguageModelProblem, Surprise, require_sum_of_one
from harness.problems.pieces import CHARACTERS, character_floor, require_one_text
from harness.problems.text_objective import LearnText, PieceTarget, counted, require_logarithms
from harness.ragged import Ragged
from harness.registry import register_problem
from harness.rows import in_parts
from harness.task import Row
from harness.views.base import Text, View, words_of
from harness.views.words import UNKNOWN as UNKNOWN_ID
from harness.views.words import Vocabulary, Words

MIN_COUNT = 5
"""Times that training must show a word of the vocabulary: as in word2vec's program."""
EVERY, FIRST = 10, 5
"""Words are asked for at every tenth place from the sixth word on; the middle one of a shorter
text."""
AROUND = 5
"""Words on each side of a word by which a table of vectors foretells it."""
TUNED_ON = 300
"""Words of dev on which the strength of the vectors is chosen."""
STRONGEST = 50.0
"""Bound of that strength: e^50 times the share of a word is certainty."""
PIECES = "pieces"
"""Name of the floor of encoders of word pieces."""
AT_ONCE = 10_000
"""Texts that are numbered together."""


def asked_places(length: int) -> range:
    """Places of the words that are asked for, in a text of so many words.

    >>> list(asked_places(31)), list(asked_places(3)), list(asked_places(1))
    ([5, 15, 25], [1], [0])
    """
    return range(min(FIRST, length // 2), length, EVERY)


def reader() -> Words:
    """The view by which words of plain text are read: in lower case, whole texts."""
    return Words(min_count=MIN_COUNT, max_length=2**31)


def vocabulary(train: Iterable[Row]) -> Vocabulary:
    """The words that training shows at least :data:`MIN_COUNT` times."""
    view = reader()
    view.fit([row["text"] for row in train])
    return view.vocabulary


def counts_characters(system: Any) -> bool:
    """True for a system, or its class, whose scores count characters and not words."""
    return getattr(system, "unit", None) == CHARACTERS


@register_problem(
    "text",
    name="Plain text",
    columns=("text",),
    inputs=("text",),
    texts=("text",),
    metrics=("nats_per_token", "perplexity"),
    answers="harness.problems.answers.surprises:Surprises",
)
class TextProblem(LanguageModelProblem):
    """Some words of a text are given a probability, each by all the others.

    They stand at :func:`asked_places`. A prediction is the sum of their natural log-probabilities,
    and their number. Words are read in lower case; a system says over which ones its probabilities
    sum to one (``vocabulary``), among them :data:`~harness.problems.language_model.UNKNOWN`, which
    all other words are read as. A system whose ``unit`` is the character gives whole texts a
    probability (:class:`~harness.problems.pieces.TokenTrainer`), and has a floor of its own. So has
    an encoder of word pieces, which is pre-trained here: its objective says what it is asked
    (:class:`~harness.problems.text_objective.TextObjective`).
    """

    heads: ClassVar[dict[str, type[Head]]] = {"joined states": LearnText}
    floor_names = ("unigram", "uniform", CHARACTERS)

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[Surprise]]:
        """Each word by its share of the training words, every word of the vocabulary counted once
        more; and all words of the vocabulary alike."""
        words = vocabulary(train)
        logs = _log_shares(words, numbered([row["text"] for row in train], words))
        texts = [numbered([row["text"]], words).values for row in rows]
        asked = [text[asked_places(len(text))] for text in texts]
        return {
            "unigram": [[float(logs[ids].sum()), len(ids)] for ids in asked],
            "uniform": [[-len(ids) * math.log(len(words) - 1), len(ids)] for ids in asked],
        }

    def floors_of(
        self, system: type[Architecture], train: Sequence[Row], rows: Sequence[Row], view: View | None = None
    ) -> dict[str, list[Surprise]]:
        if counts_characters(system):
            return {CHARACTERS: character_floor(train, rows)}
        if issubclass(system, PretrainedEncoder):
            read: Any = view or system.reads("text", {})
            if view is None:
                read.fit([row["text"] for row in train])
            return {PIECES: system.learns.floor(read, train, rows)}
        return self.floors(train, rows)

    def target(self, gives: str) -> Target:  # type: ignore[override]
        return PieceTarget() if gives == PretrainedEncoder.gives else super().target(gives)

    def head(self, encoder: Any, target: Any) -> Head:
        """The head, which tells the target what scores count."""
        head: Any = super().head(encoder, target)
        target.counted = counted(head.learns.unit, encoder.view)
        return head

    def by_heart(self, rows: Sequence[Row], encoder: Any) -> list[Surprise]:
        return encoder.learns.by_heart(encoder.view, rows)

    def tokens(self, system: Any) -> dict[str, Any]:
        if isinstance(system, PieceTarget):
            assert system.counted is not None  # there is a model
            return system.counted
        return {"name": CHARACTERS} if counts_characters(system) else super().tokens(system)

    def right(self, row: Row) -> Surprise:
        """Certainty of every word that is asked for."""
        return [0.0, len(asked_places(len(reader().split(row["text"]))))]

    def sound(self, system: Any, predict: Callable[[list[Row]], list[Surprise]], train: Sequence[Row]) -> None:
        """Raise :class:`ContractError` unless the probabilities of all words at one place sum to
        one: a system that looks at the word itself, or at less than the vocabulary, is found so."""
        self.tokens(system)
        if isinstance(system, PieceTarget):
            return require_logarithms(predict, train)
        if counts_characters(system):
            return require_one_text(predict, train)
        beginning = words_of(train[0]["text"])[:EVERY]
        for text in (beginning, beginning[:1]):
            place = asked_places(len(text))[0]
            texts = [[*text[:place], word, *text[place + 1 :]] for word in sorted(set(system.vocabulary))]
            found = predict([{"id": str(number), "text": each} for number, each in enumerate(texts)])
            require_sum_of_one((log for log, _ in found), len(texts), f"in the place of {text[place]!r}")


class VectorTrainer(Estimator):
    """A system that makes a vector of each word of plain text, for others to start from.

    Its score is that of a rule which is the same for all of them: p(w | the words around) is
    proportional to count(w) exp(b cos(v(w), c)), c being the sum of the vectors, scaled to length
    1, of the words up to :data:`AROUND` places away, and b what gives words of dev the highest
    probability. The mean of all vectors is taken from each before: word2vec's have it in common,
    and it tells nothing of a word (Mu and Viswanath 2018). With b = 0 it is the unigram floor.
    Where a product says otherwise what speaks for a word, that takes the place of the cosine
    (:meth:`asked`).
    """

    task_types = ("text",)
    from_dev = ("strength",)

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        """Vectors (V, D) of the vocabulary's entries, of which the first two, padding and the
        unknown word, are not read. ``texts`` are the numbers of the words of each text."""
        raise NotImplementedError

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return 12.0 * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.known = vocabulary(train)
        if not self.known.words:
            raise ValueError(f"no word stands {MIN_COUNT} times in the {len(train):,} training texts: more are needed")
        texts = numbered([row["text"] for row in train], self.known)
        self.logs = _log_shares(self.known, texts).astype(np.float32)
        self.vectors = np.ascontiguousarray(self.train(texts, self.known), dtype=np.float32)
        if not np.isfinite(self.vectors).all():
            raise ValueError(
                f"{type(self).__name__} made vectors that are no finite numbers; a lower rate or smaller steps may help"
            )
        self.parameter_count = self.vectors[2:].size
        self._prepare()
        self.strength = self._tuned(dev)

    @property
    def vocabulary(self) -> list[str]:
        """The words over which its probabilities sum to one."""
        return [UNKNOWN, *self.known.words]

    def word_vectors(self) -> Mapping[str, np.ndarray]:
        return dict(zip(self.known.words, self.vectors[2:], strict=True))

    def predict(self, rows: Sequence[Row]) -> list[Surprise]:
        found = []
        for row in rows:
            ids, cosines = self.asked(row["text"])
            logits = self.logs[1:] + np.float32(self.strength) * cosines
            at = logits[np.arange(len(ids)), ids - 1] - logsumexp(logits, axis=1)
            found.append([round(float(at.sum(dtype=float)), 4), len(ids)])
        return found

    def fitted_state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in ("logs", "vectors", "strength", "parameter_count")}
        return state | {"words": self.known.words, "counts": self.known.counts}

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.known = Vocabulary(state.pop("words"), state.pop("counts"))
        vars(self).update(state)
        self._prepare()

    def _prepare(self) -> None:
        """Vectors less their mean, scaled to length 1; zero for padding, the unknown word and any
        without a direction."""
        centred = self.vectors - self.vectors[2:].mean(axis=0)
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        self.directions = centred / np.where(lengths > 0, lengths, 1)
        self.directions[:2] = 0

    def asked(self, text: Text) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the words of a text that are asked for (n,), and what speaks for each word of
        the vocabulary, without padding, in their places (n, V - 1): its cosine with what stands
        around. A system whose product says it otherwise overrides this."""
        ids = numbered([text], self.known).values
        places = asked_places(len(ids))
        around = np.zeros((len(places), self.directions.shape[1]), dtype=np.float32)
        for number, place in enumerate(places):
            beside = [*ids[max(0, place - AROUND) : place], *ids[place + 1 : place + 1 + AROUND]]
            around[number] = self.directions[beside].sum(axis=0)
        lengths = np.linalg.norm(around, axis=1, keepdims=True)
        return ids[places], around / np.where(lengths > 0, lengths, 1) @ self.directions[1:].T

    def _tuned(self, dev: Sequence[Row]) -> float:
        """The strength b under which some words of dev are least surprising."""
        asked = []
        for row in dev:
            asked.append(self.asked(row["text"]))
            if sum(len(ids) for ids, _ in asked) >= TUNED_ON:
                break
        ids, cosines = (np.concatenate(part) for part in zip(*asked, strict=True))
        own = cosines[np.arange(len(ids)), ids - 1].sum(dtype=float)

        def surprise(strength: float) -> float:
            return float(logsumexp(self.logs[1:] + np.float32(strength) * cosines, axis=1).sum() - strength * own)

        return float(minimize_scalar(surprise, bounds=(0, STRONGEST), method="bounded").x)


def numbered(texts: Sequence[Text], vocabulary: Vocabulary) -> Ragged:
    """The numbers of the words of each text."""
    view = reader()
    view.vocabulary = vocabulary
    values, lengths = [], []
    for part in in_parts(texts, AT_ONCE):
        ids = view.encode(part)["ids"]
        assert isinstance(ids, Ragged)
        values.append(ids.values)
        lengths.append(ids.lengths)
    return Ragged(np.concatenate(values), np.append(0, np.concatenate(lengths).cumsum()))


def _log_shares(vocabulary: Vocabulary, texts: Ragged) -> np.ndarray:
    """Logarithm of each entry's share of the words of the texts, every one counted once more; that
    of padding stands for nothing."""
    counts = 1.0 + np.bincount(texts.values, minlength=len(vocabulary))
    counts[:UNKNOWN_ID] = 1
    return np.log(counts / counts[UNKNOWN_ID:].sum())

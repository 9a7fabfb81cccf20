"""Systems that learn from plain text how words are divided into pieces, and their score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar

from tokenizers import Regex, Tokenizer
from tokenizers.normalizers import Lowercase, Replace
from tokenizers.normalizers import Sequence as InTurn

from harness.errors import ContractError
from harness.kinds import Estimator
from harness.problems.language_model import Surprise
from harness.task import Row
from harness.views.base import Text, words_of
from harness.views.pieces import Pieces, in_stretches

CHARACTERS = "characters"
"""The unit that the scores of these systems count, and the name of their floor."""
MIN_COUNT = 5
"""Times that training must show a character that is known."""
NEW = "\ufffd"
"""Character as which all others are read: Unicode's replacement character."""
MARK = "\u2581"
"""A character that is never known, so that it can mark where words begin (as in SentencePiece)."""
CODE_POINTS = 0x110000
"""Characters that a new one can be."""
BLANK = " "
"""Character behind a word."""
END = ""
"""The unit behind a text."""
LOWER = Lowercase()


class TokenTrainer(Estimator):
    """A system that learns how words are divided into pieces, for others to read.

    Words are read in lower case. Its score is the surprise of held-out texts for each of their
    characters, under a unigram model of the pieces: the probability of a text is the product of the
    shares that its pieces, and an end behind them, have of those of the training texts, each
    counted once more. Pieces can be joined to their text again, so that the probabilities of all
    texts sum to no more than one, whatever the vocabulary; and all systems count the same
    characters, those of the words and a blank behind each. A character that training shows less
    than :data:`MIN_COUNT` times is read as :data:`NEW`, and which one it is costs as much as to
    choose among :data:`CODE_POINTS`.
    """

    task_types = ("text",)
    unit: ClassVar[str] = CHARACTERS

    def learn(self, words: Mapping[str, int], characters: Sequence[str]) -> Tokenizer:
        """A tokenizer that divides every word of the ``characters`` and joins it again, learnt from
        the counts of the ``words``. Its normaliser, if it has one, sets its marks."""
        raise NotImplementedError

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return 12.0 * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        written = counted_words(train)
        self.known = known_characters(written)
        if not self.known:
            raise ValueError(
                f"no character stands {MIN_COUNT} times in the {len(train):,} training texts: more are needed"
            )
        normal = InTurn([LOWER, Replace(Regex(f"[^{''.join(map(_code_point, sorted(self.known)))}]"), NEW)])
        words: Counter[str] = Counter()
        for word, count in sorted(written.items()):
            words[normal.normalize_str(word)] += count
        tokenizer = self.learn(words, sorted(self.known | {NEW}))
        tokenizer.normalizer = InTurn([normal, *filter(None, [tokenizer.normalizer])])
        self.pieces = Pieces(tokenizer.to_str())
        counts = Counter({END: len(train)})
        for word, count in words.items():
            for piece in self.pieces.split([word]):
                counts[piece] += count
        self.logs = log_shares(counts, [END, *self.pieces.vocabulary])
        self.parameter_count = len(self.logs)

    def predict(self, rows: Sequence[Row]) -> list[Surprise]:
        return [surprise(row["text"], self.pieces.split, self.logs, self.known) for row in rows]

    def tokenizer(self) -> str:
        return self.pieces.text

    def fitted_state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in ("known", "logs", "parameter_count")}
        return state | {"tokenizer": self.pieces.text}

    def restore_fitted(self, state: dict[str, Any]) -> None:
        self.pieces = Pieces(state.pop("tokenizer"))
        vars(self).update(state)


def character_floor(train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
    """Texts by the shares of their characters alone, as a :class:`TokenTrainer` scores them."""
    words = counted_words(train)
    known = known_characters(words)

    def spelt(words: Iterable[str]) -> list[str]:
        return [c if c in known or c == BLANK else NEW for word in words for c in word + BLANK]

    counts = Counter({END: len(train)})
    for word, count in words.items():
        for character in spelt([word]):
            counts[character] += count
    logs = log_shares(counts, {END, BLANK, NEW, *known})
    return [surprise(row["text"], spelt, logs, known) for row in rows]


def lowered(text: Text) -> list[str]:
    """The words of a text in lower case, very long ones cut."""
    return list(map(LOWER.normalize_str, in_stretches(words_of(text))))


def counted_words(rows: Iterable[Row]) -> Counter[str]:
    """The words of plain texts in lower case, and how often they stand there."""
    return Counter(word for row in rows for word in lowered(row["text"]))


def repeated(words: Mapping[str, int]) -> Iterator[str]:
    """Texts of counted words for a trainer that counts words itself."""
    return (" ".join([word] * count) for word, count in words.items())


def known_characters(words: Mapping[str, int]) -> set[str]:
    """The characters that counted words show at least :data:`MIN_COUNT` times."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return {character for character, count in counts.items() if count >= MIN_COUNT} - {NEW, MARK}


def log_shares(counts: Mapping[str, int], units: Iterable[str]) -> dict[str, float]:
    """Natural logarithm of the share of each unit, every one of them counted once more."""
    more = {unit: counts.get(unit, 0) + 1 for unit in units}
    total = math.log(sum(more.values()))
    return {unit: math.log(count) - total for unit, count in more.items()}


def surprise(
    text: Text, divided: Callable[[Iterable[str]], list[str]], logs: Mapping[str, float], known: Set[str]
) -> Surprise:
    """The natural log-probability of a text, from those of the units into which its words are
    ``divided``, and its number of characters."""
    words = lowered(text)
    new = sum(character not in known for word in words for character in word)
    log = math.fsum(logs[unit] for unit in [*divided(words), END]) - new * math.log(CODE_POINTS)
    return [round(log, 4), sum(len(word) + 1 for word in words)]


def require_one_text(predict: Callable[[list[Row]], list[Surprise]], train: Sequence[Row]) -> None:
    """Raise :class:`ContractError` for probabilities of texts of one word, of all that training
    shows, that sum to more than one, and for another number of characters than such a text has."""
    words = sorted(counted_words(train))
    found = predict([{"id": str(number), "text": word} for number, word in enumerate(words)])
    for word, (_, count) in zip(words, found, strict=True):
        if count != len(word) + 1:
            raise ContractError(f"the text {word!r} has {len(word) + 1} {CHARACTERS} with a blank, and not {count}")
    total = math.fsum(math.exp(log) for log, _ in found)
    if total > 1 + 1e-6:
        raise ContractError(
            f"the probabilities of the {len(words):,} texts of one training word sum to {total:.4g}, more than 1"
        )


def _code_point(character: str) -> str:
    """A character in a regular expression, whatever it means there."""
    return f"\\x{{{ord(character):x}}}"

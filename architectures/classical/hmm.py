"""Hidden Markov tagger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row


def viterbi(start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray, end: np.ndarray) -> list[int]:
    """Most probable states of a sequence; among equals the first, the last position deciding first.

    Log scores: ``start`` (L), ``transitions`` (L, L) from row to column, ``emissions`` (T, L),
    ``end`` (L).
    """
    if not len(emissions):
        return []
    scores, origins = start + emissions[0], []
    for emission in emissions[1:]:
        arriving = scores[:, None] + transitions
        origins.append(arriving.argmax(0))
        scores = arriving.max(0) + emission
    states = [int((scores + end).argmax())]
    for origin in reversed(origins):
        states.append(int(origin[states[-1]]))
    return states[::-1]


@register(
    "hmm",
    name="Hidden Markov tagger",
    kind="fit",
    paper="Baum et al. 1970; unknown words after Brants 2000",
    source="X4.5.3 eq.4.77",
    year=1970,
    deviations=(
        "Trained by counting tagged words, not by expectation maximisation on untagged ones.",
        "Of Brants 2000 only the endings are taken: his tagger looks at the two tags before, here at one.",
        (
            "Endings have up to 5 letters, his up to 10; a shorter ending counts as half an observation, his weight"
            " follows from the spread of the tags."
        ),
        "Known words are smoothed with their endings too; his endings judge unknown words only.",
        "The amounts added to counts, 0.1 for moves and 0.5 for endings, are ours.",
    ),
)
class HiddenMarkovTagger(Estimator):
    """argmax over tags of the product of P(tag | tag before) and P(word | tag), start and end of
    the sentence counted as tags.

    Transitions are counts with ``transition_smoothing`` added. Emissions are P(tag | word) /
    P(tag), which is P(word | tag) up to a factor that is the same for all tags. P(tag | word) mixes
    the word's own counts with what its endings say: ``smoothing`` times the distribution of the
    next shorter ending is added to the counts of each, up from the empty ending. So a word that
    training never showed is judged by its longest known ending. Endings are counted over rare
    words, apart for capitalised ones.
    """

    task_types = ("tag",)

    def __init__(
        self,
        seed: int = 0,
        smoothing: float = 0.5,
        transition_smoothing: float = 0.1,
        longest_ending: int = 5,
        rare: int = 10,
    ):
        super().__init__(seed)
        self.smoothing, self.transition_smoothing = smoothing, transition_smoothing
        self.longest_ending, self.rare = longest_ending, rare

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.tags = sorted({tag for row in train for tag in row["tags"]})
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        edge = len(self.tags)
        moves = np.zeros((edge + 1, edge + 1))
        pairs: Counter[tuple[str, int]] = Counter()
        for row in train:
            tags = [numbers[tag] for tag in row["tags"]]
            np.add.at(moves, ([edge, *tags], [*tags, edge]), 1)
            pairs.update(zip(row["text"], tags, strict=True))
        self._count_words(pairs)
        moves += self.transition_smoothing
        moves[edge, edge] = 0  # no sentence is empty
        with np.errstate(divide="ignore"):
            logs = np.log(moves / moves.sum(1, keepdims=True))
        self.start, self.transitions, self.end = logs[edge, :-1], logs[:-1, :-1], logs[:-1, edge]
        self.parameter_count = logs.size - 1 + len(pairs) + sum(int(np.count_nonzero(c)) for c in self.endings.values())

    def _count_words(self, pairs: Counter[tuple[str, int]]) -> None:
        """Tag counts of every word, and of every ending of the rare ones."""
        self.words: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(self.tags)))
        for (word, tag), count in pairs.items():
            self.words[word][tag] = count
        self.prior = sum(self.words.values()) / pairs.total()
        self.endings: dict[tuple[bool, str], np.ndarray] = defaultdict(lambda: np.zeros(len(self.tags)))
        for word, counts in self.words.items():
            if counts.sum() <= self.rare:
                for ending in self._endings_of(word):
                    self.endings[ending] += counts
        self.words, self.endings = dict(self.words), dict(self.endings)

    def _endings_of(self, word: str) -> list[tuple[bool, str]]:
        """Endings of a word from the empty one up, each with whether the word begins with a
        capital."""
        return [(word[:1].isupper(), word[len(word) - n :]) for n in range(min(self.longest_ending, len(word)) + 1)]

    def emission(self, word: str) -> np.ndarray:
        """log P(word | tag) of every tag (L), up to a constant."""
        known = [counts for ending in self._endings_of(word) if (counts := self.endings.get(ending)) is not None]
        if word in self.words:
            known.append(self.words[word])
        distribution = self.prior
        for counts in known:
            distribution = (counts + self.smoothing * distribution) / (counts.sum() + self.smoothing)
        return np.log(distribution) - np.log(self.prior)

    def predict(self, rows: Sequence[Row]) -> list[list[str]]:
        emissions = {word: self.emission(word) for word in {word for row in rows for word in row["text"]}}
        return [self._tags([emissions[word] for word in row["text"]]) for row in rows]

    def _tags(self, emissions: list[np.ndarray]) -> list[str]:
        return [self.tags[state] for state in viterbi(self.start, self.transitions, np.array(emissions), self.end)]

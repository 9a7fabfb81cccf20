"""fastText's word vectors: skip-gram over words that are made of their character n-grams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from architectures.blocks.negative_sampling import WindowTrainer
from harness.ragged import Ragged
from harness.registry import register
from harness.views.words import Vocabulary


def ngrams_of(word: str, shortest: int, longest: int) -> list[str]:
    """The n-grams of a word between boundary marks, as often as they stand in it; of a short word
    the whole is one.

    >>> ngrams_of("her", 3, 6)
    ['<he', '<her', '<her>', 'her', 'her>', 'er>']
    """
    marked = f"<{word}>"
    return [marked[i : i + n] for i in range(len(marked)) for n in range(shortest, longest + 1) if i + n <= len(marked)]


def bucket_of(ngram: str, buckets: int) -> int:
    """The bucket that an n-gram shares: its FNV-1a hash of 32 bits, modulo their number.

    >>> bucket_of("a", 2**32) == 0xE40C292C
    True
    """
    number = 2166136261
    for byte in ngram.encode():
        number = (number ^ byte) * 16777619 % 2**32
    return number % buckets


class AnyWord(Mapping[str, np.ndarray]):
    """Vectors of a vocabulary, and of every other word with an n-gram in a known bucket: the mean
    of these. It lists the vocabulary alone."""

    def __init__(self, system: SubwordVectors):
        self.system = system
        self.places = {word: place for place, word in enumerate(system.known.words, start=2)}

    def __getitem__(self, word: str) -> np.ndarray:
        if word in self.places:
            return self.system.vectors[self.places[word]]
        rows = self.system.rows_of(word)
        if not len(rows):
            raise KeyError(word)
        return self.system.ngrams[rows].mean(axis=0)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@register(
    "subword_vectors",
    name="Subword vectors (fastText)",
    kind="fit",
    paper="Bojanowski et al. 2017",
    source="M-A.1[30] X4.5.4",
    year=2017,
    version=4,
    tiny={"dims": 24, "threshold": 0.01, "rate": 0.1, "epochs": 2, "buckets": 5000},
    deviations=(
        "A word is the mean of its own vector and its n-grams', as in the authors' program; the paper has their sum.",
        "Buckets that no word of the vocabulary reaches are not kept; of an unseen word they count as absent.",
        "The texts come in an order of chance, since those of a corpus may stand by source; in the authors' program the"
        " end of a text is a word.",
        "A frequent word stays with the probability of word2vec's paper, the root of threshold over share; the authors'"
        " program adds that ratio to it.",
        "Vectors begin uniform in +-1/2D, as word2vec's do, not in +-1/D.",
    ),
)
class SubwordVectors(WindowTrainer):
    """Skip-gram in which the vector of a word w is the mean of its own row and those of its
    n-grams, of ``shortest`` to ``longest`` characters of <w>, which share ``buckets`` rows by a
    hash. Negative words are drawn by the roots of their counts."""

    power = 0.5

    def __init__(
        self,
        seed: int = 0,
        dims: int = 300,
        window: int = 5,
        negatives: int = 5,
        threshold: float = 1e-4,
        rate: float = 0.05,
        epochs: int = 5,
        shortest: int = 3,
        longest: int = 6,
        buckets: int = 2_000_000,
        threads: int = 1,
    ):
        super().__init__(seed, dims, window, negatives, threshold, rate, epochs, threads)
        self.shortest, self.longest, self.buckets = shortest, longest, buckets

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        return (12.0 + 0.05 * hyperparameters["dims"]) * size

    def bags_of(self, vocabulary: Vocabulary) -> Ragged:
        """The word's own row, then those of its n-grams; padding and the unknown word have none of
        these. ``reached`` are the buckets of the rows behind the vocabulary's."""
        hashed = [[], [], *map(self._hashed, vocabulary.words)]
        self.reached = np.unique(np.concatenate([np.array(each, dtype=np.int64) for each in hashed]))
        return Ragged.of(
            [place, *(len(vocabulary) + np.searchsorted(self.reached, each))] for place, each in enumerate(hashed)
        )

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        table = super().train(texts, vocabulary)
        self.ngrams = table[len(vocabulary) :]
        return np.add.reduceat(table[self.bags.values], self.bags.offsets[:-1]) / self.bags.lengths[:, None]

    def rows_of(self, word: str) -> np.ndarray:
        """Rows of the n-grams of a word among those that training reached."""
        hashed = np.array(self._hashed(word), dtype=np.int64)
        places = np.searchsorted(self.reached, hashed).clip(max=len(self.reached) - 1)
        return places[self.reached[places] == hashed]

    def _hashed(self, word: str) -> list[int]:
        return [bucket_of(ngram, self.buckets) for ngram in ngrams_of(word, self.shortest, self.longest)]

    def word_vectors(self) -> Mapping[str, np.ndarray]:
        return AnyWord(self)

    def fitted_state(self) -> dict[str, Any]:
        return super().fitted_state() | {"reached": self.reached, "ngrams": self.ngrams}

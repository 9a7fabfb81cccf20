"""The unigram language model of SentencePiece: words divided into their most probable pieces."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence

from tokenizers import Tokenizer
from tokenizers.decoders import Metaspace
from tokenizers.models import Unigram
from tokenizers.normalizers import Prepend

from harness.problems.pieces import MARK, TokenTrainer
from harness.registry import register

LONGEST = 16
"""Characters of a piece."""
SEEDS = 10
"""Substrings with which training begins, for each piece that is wanted."""
ROUNDS = 2
"""Rounds of EM before each pruning."""
LEAST = 0.5
"""Expected count that every piece has at least."""


@register(
    "unigram",
    name="Unigram pieces (SentencePiece)",
    kind="fit",
    paper="Kudo 2018",
    source="M-A.1[230]",
    year=2018,
    tiny={"size": 300},
    deviations=(
        "Texts are always divided in the most probable way; the paper draws another division each time that a text is"
        " trained on (subword regularisation).",
        "The paper names no numbers: pieces of 16 characters at most and two rounds of EM before each pruning are those"
        " of SentencePiece, ten substrings to begin with for each piece that is wanted are ours.",
        "What a piece is worth is its expected count times what the best division of itself costs more, an"
        " approximation to the paper's loss of likelihood, as in SentencePiece.",
        "8,000 pieces for every corpus, in lower case, none of which crosses a blank; the paper's sizes differ by"
        " corpus. A character that training shows less than five times is none of them.",
    ),
)
class UnigramPieces(TokenTrainer):
    """Pieces are drawn one by one, and a word has the division whose product of probabilities is
    the largest (Viterbi). Training begins with the commonest substrings. Again and again EM
    estimates their probabilities, and the ``kept`` share of them stays whose loss would cost the
    most likelihood, until there are ``size``. Characters always stay."""

    def __init__(self, seed: int = 0, size: int = 8000, kept: float = 0.8):
        super().__init__(seed)
        self.size, self.kept = size, kept

    def learn(self, words: Mapping[str, int], characters: Sequence[str]) -> Tokenizer:
        marked = {MARK + word: count for word, count in words.items()}
        always = {MARK, *characters}
        logs = probabilities(seeds(marked, SEEDS * self.size), always)
        size = max(self.size, len(always))
        while True:
            for _ in range(ROUNDS):
                counts = expected_counts(marked, logs)
                logs = probabilities(counts, always)
            if len(logs) <= size:
                break
            logs = pruned(logs, counts, always, max(size, int(self.kept * len(logs))))
        tokenizer = Tokenizer(Unigram(sorted(logs.items())))
        tokenizer.normalizer = Prepend(MARK)
        tokenizer.decoder = Metaspace(MARK)
        return tokenizer


def seeds(words: Mapping[str, int], most: int) -> dict[str, float]:
    """Counts of the substrings that fill the most of the text, of those that stand there twice."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for end in ends(word):
            for start in range(max(0, end - LONGEST), end):
                counts[word[start:end]] += count
    often = sorted((piece for piece in counts if counts[piece] > 1), key=lambda p: (-counts[p] * len(p), p))
    return {piece: float(counts[piece]) for piece in often[:most]}


def ends(word: str) -> range:
    """Places behind each character of a word."""
    return range(1, len(word) + 1)


def endings(word: str, end: int, known: Container[str]) -> list[tuple[int, str]]:
    """The known pieces that end at a place of a word, with their beginnings."""
    starts = range(max(0, end - LONGEST), end)
    return [(start, piece) for start in starts if (piece := word[start:end]) in known]


def probabilities(counts: Mapping[str, float], always: set[str]) -> dict[str, float]:
    """Natural logarithms of the shares of the pieces, and of the characters that ``always`` are
    some."""
    more = {piece: max(counts.get(piece, 0.0), LEAST) for piece in sorted({*counts, *always})}
    total = math.log(math.fsum(more.values()))
    return {piece: math.log(count) - total for piece, count in more.items()}


def expected_counts(words: Mapping[str, int], logs: Mapping[str, float]) -> dict[str, float]:
    """Expected number of each piece in the words, over all of their divisions by their
    probability."""
    counts = dict.fromkeys(logs, 0.0)
    for word, count in words.items():
        ending = [endings(word, end, logs) for end in ends(word)]
        reached = [0.0]  # logarithm of the probability of each beginning, over all of its divisions
        for found in ending:
            reached.append(_log_sum([reached[start] + logs[piece] for start, piece in found]))
        flow = [0.0] * len(word) + [float(count)]  # expected number of divisions with a cut at each place
        for end in reversed(ends(word)):
            for start, piece in ending[end - 1]:
                share = flow[end] * math.exp(reached[start] + logs[piece] - reached[end])
                counts[piece] += share
                flow[start] += share
    return counts


def pruned(logs: Mapping[str, float], counts: Mapping[str, float], always: set[str], most: int) -> dict[str, float]:
    """So many of the pieces: the characters, and those whose loss would cost the most."""

    def worth(piece: str) -> float:
        return counts[piece] * (logs[piece] - without(piece, logs))

    others = sorted((piece for piece in logs if piece not in always), key=lambda piece: (-worth(piece), piece))
    kept = {*always, *others[: most - len(always)]}
    return {piece: log for piece, log in logs.items() if piece in kept}


def without(piece: str, logs: Mapping[str, float]) -> float:
    """Log-probability of the best division of a piece into two or more others."""
    best = [0.0]
    for end in ends(piece):
        best.append(max(best[start] + logs[part] for start, part in endings(piece, end, logs) if part != piece))
    return best[-1]


def _log_sum(logs: Sequence[float]) -> float:
    most = max(logs)
    return most + math.log(math.fsum(math.exp(log - most) for log in logs))

"""Byte-pair encoding: the commonest pairs of neighbouring pieces become pieces."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer
from tokenizers.decoders import BPEDecoder
from tokenizers.models import BPE

from harness.problems.pieces import TokenTrainer
from harness.registry import register

LAST = "</w>"
"""Mark behind the last piece of a word."""
Pair = tuple[int, int]


@register(
    "bpe",
    name="Byte-pair encoding",
    kind="fit",
    paper="Sennrich et al. 2016",
    source="Z16.1.4 M-A.1[228]",
    year=2016,
    tiny={"size": 300},
    deviations=(
        "The size is that of the vocabulary, 8,000; the paper counts merges, 59,500 for each of two languages.",
        "Words are read in lower case; the paper keeps or restores their case.",
        "A character that training shows less than five times is none of the pieces.",
    ),
)
class BytePairEncoding(TokenTrainer):
    """Words begin as their characters, the last one marked. The pair of neighbouring pieces that is
    the most frequent in training is merged to a new piece, again and again, until there are
    ``size`` pieces or every pair stands there but once; words are divided by the same merges, in
    the same order. No merge crosses the end of a word."""

    def __init__(self, seed: int = 0, size: int = 8000):
        super().__init__(seed)
        self.size = size

    def learn(self, words: Mapping[str, int], characters: Sequence[str]) -> Tokenizer:
        pieces = sorted(character + end for character in characters for end in ("", LAST))
        merges = merged_pairs([*map(spelt, words)], [*words.values()], pieces, self.size)
        model = BPE({piece: number for number, piece in enumerate(pieces)}, merges, end_of_word_suffix=LAST)
        tokenizer = Tokenizer(model)
        tokenizer.decoder = BPEDecoder(LAST)
        return tokenizer


def spelt(word: str) -> list[str]:
    """The pieces as which a word begins."""
    return [*word[:-1], word[-1] + LAST]


def merged_pairs(
    words: Sequence[Sequence[str]], counts: Sequence[int], pieces: list[str], size: int
) -> list[tuple[str, str]]:
    """The pairs that are merged, in their order, and each one's merger at the end of ``pieces``,
    until these are ``size``.

    ``pieces`` has those as which the words begin. Of equally frequent pairs the one whose pieces
    have the smaller numbers is merged. Only the words that have a pair are looked at.
    """
    numbers = {piece: number for number, piece in enumerate(pieces)}
    spelling = [[numbers[piece] for piece in word] for word in words]
    frequency: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for place, word in enumerate(spelling):
        for pair in itertools.pairwise(word):
            frequency[pair] += counts[place]
            places[pair].add(place)
    waiting = [(-count, pair) for pair, count in frequency.items()]
    heapq.heapify(waiting)
    merges = []
    while waiting and len(pieces) < size:
        count, pair = heapq.heappop(waiting)
        if -count != frequency[pair]:
            continue  # it has become rarer, and waits with its new count too
        if count > -2:
            break
        left, right = (pieces[number] for number in pair)
        merges.append((left, right))
        merger = numbers.setdefault(left + right, len(pieces))
        if merger == len(pieces):
            pieces.append(left + right)
        changed = set()
        for place in places.pop(pair):
            old = spelling[place]
            new = spelling[place] = joined(old, pair, merger)
            for word, sign in ((old, -1), (new, 1)):
                for beside in itertools.pairwise(word):
                    frequency[beside] += sign * counts[place]
                    changed.add(beside)
                    if sign > 0:
                        places[beside].add(place)
        for beside in changed:
            if frequency[beside] > 0:
                heapq.heappush(waiting, (-frequency[beside], beside))
    return merges


def joined(word: Sequence[int], pair: Pair, merger: int) -> list[int]:
    """A word whose occurrences of a pair, from the left, are its merger."""
    found: list[int] = []
    place = 0
    while place < len(word):
        both = tuple(word[place : place + 2]) == pair
        found.append(merger if both else word[place])
        place += 2 if both else 1
    return found

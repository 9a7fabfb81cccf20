"""WordPiece: its pieces by counting all pairs each time, and words divided by the longest piece."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from architectures.vectors.wordpiece import INSIDE, WordPieces
from tests.architectures.test_bpe import drawn


def learnt(words: dict[str, int], size: int) -> WordPieces:
    system = WordPieces(size=size)
    system.fit([{"id": word, "text": " ".join([word] * count)} for word, count in words.items()], [])
    return system


@pytest.mark.parametrize("seed", range(4))
def test_the_commonest_pair_is_merged_inside_words_and_at_their_beginning(seed: int):
    """Against a loop that counts every pair anew before each merge; of equal ones that with the
    older pieces is merged."""
    words = drawn(seed)
    characters = [*"abc", "\ufffd"]
    pieces = [*(INSIDE + character for character in characters), *characters]
    spelling = {word: [word[0], *(INSIDE + character for character in word[1:])] for word in words}
    while len(pieces) < 70:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in spelling.items():
            for pair in itertools.pairwise(parts):
                pairs[pair] += words[word]
        number = pieces.index
        left, right = min(pairs, key=lambda pair: (-pairs[pair], number(pair[0]), number(pair[1])))
        merger = left + right.removeprefix(INSIDE)
        if merger not in pieces:
            pieces.append(merger)
        for parts in spelling.values():
            place = 0
            while place < len(parts) - 1:
                if (parts[place], parts[place + 1]) == (left, right):
                    parts[place : place + 2] = [merger]
                place += 1
    assert sorted(learnt(words, 70).pieces.vocabulary) == sorted(pieces)


def test_a_word_is_divided_by_the_longest_piece_first():
    """Not by the merges in their order, which is what tells it from byte-pair encoding."""
    system = learnt(drawn(3), 80)
    known = set(system.pieces.vocabulary)
    for word in ["abcabcabc", "a", "ccbbaaabc", "bacbacaabbcc"]:
        expected, rest, mark = [], word, ""
        while rest:
            longest = max((rest[:end] for end in range(1, len(rest) + 1) if mark + rest[:end] in known), key=len)
            expected.append(mark + longest)
            rest, mark = rest[len(longest) :], INSIDE
        assert system.pieces.split([word]) == expected

"""Unigram pieces: the most probable division among all of them, and what training keeps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest

from architectures.vectors.unigram import UnigramPieces, expected_counts, probabilities, pruned, seeds, without
from harness.problems.pieces import MARK
from tests.architectures.test_bpe import drawn

UNKNOWN = "\ufffd"
"""The piece of characters that training has not seen."""


def learnt(words: dict[str, int], size: int, **settings: float) -> UnigramPieces:
    system = UnigramPieces(size=size, **settings)
    system.fit([{"id": word, "text": " ".join([word] * count)} for word, count in words.items()], [])
    return system


def test_training_begins_with_as_many_substrings_as_are_asked_for():
    """Those that fill the most of the text: "aa" is 8 of its characters, "a" 7, "aab" 6."""
    assert seeds({"aab": 2, "aaa": 1}, 3) == {"aa": 4.0, "a": 7.0, "aab": 2.0}


def test_a_long_substring_begins_before_one_that_stands_there_oftener():
    """Six characters of the text stand in "ab", six in "xyz", and three in "a"."""
    assert seeds({"ab": 3, "xyz": 2}, 2) == {"ab": 3.0, "xyz": 2.0}


def test_training_begins_with_substrings_that_stand_there_twice():
    assert seeds({"ab": 1, "cc": 1}, 9) == {"c": 2.0}


def log_probabilities(system: UnigramPieces) -> dict[str, float]:
    return dict(json.loads(system.tokenizer())["model"]["vocab"])


def divisions(word: str) -> Iterator[list[str]]:
    """All divisions of a word."""
    if not word:
        yield []
    for end in range(1, len(word) + 1):
        yield from ([word[:end], *rest] for rest in divisions(word[end:]))


def test_a_word_has_its_most_probable_division():
    system = learnt(drawn(5), 40)
    logs = log_probabilities(system)
    for word in ["abcabcab", "ba", "ccbbaaabc"]:
        known = [pieces for pieces in divisions(MARK + word) if all(piece in logs for piece in pieces)]
        best = max(sum(logs[piece] for piece in pieces) for pieces in known)
        assert len(known) > 1 and sum(logs[piece] for piece in system.pieces.split([word])) == pytest.approx(best)


def counts_over_divisions(words: dict[str, int], shares: dict[str, float]) -> dict[str, float]:
    """Expected number of each piece, by going through all divisions."""
    counts = dict.fromkeys(shares, 0.0)
    for word, number in words.items():
        known = [pieces for pieces in divisions(word) if all(piece in shares for piece in pieces)]
        weights = [math.prod(shares[piece] for piece in pieces) for pieces in known]
        for pieces, weight in zip(known, weights, strict=True):
            for piece in pieces:
                counts[piece] += number * weight / sum(weights)
    return counts


def test_the_expected_counts_of_pieces_are_those_over_all_divisions():
    words = {"abab": 3, "aab": 2}
    shares = {"a": 0.3, "b": 0.2, "ab": 0.3, "aa": 0.1, "ba": 0.1}
    logs = {piece: math.log(share) for piece, share in shares.items()}
    assert expected_counts(words, logs) == pytest.approx(counts_over_divisions(words, shares))


def test_the_pieces_of_a_vocabulary_with_room_for_all_have_had_two_rounds_of_em():
    words = {MARK + "aab": 6, MARK + "ab": 7}
    substrings = {word[i:j] for word in words for j in range(1, len(word) + 1) for i in range(j)}
    counts = {p: float(sum(n * word.count(p) for word, n in words.items())) for p in substrings} | {UNKNOWN: 0.0}

    def shares() -> dict[str, float]:
        least_half = {piece: max(count, 0.5) for piece, count in counts.items()}
        return {piece: count / sum(least_half.values()) for piece, count in least_half.items()}

    for _ in range(2):
        counts = counts_over_divisions(words, shares())
    logs = log_probabilities(learnt({"aab": 6, "ab": 7}, 100))
    assert {piece: math.exp(log) for piece, log in logs.items()} == pytest.approx(shares(), rel=1e-6)


def test_a_step_of_em_raises_the_likelihood():
    words = drawn(4)
    logs = probabilities({piece: 1.0 for word in words for piece in (*word, word[:2], word[-3:])}, set())

    def probability(word: str, logs: dict[str, float]) -> float:
        return sum(math.exp(sum(map(logs.__getitem__, d))) for d in divisions(word) if logs.keys() >= {*d})

    def likelihood(logs: dict[str, float]) -> float:
        return sum(count * math.log(probability(word, logs)) for word, count in words.items())

    assert likelihood(probabilities(expected_counts(words, logs), set())) > likelihood(logs) + 1


def test_the_piece_goes_whose_parts_are_nearly_as_probable():
    """ab is worth ten times what its parts cost more, 1, and bb fifteen times a half: ab stays, the
    rarer one. Characters stay in any case."""
    logs = {"a": -1.0, "b": -2.0, "ab": -2.0, "bb": -3.5}
    counts = {"a": 1.0, "b": 0.0, "ab": 10.0, "bb": 15.0}
    assert without("ab", logs) == -3.0 and without("bb", logs) == -4.0
    assert pruned(logs, counts, {"a", "b"}, 3) == {"a": -1.0, "b": -2.0, "ab": -2.0}
    assert pruned(logs, counts | {"bb": 21.0}, {"a", "b"}, 3) == {"a": -1.0, "b": -2.0, "bb": -3.5}
    assert pruned(logs, counts, {"a", "b"}, 2) == {"a": -1.0, "b": -2.0}


def test_endings_and_beginnings_that_many_words_share_are_pieces():
    words = {stem + ending: 1 for stem in drawn(8) for ending in ("", "ness", "ly")} | {"zq": 5}
    logs = log_probabilities(learnt(words, 40))
    assert {"ness", "ly"} <= {*logs}, "endings"
    assert {*"zq", MARK, UNKNOWN} <= {*logs}, "characters, however rare"
    assert sum(map(math.exp, logs.values())) == pytest.approx(1)


def test_the_vocabulary_is_pruned_to_its_size_by_the_share_that_is_kept():
    """In one step or in many, with EM between them."""
    words = drawn(6)
    assert [len(log_probabilities(learnt(words, size))) for size in (10, 30)] == [10, 30]
    assert log_probabilities(learnt(words, 20, kept=0.1)) != log_probabilities(learnt(words, 20, kept=0.95))

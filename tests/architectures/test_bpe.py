"""Byte-pair encoding: merges by hand and against the library tokenizers, and words divided by brute
force."""

from __future__ import annotations

from random import Random

import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import BpeTrainer

from architectures.vectors.bpe import LAST, BytePairEncoding, merged_pairs, spelt

SLIDES = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def merges(words: dict[str, int], size: int = 1000) -> list[tuple[str, str]]:
    pieces = sorted({piece for word in words for piece in spelt(word)})
    return merged_pairs([*map(spelt, words)], [*words.values()], pieces, size)


def drawn(seed: int) -> dict[str, int]:
    """Words of few letters, so that pairs overlap, and equal ones are many."""
    random = Random(seed)
    return {"".join(random.choices("abc", k=random.randint(1, 9))): random.randint(1, 9) for _ in range(60)}


def test_the_merges_of_the_slides():
    """es and st stand there nine times each, and e comes before s; then lo, seven times, and of
    three pairs with six times ew."""
    assert merges(SLIDES)[:4] == [("e", "s"), ("es", "t" + LAST), ("l", "o"), ("e", "w")]
    assert merges({"bed": 2, "better": 2, "east": 3, "west": 4})[:2] == [("s", "t" + LAST), ("b", "e")]


@pytest.mark.parametrize("seed", range(8))
def test_the_merges_are_those_of_the_library(seed: int):
    words = drawn(seed)
    pieces = sorted({piece for word in words for piece in spelt(word)})
    library = Tokenizer(BPE())
    library.pre_tokenizer = WhitespaceSplit()
    trainer = BpeTrainer(
        vocab_size=120, min_frequency=2, end_of_word_suffix=LAST, show_progress=False, special_tokens=pieces
    )
    library.train_from_iterator([" ".join([word] * count) for word, count in words.items()], trainer)
    merged_pairs([*map(spelt, words)], [*words.values()], pieces, 120)
    numbers = library.get_vocab()
    assert pieces == sorted(numbers, key=numbers.__getitem__)


def test_a_word_is_divided_by_the_merges_in_their_order():
    """Words that training never showed, by going through all merges for each of them."""
    rows = [{"id": str(i), "text": " ".join([word] * count)} for i, (word, count) in enumerate(drawn(0).items())]
    system = BytePairEncoding(size=60)
    system.fit(rows, rows)
    assert len(system.pieces.vocabulary) == 60
    learnt = merges(drawn(0), size=60 - 2)  # the character for new ones is two more
    for word in ["abcabcabc", "a", "cc", "bacbacaabbcc"]:
        pieces = spelt(word)
        for pair in learnt:
            place = 0
            while place < len(pieces) - 1:
                if (pieces[place], pieces[place + 1]) == pair:
                    pieces[place : place + 2] = ["".join(pair)]
                place += 1
        assert system.pieces.split([word]) == pieces


def test_pairs_that_stand_there_once_are_not_merged():
    """They would be the words of training themselves."""
    assert merges({"abc": 1, "ab": 1}) == []
    assert merges({"abc": 1, "abd": 1}) == [("a", "b")]

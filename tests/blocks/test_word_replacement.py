"""Replaced words: which, how many, by which, and the same for the same text and key."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import torch

from architectures.blocks.word_replacement import PieceReplacement, WordReplacement
from harness.layers.noise import Noise
from harness.views.subwords import Subwords
from harness.views.words import PAD, UNKNOWN, Words, spelling

TEXTS = ["the film film is fine", "the film is bad", "a is rare the", "the"]


def replacement(rate: float = 0.7, texts: list[str] | None = None) -> tuple[WordReplacement, Words]:
    texts = texts or TEXTS
    view = Words(min_count=1)
    view.fit(texts)
    return WordReplacement(rate, view.vocabulary, view.encode(texts)["ids"]), view


def batch_of(view: Words, *texts: str):
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def rareness(word: str, texts: list[str]) -> float:
    return math.log(len(texts) / sum(word in text.split() for text in texts))


def test_a_word_is_replaced_the_more_often_the_less_it_says_of_the_text():
    """By the paper's formula over each text: replaced at an even rate, the words that decide would
    go with the others. Padding is never replaced, and moves no rate."""
    given, view = replacement(0.4)
    words = batch_of(view, *TEXTS, "the film is fine bad a rare film is the fine bad")
    found = given.rates(words.ids, words.mask)
    for row, text in enumerate(TEXTS[:3]):
        read = text.split()
        scores = [read.count(word) / len(read) * rareness(word, TEXTS) for word in read]
        below = [max(scores) - score for score in scores]
        expected = torch.tensor([min(1.0, 0.4 * len(read) * each / sum(below)) for each in below])
        torch.testing.assert_close(found[row, : len(read)], expected)
        assert not found[row, len(read) :].any()
    fine, the = TEXTS[0].split().index("fine"), 0
    assert found[0, fine] == 0 < found[0, the]


def test_rates_have_the_mean_that_is_asked_and_end_at_certainty():
    given, view = replacement(0.3)
    words = batch_of(view, TEXTS[1])
    torch.testing.assert_close(given.rates(words.ids, words.mask).mean(), torch.tensor(0.3))
    given.rate = 5.0
    assert given.rates(words.ids, words.mask).max() == 1


def test_words_that_say_all_the_same_are_replaced_alike():
    """The formula divides nothing by nothing there."""
    given, view = replacement(0.25, ["a b", "c d"])
    words = batch_of(view, "a b", "c")
    assert given.rates(words.ids, words.mask).tolist() == [[0.25, 0.25], [0.25, 0.0]]
    assert {*replaced(given, view, "a b c d").keys()} == {2, 3, 4, 5}


def replaced(given: WordReplacement, view: Words, text: str) -> Counter:
    """How often each word took the place of another in many draws."""
    words = batch_of(view, text)
    found: Counter = Counter()
    for key in range(300):
        new = given(words, Noise(words.ids, words.mask, (0, key))).ids
        found.update(new[new != words.ids].tolist())
    return found


def test_what_takes_the_place_is_drawn_by_its_scores_over_all_texts():
    """Words with a low sum are likely, the one with the highest never comes, nor does the unknown
    word or padding; words that only texts of others have do not come at all."""
    given, view = replacement(1.0)
    ids = {word: number for number, word in enumerate(view.vocabulary.words, start=2)}
    sums = {
        word: sum(text.split().count(word) / len(text.split()) for text in TEXTS) * rareness(word, TEXTS)
        for word in ids
    }
    shares = {word: max(sums.values()) - each for word, each in sums.items()}
    bounds = torch.zeros(len(view.vocabulary), dtype=torch.float64)
    for word, share in shares.items():
        bounds[ids[word]] = share / sum(shares.values())
    torch.testing.assert_close(given.upto, bounds.cumsum(0))
    found = replaced(given, view, TEXTS[0])
    most = max(sums, key=sums.__getitem__)
    assert ids[most] not in found and PAD not in found and UNKNOWN not in found
    assert found[ids["the"]] + found[ids["is"]] > found[ids["bad"]]
    given, view = replacement(1.0)
    few = WordReplacement(1.0, view.vocabulary, view.encode(TEXTS[1:3])["ids"])
    assert ids["fine"] not in replaced(few, view, "the film is bad")
    unknown = WordReplacement(1.0, view.vocabulary, view.encode(["the zzz", "bad zzz film"])["ids"])
    assert UNKNOWN not in replaced(unknown, view, "the film is bad")


def test_ids_and_spellings_are_those_of_the_same_words():
    given, view = replacement(1.0)
    words = batch_of(view, *TEXTS)
    new = given(words, Noise(words.ids, words.mask, (0, 1)))
    assert (new.ids != words.ids).any() and (new.ids[~words.mask] == PAD).all()
    for id, found in zip(new.ids[words.mask].tolist(), new.spellings[words.mask].tolist(), strict=True):
        assert found == spelling(view.vocabulary.words[id - 2])


def test_the_same_text_and_key_give_the_same_words_in_any_batch():
    given, view = replacement()
    alone, both = batch_of(view, TEXTS[1]), batch_of(view, TEXTS[0], TEXTS[1])
    first = given(alone, Noise(alone.ids, alone.mask, (3, 1))).ids[0]
    second = given(both, Noise(both.ids, both.mask, (3, 1))).ids[1, : len(first)]
    assert first.tolist() == second.tolist()
    others = [given(alone, Noise(alone.ids, alone.mask, (3, key))).ids[0].tolist() for key in range(2, 9)]
    assert any(other != first.tolist() for other in others)


class Least:
    """Draws the least number there is."""

    def uniform(self, length: int) -> torch.Tensor:
        return torch.zeros(2, length)


def test_the_least_number_that_can_be_drawn_is_a_word_too():
    """Padding has a share of nothing, which begins and ends at 0."""
    given, view = replacement(1.0)
    words = batch_of(view, TEXTS[0], TEXTS[1])
    drawn = given(words, Least()).ids[given.rates(words.ids, words.mask) > 0]
    assert (drawn > UNKNOWN).all() and len(drawn.unique()) == 1


# --- pieces ---

PIECES = ["the film film is fine", "the film is bad", "films are rare the", "the finest films"]


def of_pieces(rate: float = 1.0) -> tuple[PieceReplacement, Subwords]:
    view = Subwords(size=45, max_length=20)
    view.fit(PIECES)
    return PieceReplacement(rate, view, view.encode(PIECES)["ids"]), view


def test_words_of_one_piece_are_replaced_by_beginnings_of_words():
    """Marks are no words, and half a word in the place of another is none."""
    given, view = of_pieces()
    pieces = view.collate(view.encode(PIECES), np.arange(4))
    names = [[view.tokenizer.id_to_token(id) for id in row] for row in pieces.ids.tolist()]
    found = set()
    drawn: Counter = Counter()
    for key in range(200):
        new = given(pieces, Noise(pieces.ids, pieces.mask, (0, key)))
        assert torch.equal(new.mask, pieces.mask) and torch.equal(new.segments, pieces.segments)
        found |= {tuple(place) for place in (new.ids != pieces.ids).nonzero().tolist()}
        drawn.update(new.ids[new.ids != pieces.ids].tolist())
    whole = {
        (row, place)
        for row, line in enumerate(names)
        for place, name in enumerate(line)
        if not name.startswith(("[", "##")) and not line[min(place + 1, len(line) - 1)].startswith("##")
    }
    rates = given.rates(pieces.ids, torch.tensor([[(r, t) in whole for t in range(len(names[0]))] for r in range(4)]))
    assert found == {place for place in whole if rates[place] > 0} and len(found) > 6
    divided = {(row, t) for row, line in enumerate(names) for t, name in enumerate(line) if name.startswith("##")}
    assert len(divided) > 2
    names_drawn = {view.tokenizer.id_to_token(id) for id in drawn}
    assert not any(name.startswith(("[", "##")) for name in names_drawn) and len(names_drawn) > 3


def test_pieces_have_the_rates_and_shares_of_words():
    """One formula for both; only the whole words of a text count."""
    given, view = of_pieces(0.4)
    pieces = view.collate(view.encode(PIECES[:1]), np.arange(1))
    words = pieces.ids[0, 1:-1]
    alone = given.rates(words[None], torch.ones(1, len(words), dtype=torch.bool))
    drawn = torch.stack(
        [given.drawn(pieces.ids, pieces.mask, Noise(pieces.ids, pieces.mask, (1, key)))[0] for key in range(3)]
    )
    assert drawn.dtype == torch.bool
    new = [given(pieces, Noise(pieces.ids, pieces.mask, (1, key))).ids[0] for key in range(2000)]
    replaced = torch.stack(new)[:, 1:-1] != words
    again = 1 - (given.upto.diff(prepend=torch.zeros(1, dtype=torch.float64)))[words]  # it may be drawn itself
    torch.testing.assert_close(replaced.double().mean(0), alone[0] * again, atol=0.05, rtol=0)
    for key, row in enumerate(new[:2]):
        assert torch.equal(row, given(pieces, Noise(pieces.ids, pieces.mask, (1, key))).ids[0])

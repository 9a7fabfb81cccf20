"""The pinyin corpus: words are pairs of syllables that are written apart."""

from __future__ import annotations

import itertools

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tasks.mini.pinyin import FILLERS, HELD_OUT_FILLERS, LABELS, SYLLABLES, rows, words


def accuracy(neighbours: int) -> float:
    """That of a regression on syllables, or on so many neighbouring ones."""
    train, test = list(rows("train")), list(rows("test"))
    model = make_pipeline(CountVectorizer(ngram_range=(1, neighbours)), LogisticRegression(max_iter=1000))
    model.fit([row["text"] for row in train], [row["label"] for row in train])
    return model.score([row["text"] for row in test], [row["label"] for row in test])


def test_the_sections_share_out_all_pairs_of_two_syllables() -> None:
    pairs = [word for own in words().values() for word in own]
    assert sorted(pairs) == sorted(" ".join(pair) for pair in itertools.permutations(SYLLABLES, 2))
    assert tuple(words()) == LABELS
    assert not {*SYLLABLES} & {*FILLERS, *HELD_OUT_FILLERS}


def test_every_syllable_begins_and_ends_as_many_words_of_each_section() -> None:
    for own in words().values():
        for side in zip(*map(str.split, own), strict=True):
            assert {side.count(syllable) for syllable in SYLLABLES} == {2}


def test_a_bag_of_syllables_is_near_chance_and_neighbours_tell() -> None:
    """Chance is 0.2."""
    assert accuracy(1) < 0.4
    assert accuracy(2) > 0.95

"""Subword vectors: n-grams and their hash by hand, words that nobody saw, and what is kept."""

from __future__ import annotations

import numpy as np
import pytest

from architectures.blocks.negative_sampling import WindowTrainer
from architectures.vectors.subword_vectors import SubwordVectors, bucket_of, ngrams_of
from harness.ragged import Ragged
from harness.saved_models.parents import _aligned
from harness.views.words import Vocabulary
from tests.support import planted_topics


def test_the_n_grams_of_a_word_by_hand():
    """The example of the paper, and words that are as short as an n-gram as a whole."""
    assert ngrams_of("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]
    assert ngrams_of("a", 3, 6) == ["<a>"]
    assert ngrams_of("aaaa", 3, 3) == ["<aa", "aaa", "aaa", "aa>"]
    assert {len(ngram) for ngram in ngrams_of("whereabouts", 3, 6)} == {3, 4, 5, 6}


def test_the_hash_is_fnv_1a():
    """Values of the hash's authors; a bucket is its remainder."""
    known = {"": 0x811C9DC5, "a": 0xE40C292C, "foobar": 0xBF9CF968}
    assert {text: bucket_of(text, 2**32) for text in known} == known
    assert bucket_of("foobar", 1000) == 0xBF9CF968 % 1000


@pytest.fixture(scope="module")
def fitted() -> SubwordVectors:
    system = SubwordVectors(dims=12, threshold=1.0, rate=0.1, epochs=2, buckets=50_000)
    system.fit(planted_topics.rows(200), planted_topics.rows(30, seed=1))
    return system


def test_a_word_is_its_own_row_and_those_of_its_n_grams(fitted):
    """Once each; padding and the unknown word have their own alone."""
    place = fitted.known.words.index("fish0") + 2
    rows = fitted.bags[place].tolist()
    assert rows[0] == place and len(rows) == 1 + len(ngrams_of("fish0", 3, 6)) == len(set(rows))
    buckets = [int(fitted.reached[row - len(fitted.known)]) for row in rows[1:]]
    assert buckets == [bucket_of(ngram, 50_000) for ngram in ngrams_of("fish0", 3, 6)]
    assert fitted.bags[0].tolist() == [0] and fitted.bags[1].tolist() == [1]


def test_the_vector_of_a_word_is_the_mean_of_its_rows(monkeypatch):
    """As the authors' program has it; a sum would be longer for longer words."""
    tables: list[np.ndarray] = []
    train = WindowTrainer.train
    monkeypatch.setattr(WindowTrainer, "train", lambda *given: (tables.append(train(*given)), tables[-1])[1])
    system, words = SubwordVectors(dims=2, buckets=50_000), Vocabulary(["fishing", "banana"], [9, 9])
    vectors, [table] = system.train(Ragged.of([[2, 3]]), words), tables
    assert all(vectors[place] == pytest.approx(table[system.bags[place]].mean(axis=0)) for place in (2, 3))
    assert len(system.bags[2]) > 10 and len(set(system.bags[3])) < len(system.bags[3]), "'ana' counts twice"
    assert np.array_equal(system.ngrams, table[4:]) and len(system.ngrams) == len(system.reached)


def test_a_word_that_nobody_saw_is_the_mean_of_its_n_grams(fitted):
    """What the paper is for: another form of a known word has a vector, and it is near."""
    vectors = fitted.word_vectors()
    known = [bucket_of(n, 50_000) for n in ngrams_of("fishy", 3, 6) if bucket_of(n, 50_000) in fitted.reached]
    rows = [fitted.reached.tolist().index(bucket) for bucket in known]
    assert "fishy" in vectors and "fishy" not in list(vectors) and len(rows) > 3
    np.testing.assert_allclose(vectors["fishy"], fitted.ngrams[rows].mean(axis=0), atol=1e-6)
    assert "qqq" not in vectors
    table, count = _aligned(vectors, Vocabulary(["fish0", "fishy", "qqq"], [1, 1, 1]))
    assert count == 2 and np.array_equal(table[3].numpy(), vectors["fishy"])


def test_words_of_a_planted_topic_are_neighbours_whatever_their_letters(fitted):
    renamed = planted_topics.rows(600)
    letters = {"fish": "ab", "law": "cdefg", "rail": "hijk", "film": "lmn"}
    swapped = {
        w: f"{chr(97 + n)}{letters[t]}{chr(122 - n)}"
        for t, ws in planted_topics.TOPICS.items()
        for n, w in enumerate(ws)
    }
    back = {new: old for old, new in swapped.items()}
    for row in renamed:
        row["text"] = " ".join(swapped.get(word, word) for word in row["text"].split())
    system = SubwordVectors(dims=12, threshold=1.0, rate=0.1, epochs=2, buckets=50_000)
    system.fit(renamed, renamed[:30])
    words = [back.get(word, word) for word in system.known.words]
    assert planted_topics.share_of_neighbours(words, system.vectors[2:]) > 0.9


def test_a_kept_system_knows_unseen_words_too(fitted):
    again = SubwordVectors(dims=12, buckets=50_000)
    again.restore_fitted(dict(fitted.fitted_state()))
    assert np.array_equal(again.word_vectors()["fishy"], fitted.word_vectors()["fishy"])

"""Sources of labels: what each of them says, of whom it has learnt, and when it says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.naive_bayes import MultinomialNB

from architectures.blocks import label_sources
from architectures.blocks.few_labels import telling_words
from architectures.blocks.label_sources import ABSTAINS, votes, word_counts
from harness.ragged import Ragged
from harness.views.words import UNKNOWN

WORDS = 30


def texts(count: int, seed: int) -> Ragged:
    rng = np.random.default_rng(seed)
    return Ragged.of([[UNKNOWN, *rng.integers(2, WORDS, rng.integers(4, 9))] for _ in range(count)])


@pytest.fixture
def taught() -> tuple[Ragged, np.ndarray]:
    return texts(12, 0), np.array([0, 1, 2] * 4)


def test_counts_are_those_of_known_words(taught):
    """The ids themselves stay as they are: others read them too."""
    before = [ids.tolist() for ids in taught[0]]
    found = word_counts(taught[0], WORDS).toarray()
    for row, ids in enumerate(taught[0]):
        assert found[row].tolist() == [0, 0, *(list(ids).count(word) for word in range(2, WORDS))]
    assert [ids.tolist() for ids in taught[0]] == before


def test_naive_bayes_is_another_programs(taught):
    counts, asked = word_counts(taught[0], WORDS), word_counts(texts(9, 1), WORDS)
    found = label_sources.naive_bayes(counts, taught[1], 3, asked)
    known = MultinomialNB().fit(counts.toarray(), taught[1])
    np.testing.assert_allclose(found, known.predict_joint_log_proba(asked.toarray()))
    uneven = np.array([0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2])
    found = label_sources.naive_bayes(counts, uneven, 3, asked)
    known = MultinomialNB().fit(counts.toarray(), uneven)
    np.testing.assert_allclose(found[:, [0, 2]], known.predict_joint_log_proba(asked.toarray()))
    assert (found[:, 1] == -np.inf).all()


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


def test_the_nearest_text_is_the_one_of_the_highest_cosine(taught, monkeypatch):
    monkeypatch.setattr(label_sources, "AT_ONCE", 4)
    counts, asked = word_counts(taught[0], WORDS), word_counts(texts(9, 1), WORDS)
    found = label_sources.nearest_text(counts, np.array([0, 2] * 6), 3, asked)
    for row, scores in zip(asked.toarray(), found, strict=True):
        cosines = [cosine(row, other) for other in counts.toarray()]
        np.testing.assert_allclose(scores[[0, 2]], [max(cosines[::2]), max(cosines[1::2])])
    assert (found[:, 1] == -np.inf).all()


def test_the_nearest_mean_is_that_of_weighed_texts(taught):
    """By scikit-learn's weights, whose logarithm has no 1 added to it here."""
    counts, asked = word_counts(taught[0], WORDS), word_counts(texts(9, 1), WORDS)
    found = label_sources.nearest_mean(counts, taught[1], 3, asked)
    weights = TfidfTransformer().fit(counts).idf_ - 1
    weighed = [row * weights for row in counts.toarray()]
    means = [np.mean([w / np.linalg.norm(w) for w in weighed[each::3]], axis=0) for each in range(3)]
    expected = [[cosine(row * weights, mean) for mean in means] for row in asked.toarray()]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_words_that_tell_are_counted(taught):
    counts, asked = word_counts(taught[0], WORDS), word_counts(texts(9, 1), WORDS)
    found = label_sources.words_that_tell(counts, taught[1], 3, asked)
    lists = telling_words([list(ids) for ids in taught[0]], taught[1], 3, 10)
    for row, scores in zip(texts(9, 1), found, strict=True):
        assert scores.tolist() == [sum(word in words for word in row) for words in lists]
    assert found.max() > 1


# --- votes ---


def test_no_two_sources_learn_from_one_text_and_each_has_all_classes(taught, monkeypatch):
    read = []

    def spy(counts, classes, number, asked):
        read.append((counts.toarray().tolist(), classes.tolist(), number))
        return np.zeros((asked.shape[0], number))

    monkeypatch.setattr(label_sources, "SOURCES", (spy,) * 4)
    votes(*taught, 3, texts(2, 1), WORDS)
    assert [number for *_, number in read] == [3] * 4
    assert all(sorted(classes) == [0, 1, 2] for _, classes, _ in read)
    given = [row for counts, *_ in read for row in counts]
    assert sorted(given) == sorted(word_counts(taught[0], WORDS).toarray().tolist())
    for counts, classes, _ in read:
        for row, each in zip(counts, classes, strict=True):
            assert taught[1][word_counts(taught[0], WORDS).toarray().tolist().index(row)] == each


def test_a_source_says_the_best_class_and_nothing_where_it_cannot_know(monkeypatch):
    """A text without a word that it has seen, and one for which two classes are best."""

    def scores(counts, classes, number, asked):
        return np.array([[0.1, 0.7, 0.2], [0.5, 0.5, 0.1], [0.9, 0.1, 0.0], [0.0, 0.2, 0.3]])

    monkeypatch.setattr(label_sources, "SOURCES", (scores, scores))
    asked = Ragged.of([[5, 9], [5], [20, UNKNOWN], [6, 6]])
    found = votes(Ragged.of([[5, 6, UNKNOWN], [9]]), np.array([0, 2]), 3, asked, WORDS)
    assert found[:, 0].tolist() == [1, ABSTAINS, ABSTAINS, 2]
    assert found[:, 1].tolist() == [1, ABSTAINS, ABSTAINS, ABSTAINS]  # it has seen the word 9 alone


def test_a_source_without_texts_says_nothing():
    found = votes(Ragged.of([[5, 6], [7, 8]]), np.array([0, 1]), 2, texts(6, 1), WORDS)
    assert found.shape == (6, 4) and (found[:, 2:] == ABSTAINS).all()


def test_the_sources_are_four_of_different_kinds():
    names = [source.__name__ for source in label_sources.SOURCES]
    assert names == ["naive_bayes", "nearest_text", "nearest_mean", "words_that_tell"]


def test_sources_learn_what_words_tell():
    """Of two classes with words of their own, each source says most texts right."""
    rng = np.random.default_rng(0)
    classes = np.arange(80) % 2
    made = [np.concatenate([rng.choice(np.arange(2, 12) + 10 * each, 4), rng.integers(22, 30, 4)]) for each in classes]
    found = votes(Ragged.of(made[:40]), classes[:40], 2, Ragged.of(made[40:]), WORDS)
    for said in found.T:
        spoken = said != ABSTAINS
        assert spoken.mean() > 0.5 and (said == classes[40:])[spoken].mean() > 0.8

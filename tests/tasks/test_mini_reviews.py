"""The reviews corpus: the label is in no bag of words and in no single sentence."""

from __future__ import annotations

from collections import Counter

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tasks.mini.reviews import BAD, GOOD, OTHERS, OWN, THINGS, rows


def own_opinions(text: str) -> list[str]:
    """The last words of the sentences that begin as a reviewer's own do."""
    begins = tuple(form.split(" {}")[0].capitalize() for form in OWN)
    return [sentence.split()[-1] for sentence in text.rstrip(".").split(". ") if sentence.startswith(begins)]


@pytest.mark.parametrize("domain", THINGS)
def test_the_stars_are_the_praise_of_the_reviewer_alone(domain) -> None:
    """None of four praised is one star, all four are five."""
    for row in rows("test", domain, stars=True):
        said = own_opinions(row["text"])
        assert len(said) == 4 and {*said} <= {*GOOD, *BAD}
        assert row["label"] == str(1 + sum(word in GOOD for word in said))


def test_every_review_has_as_many_good_words_as_bad_ones() -> None:
    """So that none who counts words over the whole text can tell."""
    for row in rows("train", "film", stars=True):
        words = Counter(row["text"].replace(".", "").split())
        assert sum(words[word] for word in GOOD) == sum(words[word] for word in BAD) == 4


def test_two_classes_leave_out_the_three_stars_and_are_even() -> None:
    found = Counter(row["label"] for row in rows("train", "restaurant", stars=False))
    assert found == {"negative": 400, "positive": 400}


def accuracy(neighbours: int) -> float:
    """That of a regression on words, or on so many neighbouring words."""
    train, test = (list(rows(split, "film", stars=False)) for split in ("train", "test"))
    model = make_pipeline(CountVectorizer(ngram_range=(1, neighbours)), LogisticRegression(max_iter=1000))
    model.fit([row["text"] for row in train], [row["label"] for row in train])
    return model.score([row["text"] for row in test], [row["label"] for row in test])


def test_a_bag_of_words_fails_where_neighbours_begin_to_tell() -> None:
    """Architectures that read windows must come out ahead of those that read words."""
    assert accuracy(1) < 0.6
    assert accuracy(5) > 0.7


def test_both_sides_speak_alike() -> None:
    """A thing or a word that only one side uses would give its opinions away."""
    assert not {form.split("{}")[0] for form in OWN} & {form.split("{}")[0] for form in OTHERS}
    assert not {*GOOD} & {*BAD}

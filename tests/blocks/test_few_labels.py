"""Rows of which few have a label: which these are, and the words that say most of a class."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from sklearn.feature_extraction.text import TfidfVectorizer

from architectures.blocks.few_labels import known_classes, telling_words, words_of_names
from harness.data.corpus import Split
from harness.problems.base import NoTarget
from harness.problems.classify import ClassTarget
from harness.views.words import UNKNOWN, Words


def test_a_text_has_the_class_of_the_labelled_row_of_its_id():
    """Its place among all rows is another one than among the labelled ones."""
    target = ClassTarget()
    kept = [{"id": "e", "label": "y"}, {"id": "b", "label": "x"}, {"id": "c", "label": "y"}]
    target.fit(kept)
    labelled = Split(Dataset.from_list(kept), Words(), target, {}, target.encode(kept, Words()))
    texts = Split(Dataset.from_list([{"id": id} for id in "abcde"]), Words(), NoTarget(), {}, {})
    assert known_classes(labelled, texts).tolist() == [-1, 0, 1, -1, 1]


@pytest.mark.parametrize("seed", range(3))
def test_telling_words_are_those_of_another_program(seed):
    """The authors call scikit-learn's with these options."""
    rng = np.random.default_rng(seed)
    texts = [rng.integers(0, 60, rng.integers(3, 12)).tolist() for _ in range(30)]
    classes = rng.integers(0, 3, 30)
    weighing = TfidfVectorizer(
        analyzer=lambda words: [word for word in words if word > UNKNOWN], sublinear_tf=True, max_df=0.2
    )
    weights, words = weighing.fit_transform(texts).toarray(), weighing.get_feature_names_out()
    for each, found in enumerate(telling_words(texts, classes, 3, 5)):
        means = weights[classes == each].mean(0)
        assert found == words[np.argsort(-means, kind="stable")[:5]].tolist()


def test_words_of_many_texts_tell_nothing_unless_a_class_has_no_others():
    texts = [[5, 6], [5, 7, 7, UNKNOWN], [5], [5, 8], [5, 9], [5, 10]]
    classes = np.array([0, 0, 1, 2, 2, 2])
    assert telling_words(texts, classes, 3, 2) == [[6, 7], [5], [8, 9]]


def test_a_word_of_one_text_tells_something_however_few_there_are():
    assert telling_words([[5, 6], [5, 7]], np.array([0, 1]), 2, 3) == [[6], [7]]


def test_the_words_of_a_name_are_those_that_the_texts_have():
    view = Words(min_count=1)
    view.fit(["the world plays sports", "a tech firm / today"])
    ids = {word: view.vocabulary.ids([word])[0] for word in ("world", "sports", "tech")}
    names = ["World Sports", "Sci/Tech"]
    assert words_of_names(view, names) == [[ids["world"], ids["sports"]], [ids["tech"]]]
    with pytest.raises(ValueError, match="the texts have no word of the label 'Business'"):
        words_of_names(view, ["World", "Business"])

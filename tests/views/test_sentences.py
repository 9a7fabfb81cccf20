"""A hierarchical model is only one if its documents are split for real."""

from __future__ import annotations

import json

import numpy as np
import pytest

from harness.views.sentences import Sentences, sentences_of
from harness.views.words import UNKNOWN


def joined(text) -> list[str]:
    return [" ".join(words) for words in sentences_of(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rained. We left!  Why? No idea", ["It rained .", "We left !", "Why ?", "No idea"]),
        ('He said "Stop." (Twice.) Then he left.', ['He said " Stop . "', "( Twice . )", "Then he left ."]),
        ("Wait... What?! Yes.", ["Wait . . .", "What ? !", "Yes ."]),
        ("It cost 3.5 dollars, i.e. little. Fine.", ["It cost 3 . 5 dollars , i . e . little .", "Fine ."]),
        ("Mr. Smith met J. Doe of the U.S. Senate. It was I. He left.", 3),
        ("i liked it. it was good! 2 stars", ["i liked it .", "it was good !", "2 stars"]),
        ("Ça va. Été fini.", ["Ça va .", "Été fini ."]),
        ("no end", ["no end"]),
        ("", [""]),
        ("  \n ", [""]),
    ],
)
def test_raw_text_is_cut_at_marks_before_a_new_sentence(text, sentences):
    assert len(joined(text)) == sentences if isinstance(sentences, int) else joined(text) == sentences


@pytest.mark.parametrize(
    ("words", "sentences"),
    [
        ("a b . c d ! e ?", ["a b .", "c d !", "e ?"]),
        ("he said `` no . '' she left .", ["he said `` no . ''", "she left ."]),
        ('" no . " " yes . "', ['" no . "', '" yes . "']),
        ("( a . ) -LRB- b . -RRB- c", ["( a . )", "-LRB- b . -RRB-", "c"]),
        ("what ? ! no", ["what ? !", "no"]),
        ("1.5 mr. x", ["1.5 mr. x"]),
        (". a", [".", "a"]),
        ("", [""]),
    ],
)
def test_tokenised_text_is_cut_at_the_tokens(words, sentences):
    assert joined(words.split()) == sentences


def fitted(**options) -> Sentences:
    view = Sentences(min_count=1, **options)
    view.fit(["A cat sat. It slept.", "Dogs ran!"])
    return view


def test_batch_is_padded_as_loops_would():
    view = fitted()
    texts = ["A dog sat. It ran.", "Cat", ""]
    batch = view.collate(view.encode(texts), np.array([2, 0]))
    ids = view.vocabulary.ids
    assert batch.ids.tolist() == [
        [[UNKNOWN, 0, 0, 0], [0, 0, 0, 0]],
        [ids(["a", "dog", "sat", "."]), [*ids(["it", "ran", "."]), 0]],
    ]
    assert batch.mask.tolist() == (batch.ids > 0).tolist()
    assert batch.sentence_mask.tolist() == [[True, False], [True, True]]
    assert view.lengths(view.encode(texts)).tolist() == [7, 1, 1]


def test_long_documents_lose_their_last_sentences_and_long_sentences_their_last_words():
    view = fitted(max_sentences=2, max_words=3)
    batch = view.collate(view.encode(["A cat sat. It slept. Dogs ran!"]), np.array([0]))
    assert batch.ids.tolist() == [[view.vocabulary.ids(["a", "cat", "sat"]), view.vocabulary.ids(["it", "slept", "."])]]


def test_only_training_words_are_known_and_case_is_a_setting():
    view = fitted(lower=False)
    assert view.encode(["A a zebra"])["ids"].values.tolist() == [view.vocabulary.ids(["A"])[0], UNKNOWN, UNKNOWN]
    assert view.width == 2 + len({"A", "cat", "sat", ".", "It", "slept", "Dogs", "ran", "!"})


def test_state_survives_json():
    view, other = fitted(), Sentences()
    other.restore(json.loads(json.dumps(view.state())))
    before, after = (v.encode(["A cat! Dogs", ""]) for v in (view, other))
    assert all(np.array_equal(before[name].values, after[name].values) for name in before)

"""What a word view must keep true for every model that reads it, and the shared tokeniser."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import Lowercase

from harness.views.base import plain, words_of
from harness.views.frames import Frames
from harness.views.pieces import Pieces
from harness.views.sentences import Sentences
from harness.views.words import PAD, UNKNOWN, Vocabulary, Words

TRAIN = ["The cat sat . The dog sat !", "the end"]


def fitted(**options) -> Words:
    view = Words(**options)
    view.fit(TRAIN)
    return view


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It isn't 3.5, is it?", ["It", "isn't", "3", ".", "5", ",", "is", "it", "?"]),
        ("l’été\xa0vient", ["l’été", "vient"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("שָׁלוֹם, مَرحَبًا", ["שָׁלוֹם", ",", "مَرحَبًا"]),
        ("l'été résumé", ["l'été", "résumé"]),
        ("𞤀𞥄𞤁", ["𞤀𞥄𞤁"]),
        ("́x -́ 3́", ["́", "x", "-", "́", "3́"]),
        (["as", "it's given"], ["as", "it's given"]),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_with_an_inner_apostrophe_or_single_marks(text, words):
    assert words_of(text) == words


@given(st.text(st.sampled_from("ab1_'’ -é́ु‍ָำ𞥄\n"), max_size=20))
def test_words_are_all_that_stands_in_a_text_but_blanks(text):
    """A sign that were in no word would be lost to every system."""
    assert "".join(words_of(text)) == "".join(text.split())


def test_plain_joins_a_tokenised_text():
    assert plain(["a", "b"]) == "a b" and plain("a  b") == "a  b"


def test_vocabulary_is_ordered_by_count_then_word_and_leaves_out_rare_words():
    vocabulary = Vocabulary.of(["b", "a", "c", "b", "a", "d"], min_count=2)
    assert (vocabulary.words, vocabulary.counts, len(vocabulary)) == (["a", "b"], [2, 2], 4)
    assert vocabulary.ids(["b", "c", "new"]) == [3, UNKNOWN, UNKNOWN]


def test_row_counts_have_a_count_for_each_row_of_the_word_table():
    """Frequencies off by a row would weight each word by its neighbour's."""
    vocabulary = Vocabulary.of(["b", "a", "c", "b", "a", "b"], min_count=2)
    assert vocabulary.row_counts() == [0, 0, 3, 2] and vocabulary.row_counts(absent=1) == [1, 1, 3, 2]
    assert len(vocabulary.row_counts()) == len(vocabulary)
    assert vocabulary.ids(["b"]) == [vocabulary.row_counts().index(3)]


def test_batch_is_padded_as_a_loop_would():
    view = fitted()
    columns = view.encode([*TRAIN, "the unseen cat"])
    batch = view.collate(columns, np.array([2, 0]))
    the, sat = view.vocabulary.ids(["the", "sat"])
    assert batch.ids.tolist() == [
        [the, UNKNOWN, UNKNOWN] + [PAD] * 5,
        [the, UNKNOWN, sat, UNKNOWN, the, UNKNOWN, sat, UNKNOWN],
    ]
    assert batch.lengths.tolist() == [3, 8] == batch.mask.sum(1).tolist()
    assert view.lengths(columns).tolist() == [8, 2, 3]


def test_encoding_other_texts_changes_nothing_that_was_learnt():
    """A vocabulary that grows on dev or test would be a leak."""
    view = fitted(min_count=1)
    before = json.dumps(view.state())
    columns = view.encode(["zebra zebra"])
    assert columns["ids"].values.tolist() == [UNKNOWN, UNKNOWN]
    assert json.dumps(view.state()) == before


def test_empty_text_is_one_unknown_word_and_long_text_is_cut():
    view = fitted(max_length=2)
    columns = view.encode(["", [], "the the the"])
    assert view.lengths(columns).tolist() == [1, 1, 2]
    assert view.collate(columns, np.array([0])).ids.tolist() == [[UNKNOWN]]


def test_case_is_kept_on_demand():
    view = fitted(lower=False, min_count=1)
    assert {"The", "the"} <= set(view.vocabulary.words)
    assert view.encode(["tHE"])["ids"].values.tolist() == [UNKNOWN]


def test_state_survives_json():
    view, other = fitted(), Words()
    other.restore(json.loads(json.dumps(view.state())))
    assert other.encode(TRAIN)["ids"].values.tolist() == view.encode(TRAIN)["ids"].values.tolist()
    assert other.width == view.width == len(view.vocabulary)


def test_spans_copy_the_words_out_of_the_text():
    """An answer is cut from the raw passage with these: off by one is a wrong answer."""
    text = " It  isn't (3)."
    starts, ends = Words().spans([text, ""])
    assert [text[a:b] for a, b in zip(starts[0], ends[0], strict=True)] == ["It", "isn't", "(", "3", ")", "."]
    assert (starts[1].tolist(), ends[1].tolist()) == ([0], [0])


def test_settings_tell_views_apart():
    """They name the cached encoding: two views with one name would read each other's arrays."""
    assert Words(min_count=1).settings() != Words().settings()
    assert json.loads(json.dumps(Words().settings()))["view"] == "Words"


def test_a_view_with_other_settings_is_unfitted_and_checked():
    view = fitted()
    changed = view.changed({"min_count": 1, "lower": False})
    assert (changed.min_count, changed.lower, changed.max_length) == (1, False, view.max_length)
    assert not hasattr(changed, "vocabulary") and view.vocabulary.words
    for settings in ({"min_count": 0}, {"max_length": -3}):
        with pytest.raises(ValueError, match="a whole number from 1 is expected"):
            view.changed(settings)
    assert Frames(deltas=2).changed({"deltas": 0}).deltas == 0


class Stems(Words):
    """A plugin's view: words without their plural, and no marks."""

    def split(self, text):
        return [word for word in super().split(text) if word.isalpha()] or [""]

    def form(self, word):
        return super().form(word).removesuffix("s")


def test_a_view_that_reads_other_words_encodes_the_words_that_it_reads():
    """Else its vocabulary would hold stems, and every plural of the test set would be unknown."""
    view = Stems(min_count=1)
    view.fit(["Cats sat .", "a dog"])
    columns = view.encode(["CAT sats, dogs", "!"])
    assert view.read("CAT sats, dogs") == ["cat", "sat", "dog"]
    assert [columns["ids"][0].tolist(), columns["ids"][1].tolist()] == [
        view.vocabulary.ids(["cat", "sat", "dog"]),
        [UNKNOWN],
    ]
    assert UNKNOWN not in columns["ids"][0]


def in_pieces(view):
    """A view that reads "cats" as two pieces."""
    tokenizer = Tokenizer(WordPiece({"the": 0, "cat": 1, "##s": 2, ".": 3, "[UNK]": 4}))
    tokenizer.normalizer = Lowercase()
    view.pieces = Pieces(tokenizer.to_str())
    return view


@pytest.mark.parametrize("text", ["The cats .", ["The", "cats", "."]])
def test_words_are_read_in_pieces_given_or_not(text):
    """The cut counts pieces, and each has a spelling of its own."""
    view = in_pieces(Words(min_count=1, max_length=3))
    view.fit([text])
    assert view.read(text) == ["the", "cat", "##s"] and view.read("") == [""]
    columns = view.encode([text])
    assert sorted(columns["ids"][0].tolist()) == [2, 3, 4] and len({*columns["spellings"][0].tolist()}) == 3


def test_sentences_are_cut_before_their_words_are_divided():
    view = in_pieces(Sentences(max_words=3))
    assert view.read("The cats. The cat.") == [["the", "cat", "##s"], ["the", "cat", "."]]
    assert view.read("") == [[""]]


def test_a_view_is_restored_with_its_pieces_and_without_them_as_before():
    view = in_pieces(Words(min_count=1))
    view.fit(["cats"])
    again = Words(min_count=1)
    again.restore(json.loads(json.dumps(view.state())))
    assert again.read("the cats") == ["the", "cat", "##s"] and again.state() == view.state()
    assert "pieces" not in fitted().state(), "kept models would all be other ones"

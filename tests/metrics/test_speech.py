"""WER and CER: by hand, against jiwer, and where references are empty."""

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.metrics import score
from harness.metrics.speech import edit_distance


def _score(predictions, references):
    return score(["wer", "cer"], predictions, [{"transcript": reference} for reference in references])


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("ab", "ba", 2), ("abc", "abc", 0)],
)
def test_edit_distance_by_hand(source, target, expected):
    assert edit_distance(source, target) == expected


def test_rates_are_of_the_corpus_not_means_of_utterances():
    """1 error in 1 word and 1 in 4: 2/5, not (1 + 1/4) / 2. Characters: "two" for "one" 3 of 3,
    "zero" for "nine" 4 of 17."""
    values = _score(["two", "one two five zero"], ["one", "one two five nine"])
    assert values == {"wer": pytest.approx(2 / 5), "cer": pytest.approx((3 + 4) / (3 + 17))}


def test_white_space_at_the_ends_or_doubled_is_no_error():
    """CTC decoders leave blanks at the ends of a transcript."""
    assert _score(["  one  two "], ["one two"]) == {"wer": 0.0, "cer": 0.0}


def test_an_empty_reference_counts_its_insertions():
    """A model that talks over silence pays, in the rate of the whole corpus: 2 inserted words over
    2 reference words."""
    assert _score(["a b", "one two"], ["", "one two"]) == {"wer": 1.0, "cer": pytest.approx(3 / 7)}


def test_a_corpus_without_reference_words_has_its_insertions_as_rate():
    """Nothing said, nothing heard: 0. Otherwise the number of insertions: finite, so that a record
    can hold it."""
    assert _score(["", " "], ["", ""]) == {"wer": 0.0, "cer": 0.0}
    assert _score(["one two", "a"], ["", ""]) == {"wer": 3.0, "cer": 8.0}


utterances = st.lists(st.sampled_from(["a", "b", "ab", "ba"]), max_size=5).map(" ".join)


@settings(max_examples=30)
@given(st.lists(st.tuples(utterances, utterances.filter(bool)), min_size=1, max_size=4))
def test_equal_to_jiwer(pairs):
    predictions, references = (list(side) for side in zip(*pairs, strict=True))
    expected = {"wer": jiwer.wer(references, predictions), "cer": jiwer.cer(references, predictions)}
    assert _score(predictions, references) == pytest.approx(expected)

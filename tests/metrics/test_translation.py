"""BLEU and chrF of translations: worked by hand, and what counts as a word."""

from __future__ import annotations

import math

import pytest

from harness.metrics import score
from harness.metrics.translation import words


def scored(predictions: list[str], references: list[str]) -> dict[str, float]:
    return score(["bleu", "chrf"], predictions, [{"target": text} for text in references])


def test_bleu_is_the_mean_of_four_precisions_with_a_penalty_for_what_is_short() -> None:
    """Nine words beside ten: 8 of 9, 5 of 7, 3 of 5 and 1 of 3 sequences stand in the reference."""
    predictions = ["the cat sat on mats", "a dog is here"]
    references = ["the cat sat on the mat", "a dog was here"]
    # Words: the cat sat on | a dog here are 7 of 9; pairs: 3 of 4 and 1 of 3; triples: 2 of 3 and
    # 0 of 2; quadruples: 1 of 2 and 0 of 1.
    product = (7 / 9) * (4 / 7) * (2 / 5) * (1 / 3)
    expected = math.exp(1 - 10 / 9) * product ** (1 / 4)
    assert scored(predictions, references)["bleu"] == pytest.approx(expected)


def test_chrf_weighs_recall_twice() -> None:
    """Of "ab" beside "abc": all of its characters and its pair are right, and two of three, and one
    of two, are found; longer sequences are not there."""
    precision, recall = (1 + 1) / 2, (2 / 3 + 1 / 2) / 2
    expected = 5 * precision * recall / (4 * precision + recall)
    assert scored(["ab"], ["abc"])["chrf"] == pytest.approx(expected)


def test_case_and_blanks_before_marks_do_not_count() -> None:
    """Systems write the words of 13a in lower case, parted by blanks: a right translation would
    else lose its last word with the full stop."""
    reference = 'Ein Mann, 3.5 m groß, sagt: "Ja!" (im E-Mail-Text).'
    written = " ".join(words(reference))
    assert written == 'ein mann , 3.5 m groß , sagt : " ja ! " ( im e-mail-text ) .'
    assert scored([written], [reference]) == {"bleu": pytest.approx(1), "chrf": pytest.approx(1)}


def test_an_empty_translation_scores_nothing() -> None:
    assert scored(["", ""], ["ein mann sieht den hund .", "ja ."]) == {"bleu": 0, "chrf": 0}


def test_blanks_before_full_stops_are_no_fault_of_the_data(caplog: pytest.LogCaptureFixture) -> None:
    """Each score of a translator told its user that its data had not been detokenised."""
    assert scored(["a dog is here ."] * 100, ["a dog is here."] * 100)["bleu"] == pytest.approx(1.0)
    assert not caplog.records

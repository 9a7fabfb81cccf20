"""F1 of what pronouns stand for: counted by hand, and by gender."""

from __future__ import annotations

import pytest
from sklearn.metrics import f1_score

from harness.mentions import NEITHER
from harness.metrics import score


def row(pronoun: str, label: str) -> dict[str, object]:
    return {"text": ["[a", "Ann", "a]", "saw", "[b", "Bea", "b]", ".", "[p", pronoun, "p]"], "label": label}


ROWS = [row("She", "A"), row("her", "B"), row("hers", NEITHER), row("his", "A"), row("He", NEITHER), row("It", "B")]
SAID = ["A", "A", "B", NEITHER, NEITHER, "B"]


def test_names_are_right_wrong_missing_or_too_many():
    """By hand: A and B are each right once; four names are said, four are meant."""
    values = score(["mention_f1"], SAID, ROWS)
    assert values["mention_f1"] == pytest.approx(2 * 2 / (4 + 4))
    assert values["mention_f1_feminine"] == pytest.approx(2 * 1 / (3 + 2))
    assert values["mention_f1_masculine"] == 0


def test_it_is_the_f1_of_both_decisions_of_each_row():
    """As the authors count: for each name, is it meant? An independent library's count of the same
    twelve decisions."""
    actual = [each["label"] == name for each in ROWS for name in "AB"]
    said = [each == name for each in SAID for name in "AB"]
    assert score(["mention_f1"], SAID, ROWS)["mention_f1"] == pytest.approx(f1_score(actual, said))


def test_a_gender_that_no_row_has_is_left_out():
    assert list(score(["mention_f1"], ["A"], [row("it", "A")])) == ["mention_f1"]


def test_saying_neither_everywhere_earns_nothing():
    """Accuracy would reward it."""
    assert score(["mention_f1"], [NEITHER] * 6, ROWS)["mention_f1"] == 0
    assert score(["mention_f1"], [NEITHER], [row("she", NEITHER)])["mention_f1"] == 0

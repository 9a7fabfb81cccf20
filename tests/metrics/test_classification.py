"""Accuracy and macro-F1, by hand and against scikit-learn."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from harness.metrics import score


def _score(predictions, references):
    return score(["accuracy", "macro_f1"], predictions, [{"label": label} for label in references])


def test_by_hand():
    """a: 2 right of 3 predicted and 2 true, F1 4/5; b: 0 of 0 predicted, 1 true, F1 0; c: 1 of 1
    and 1, F1 1."""
    values = _score(["a", "a", "a", "c"], ["a", "a", "b", "c"])
    assert values == {"accuracy": 3 / 4, "macro_f1": pytest.approx((4 / 5 + 0 + 1) / 3)}


def test_macro_f1_counts_labels_that_were_only_predicted():
    """A model that invents a label nobody has pays for it: the mean is over both sides' labels (a:
    2/3, b: 0)."""
    assert _score(["a", "b"], ["a", "a"])["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)


def test_labels_are_compared_as_they_are():
    """Text labels that look like numbers must not be read as such ("1" is not "01")."""
    assert _score(["1"], ["01"]) == {"accuracy": 0.0, "macro_f1": 0.0}


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abc")), min_size=1, max_size=12))
def test_equal_to_scikit_learn(pairs):
    predictions, references = (list(side) for side in zip(*pairs, strict=True))
    assert _score(predictions, references) == {
        "accuracy": pytest.approx(accuracy_score(references, predictions)),
        "macro_f1": pytest.approx(f1_score(references, predictions, average="macro", zero_division=0)),
    }

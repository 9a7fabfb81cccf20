"""SQuAD's exact match and F1: by hand and against torchmetrics' port of the official script."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.metrics import score
from harness.metrics.squad import exact_match, f1, normalise

NAMES = ["exact_match", "f1", "no_answer_accuracy"]


def _score(predictions, answers, names=NAMES):
    return score(names, predictions, [{"answers": {"text": texts, "start": [0] * len(texts)}} for texts in answers])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The  Broncos!", "broncos"),
        ("an A-line\tdress, a", "aline dress"),
        ("Theatre in Athens", "theatre in athens"),
        ("U.S.", "us"),
        ("$5.40", "540"),
        ("the", ""),
        ("café – bar", "café – bar"),
        ("a. the-an", "thean"),
    ],
)
def test_normalisation_by_hand(answer, expected):
    """Punctuation goes first, then articles as whole words: "A-line" keeps its a, a dash that is
    not ASCII stays."""
    assert normalise(answer) == expected


def test_the_best_of_several_golds_counts():
    """EM is any gold's; F1 of "in the Santa Clara" is 4/5 against "Santa Clara" and 1/2 against
    "Clara"."""
    assert exact_match("the Santa Clara", ["Levi's Stadium", "Santa Clara."]) == 1
    assert exact_match("in the Santa Clara", ["Clara", "Santa Clara"]) == 0
    assert f1("in the Santa Clara", ["Clara", "Santa Clara"]) == pytest.approx(4 / 5)
    assert f1("in the Santa Clara", ["Clara"]) == pytest.approx(1 / 2)


def test_f1_counts_repeated_words_as_often_as_both_have_them():
    """ "x x y" against "x z": one x in common of 3 and 2 words."""
    assert f1("x x y", ["x z"]) == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    ("prediction", "answers", "expected"),
    [
        ("", [], 1),
        ("the", [], 1),
        ("x", [], 0),
        ("", ["x"], 0),
        (".", ["x"], 0),
        ("", [".", "x"], 0),
        ("x", [".", "x"], 1),
        ("", ["."], 1),
    ],
)
def test_where_a_side_is_empty_both_values_are_their_equality(prediction, answers, expected):
    """SQuAD 2.0's rule; a gold "." (3 in the development set) gives an empty prediction nothing
    while there is another."""
    assert exact_match(prediction, answers) == expected
    assert f1(prediction, answers) == expected


def test_squad2_values_by_hand():
    """Two answerable questions (EM 1, 0; F1 1, 2/3), three unanswerable ones of which one is
    answered all the same."""
    values = _score(["x", "y z", "", "guess", ""], [["x"], ["z"], [], [], []])
    assert values == {
        "exact_match": pytest.approx(3 / 5),
        "f1": pytest.approx((1 + 2 / 3 + 2) / 5),
        "exact_match_answerable": pytest.approx(1 / 2),
        "f1_answerable": pytest.approx(5 / 6),
        "no_answer_accuracy": pytest.approx(2 / 3),
    }


def test_squad1_has_only_its_two_values():
    """SQuAD 1.1 tables have no no-answer columns."""
    assert _score(["x"], [["x"]], ["f1"]) == {"exact_match": 1.0, "f1": 1.0}


texts = st.text(alphabet="aAx.-b \u2013", max_size=5) | st.sampled_from(["the x", "a b a", "An x-b", "x b b"])
golds = st.lists(texts.filter(normalise), min_size=1, max_size=3)


@settings(max_examples=40)
@given(st.lists(st.tuples(texts, golds | st.just([])), min_size=1, max_size=4))
def test_equal_to_torchmetrics(pairs):
    """The port takes "" as the gold of an unanswerable question. It keeps golds such as ".", so
    they are not drawn here."""
    squad = pytest.importorskip("torchmetrics.functional.text").squad
    predictions = [{"id": str(i), "prediction_text": text} for i, (text, _) in enumerate(pairs)]
    targets = [
        {"id": str(i), "answers": {"text": gold or [""], "answer_start": [0]}} for i, (_, gold) in enumerate(pairs)
    ]
    expected = {name: value.item() / 100 for name, value in squad(predictions, targets).items()}
    assert _score([text for text, _ in pairs], [gold for _, gold in pairs], ["f1"]) == pytest.approx(expected, abs=1e-6)

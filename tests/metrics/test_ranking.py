"""MAP and MRR: by hand, against ir_measures where no scores are equal, by enumeration of all orders
where some are."""

import csv
import gzip
from itertools import pairwise, permutations
from statistics import fmean

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.metrics import score
from harness.metrics.ranking import Question, average_precision, first_choice, questions, reciprocal_rank

NAMES = ["map", "mrr", "map_237", "mrr_237"]


def _rows(*truths):
    """Rows of questions q0, q1, ... with one candidate for each character, "1" right and "0"
    wrong."""
    return [{"group": f"q{i}", "label": label} for i, labels in enumerate(truths) for label in labels]


def test_by_hand():
    """q0: right ones at ranks 1 and 3, AP (1 + 2/3) / 2, RR 1. q1: the right one last of two, AP
    and RR 1/2."""
    values = score(NAMES, [0.9, 0.5, 0.2, 3, 4], _rows("101", "10"))
    assert values["map"] == pytest.approx((5 / 6 + 1 / 2) / 2)
    assert values["mrr"] == pytest.approx((1 + 1 / 2) / 2)


def test_questions_with_candidates_of_one_sort_count_by_set():
    """q0 has no answer (out of both), q1 only right candidates (perfect in any order; out of the
    237), q2 is AP 1/2."""
    values = score(NAMES, [9, 8, 1, 2, 1, 2], _rows("00", "11", "10"))
    assert values == {"map": 0.75, "mrr": 0.75, "map_237": 0.5, "mrr_237": 0.5}


def test_a_tie_of_choices_earns_its_share_and_no_more():
    """q0 is right, q1 wrong, q2 ties its one right choice with two wrong ones, q3 has no right one
    and does not count. Marking a tie as right would let a constant pass every exam."""
    values = score(["choice_accuracy"], [3, 1, 2, 1, 5, 5, 5, 1, 7, 8], _rows("10", "01", "0100", "00"))
    assert values == {"choice_accuracy": pytest.approx((1 + 0 + 1 / 3) / 3)}
    with pytest.raises(ValueError, match="no question has a right candidate"):
        score(["choice_accuracy"], [1, 2], _rows("00"))


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6))
@settings(deadline=None)
def test_a_choice_is_the_mean_over_the_orders_of_a_tie(candidates):
    """The share against every order of equal scores: the file's order must not be an answer."""
    question = Question([float(value) for value, _ in candidates], [right for _, right in candidates])
    firsts = [order[0][1] for order in permutations(candidates) if order[0][0] == max(order)[0]]
    assert first_choice(question) == pytest.approx(fmean(firsts))


def test_candidates_of_a_question_need_not_stand_together():
    """Length buckets and caps may reorder rows: grouping is by the question's id, not by
    neighbourhood."""
    rows = [
        {"group": "a", "label": "1"},
        {"group": "b", "label": "0"},
        {"group": "a", "label": "0"},
        {"group": "b", "label": "1"},
    ]
    assert score(["map"], [1, 2, 2, 3], rows)["map"] == pytest.approx((1 / 2 + 1) / 2)


def test_one_right_candidate_among_three_equal_scores_by_hand():
    """The right one is at rank 1, 2 or 3 equally often: (1 + 1/2 + 1/3) / 3, wherever the file has
    it."""
    for truths in ("100", "010", "001"):
        values = score(NAMES, [0.5, 0.5, 0.5], _rows(truths))
        assert values == dict.fromkeys(NAMES, pytest.approx(11 / 18))


def test_two_right_candidates_in_a_tie_below_a_wrong_one_by_hand():
    """Ranks 2 to 4 hold two right and one wrong candidate: orders RRW, RWR, WRR below one wrong.

    AP (1/2 + 2/3) / 2, (1/2 + 2/4) / 2, (1/3 + 2/4) / 2; RR 1/2, 1/2, 1/3.
    """
    question = Question([1.0, 0.0, 0.0, 0.0], [False, True, False, True])
    assert average_precision(question) == pytest.approx((7 / 12 + 1 / 2 + 5 / 12) / 3)
    assert reciprocal_rank(question) == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)


def _all_orders(question):
    """Mean AP and RR over every order of the candidates in which scores do not rise: the
    definition, literally."""
    precisions, reciprocals = [], []
    for order in permutations(range(len(question.scores))):
        if any(question.scores[a] < question.scores[b] for a, b in pairwise(order)):
            continue
        ranks = [rank for rank, candidate in enumerate(order, start=1) if question.right[candidate]]
        precisions.append(fmean(number / rank for number, rank in enumerate(ranks, start=1)))
        reciprocals.append(1 / ranks[0])
    return fmean(precisions), fmean(reciprocals)


candidates = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.booleans()), min_size=1, max_size=6)


@settings(max_examples=60)
@given(candidates.filter(lambda c: any(right for _, right in c)))
def test_ties_are_the_exact_mean_over_all_orders(pairs):
    """A constant model must not profit from the file's order (right answers come early in WikiQA),
    nor a sampled one vary."""
    question = Question([value for value, _ in pairs], [right for _, right in pairs])
    assert (average_precision(question), reciprocal_rank(question)) == pytest.approx(_all_orders(question), rel=1e-12)


@settings(max_examples=20)
@given(
    st.lists(
        st.lists(st.booleans(), min_size=1, max_size=7)
        .filter(any)
        .flatmap(lambda r: st.tuples(st.just(r), st.permutations(range(len(r))))),
        min_size=1,
        max_size=4,
    )
)
def test_equal_to_ir_measures_without_ties(asked):
    """Every question has its candidates in a strict order, so that the oracle's own way with ties
    has no part in it."""
    rows = [{"group": f"q{i}", "label": str(int(r))} for i, (right, _) in enumerate(asked) for r in right]
    scores = [float(value) for _, values in asked for value in values]
    qrels = [ir_measures.Qrel(row["group"], f"d{n}", int(row["label"])) for n, row in enumerate(rows)]
    run = [
        ir_measures.ScoredDoc(row["group"], f"d{n}", value)
        for n, (row, value) in enumerate(zip(rows, scores, strict=True))
    ]
    expected = ir_measures.calc_aggregate([ir_measures.AP, ir_measures.RR], qrels, run)
    values = score(["map", "mrr"], scores, rows)
    assert (values["map"], values["mrr"]) == pytest.approx(
        (expected[ir_measures.AP], expected[ir_measures.RR]), abs=1e-6
    )


def test_a_large_tie_stays_exact():
    """Twenty right ones among 2,000 equal scores: the numbers of orders are far beyond a float, the
    mean is not."""
    value = reciprocal_rank(Question([0.0] * 2000, [i < 20 for i in range(2000)]))
    first = 1.0
    expected = 0.0
    for place in range(1, 1982):
        chance = 20 / (2000 - place + 1)
        expected += first * chance / place
        first *= 1 - chance
    assert value == pytest.approx(expected, rel=1e-9)


def test_scores_that_are_no_numbers_and_nothing_to_rank_are_errors():
    """NaN sorts anywhere: a diverged model would get a rank by accident."""
    with pytest.raises(ValueError, match="question q0 has the score NaN"):
        score(["map"], [float("nan"), 1.0], _rows("10"))
    with pytest.raises(ValueError, match="no question has a right candidate"):
        score(["map"], [1.0], _rows("0"))
    with pytest.raises(ValueError, match="both a right and a wrong"):
        score(["map_237"], [1.0], _rows("1"))


def _wikiqa_test(corpora):
    with gzip.open(corpora / "wikiqa" / "WikiQA-test.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        pairs = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [{"group": pair["QuestionID"], "label": pair["Label"]} for pair in pairs]


def test_wikiqa_keeps_243_and_237_questions(corpora):
    """The published figures stand on these two sets; 633 questions would triple the denominator."""
    rows = _wikiqa_test(corpora)
    kept = questions([0.0] * len(rows), [row["label"] == "1" for row in rows], [row["group"] for row in rows])
    assert len({row["group"] for row in rows}) == 633
    assert len(kept) == 243
    assert sum(not all(question.right) for question in kept) == 237


def test_a_constant_score_on_wikiqa_earns_less_than_the_order_of_its_file(corpora):
    """Ranked by place in the file MAP is .64; a model that says nothing must not get it, in
    whatever order its rows come."""
    rows = _wikiqa_test(corpora)
    by_place = score(["map"], [-float(i) for i in range(len(rows))], rows)["map"]
    constant = score(NAMES, [0.0] * len(rows), rows)
    assert by_place == pytest.approx(0.64, abs=0.005)
    assert constant["map"] < 0.5
    assert score(NAMES, [0.0] * len(rows), rows[::-1]) == pytest.approx(constant)

"""Ranking: floors by hand, wrong answers, the words that a question asks with, the layer above a
pair."""

from __future__ import annotations

from harness.kinds import PretrainedEncoder
from harness.problems import problem
from harness.problems.rank import RankJoined, RankTarget, question_word

ASKED = problem("rank")
ROWS = [
    {"id": "a", "group": "q", "first": "In which town did Ann run ?", "second": "ann DID run .", "label": "1"},
    {"id": "b", "group": "q", "first": "In which town did Ann run ?", "second": "It rained .", "label": "0"},
]


def test_the_floors_by_hand():
    """An architecture that beats none of them has learnt nothing of the texts."""
    floors = ASKED.floors([], ROWS)
    assert floors["equal"] == [0.0, 0.0]
    assert floors["shared words"] == [3.0, 0.0], "words are compared in lower case"
    assert len({*floors["random"]}) == 2 and [*floors] == [*ASKED.floor_names]


def test_right_candidates_are_wrong_in_flipped_rows_and_wrong_ones_right():
    assert [row["label"] for row in ASKED.flipped(ROWS)] == ["0", "1"]
    assert [ASKED.right(row) for row in ROWS] == [1.0, 0.0]


def test_errors_are_told_apart_by_the_first_question_word():
    assert question_word(["in", "which", "town", "and", "when"]) == "which"
    assert question_word(["name", "a", "town"]) == "other"
    of_row, shown = ASKED.properties(ROWS)["question word"]
    assert of_row(ROWS[0]) == "which" and {of_row(ROWS[0]), "other"} < {*shown}


class Joined(PretrainedEncoder):
    """One of both texts."""

    size = 3


class Compared(Joined):
    """One with a loss of several candidates."""

    def rank_loss(self, scores, labels, groups):
        return scores.sum()


def test_a_score_has_a_constant_where_its_loss_can_see_it():
    """A loss that compares candidates gives it no gradient: it would be counted and never learn."""
    assert RankJoined(Joined(), RankTarget()).output.bias is not None
    assert RankJoined(Compared(), RankTarget()).output.bias is None

"""Scores over skills: every skill counts alike, however many questions test it."""

from __future__ import annotations

from harness.metrics import score


def rows(*answers: tuple[str, str]) -> list[dict]:
    return [{"skill": skill, "answer": answer} for skill, answer in answers]


def test_a_skill_counts_once_however_many_questions_test_it():
    gold = rows(("a", "x"), ("a", "x"), ("a", "x"), ("b", "y"))
    assert score(["skill_accuracy"], ["x", "x", "x", "n"], gold) == {"skill_accuracy": 0.5, "skills_solved": 0.5}
    assert score(["skills_solved"], ["x", "x", "n", "y"], gold) == {
        "skill_accuracy": (2 / 3 + 1) / 2,
        "skills_solved": 0.5,
    }


def test_a_skill_is_solved_from_19_of_20_right_answers():
    gold = rows(*[("a", "x")] * 20)
    assert score(["skills_solved"], ["x"] * 19 + ["y"], gold)["skills_solved"] == 1.0
    assert score(["skills_solved"], ["x"] * 18 + ["y"] * 2, gold)["skills_solved"] == 0.0


def test_a_list_is_right_only_as_a_whole():
    assert score(["skill_accuracy"], ["milk"], rows(("lists", "milk,apple")))["skill_accuracy"] == 0.0

"""The stories: every answer follows from the facts, and from nothing less than the skill asks
for."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from harness.task import Row
from tasks.mini import stories


def replayed(row: Row) -> str:
    """The answer, from the sentences alone."""
    where: dict[str, list[str]] = {}
    holder: dict[str, str] = {}
    givers: dict[str, str] = {}
    for fact in row["facts"]:
        if m := re.fullmatch(r"(\w+) (?:went|travelled|walked|moved|hurried) to the (\w+)\.", fact):
            where.setdefault(m[1], []).append(m[2])
        elif m := re.fullmatch(r"(\w+) gave the (\w+) to (\w+)\.", fact):
            assert holder[m[2]] == m[1] != m[3]
            holder[m[2]], givers[m[2]] = m[3], m[1]
        else:
            m = re.fullmatch(r"(\w+) (?:took|picked up|grabbed|found) the (\w+)\.", fact)
            assert m and m[2] not in holder
            holder[m[2]] = m[1]
    question = row["question"]
    if m := re.fullmatch(r"Where is the (\w+)\?", question):
        return where[holder[m[1]]][-1]
    if m := re.fullmatch(r"Where is (\w+)\?", question):
        return where[m[1]][-1]
    if m := re.fullmatch(r"Where was (\w+) before the (\w+)\?", question):
        assert where[m[1]][-1] == m[2]
        return where[m[1]][-2]
    if m := re.fullmatch(r"Is (\w+) in the (\w+)\?", question):
        return "yes" if where[m[1]][-1] == m[2] else "no"
    if m := re.fullmatch(r"How many things does (\w+) have\?", question):
        return stories.COUNTS[Counter(holder.values())[m[1]]]
    m = re.fullmatch(r"Who gave the (\w+) last\?", question)
    assert m
    return givers[m[1]]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_answer_follows_from_the_facts(split: str) -> None:
    rows = list(stories.rows(split))
    assert [replayed(row) for row in rows] == [row["answer"] for row in rows]
    assert set(Counter(row["skill"] for row in rows).values()) == {len(rows) // len(stories.SKILLS)}


def test_the_commonest_answer_of_each_skill_does_not_solve_it() -> None:
    rows = list(stories.rows("train"))
    for skill in stories.SKILLS:
        answers = Counter(row["answer"] for row in rows if row["skill"] == skill)
        assert answers.most_common(1)[0][1] < 0.7 * answers.total(), skill


def test_the_newest_place_of_a_story_is_often_not_the_answer() -> None:
    """Else the last sentence alone would answer where somebody is."""
    rows = [row for row in stories.rows("train") if row["skill"] in ("person", "thing")]
    last = [re.findall(r"to the (\w+)\.", " ".join(row["facts"]))[-1] for row in rows]
    assert sum(place != row["answer"] for place, row in zip(last, rows, strict=True)) > 0.4 * len(rows)

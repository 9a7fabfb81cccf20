"""Moves: where is a person now?"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from harness.registry import register_task
from harness.task import Row, Split, Task

SIZES = {"train": 160, "dev": 40, "test": 40}
PERSONS = ("Ann", "Ben", "Cleo")
PLACES = ("garden", "kitchen", "cellar", "attic", "stable", "office")


@register_task(
    "frozen_moves",
    name="Moves",
    type="answer",
    metrics=("skill_accuracy", "skills_solved"),
    main_metric="skill_accuracy",
    sizes={"train": 160, "dev": 40, "test": 40},
    epochs=8,
    protocol="Stories of two facts; the answer is a place, or who is there.",
)
class Moves(Task):
    """Stories of two persons, with two skills: where a person is, and who is in a place."""

    inputs = ("text",)

    def mini(self, split: Split) -> Iterable[Row]:
        random = Random(f"moves {split}")
        for number in range(SIZES[split]):
            persons, places = random.sample(PERSONS, 2), random.sample(PLACES, 2)
            asked = random.randrange(2)
            where = {"question": f"Where is {persons[asked]}?", "answer": places[asked], "skill": "where"}
            who = {"question": f"Who is in the {places[asked]}?", "answer": persons[asked], "skill": "who"}
            facts = [f"{person} went to the {place}." for person, place in zip(persons, places, strict=True)]
            yield {"id": f"{split}-{number}", "facts": facts} | (who if number % 4 == 0 else where)

"""Owners: who has the thing that is asked for?"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from harness.registry import register_task
from harness.task import Row, Split, Task

SIZES = {"train": 120, "dev": 40, "test": 40}
PERSONS = ("Ann", "Ben", "Cleo", "Dan", "Eve")
THINGS = ("lamp", "key", "letter", "apple", "ball")


@register_task(
    "frozen_owners",
    name="Owners",
    type="extract",
    metrics=("exact_match", "f1"),
    main_metric="f1",
    sizes={"train": 120, "dev": 40, "test": 40},
    epochs=8,
    protocol="Each question has an answer, a person's name.",
)
class Owners(Task):
    """Passages of three persons and their things; ``nobody`` asks now and then for a thing that
    none of them has."""

    inputs = ("text",)
    nobody = False

    def mini(self, split: Split) -> Iterable[Row]:
        random = Random(f"owners {split}")
        for number in range(SIZES[split]):
            persons, things = random.sample(PERSONS, 3), random.sample(THINGS, 4)
            facts = [f"{person} has the {thing}." for person, thing in zip(persons, things[:3], strict=True)]
            passage, asked = " ".join(facts), 3 if self.nobody and number % 8 == 0 else random.randrange(3)
            found = [] if asked == 3 else [persons[asked]]
            yield {
                "id": f"{split}-{number}",
                "passage": passage,
                "question": f"Who has the {things[asked]}?",
                "answers": {"text": found, "start": [passage.index(name) for name in found]},
            }


@register_task(
    "frozen_owners_or_nobody",
    name="Owners or nobody",
    type="extract",
    metrics=("exact_match", "f1", "exact_match_answerable", "f1_answerable", "no_answer_accuracy"),
    main_metric="f1",
    sizes={"train": 120, "dev": 40, "test": 40},
    epochs=8,
    protocol="One question in eight asks for a thing that nobody has.",
)
class OwnersOrNobody(Owners):
    """The same, with questions that the passage does not answer."""

    nobody = True

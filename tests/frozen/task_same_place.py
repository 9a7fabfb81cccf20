"""Same place: do two sentences tell of one place?"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from harness.registry import register_task
from harness.task import Row, Split, Task

SIZES = {"train": 160, "dev": 40, "test": 40}
PLACES = {"garden": "yard", "kitchen": "galley", "cellar": "basement", "attic": "loft"}
PERSONS = ("Ann", "Ben", "Cleo", "Dan")


@register_task(
    "frozen_same_place",
    name="Same place",
    type="match",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 160, "dev": 40, "test": 40},
    epochs=8,
    protocol="Pairs of sentences; the second one names the place by another word.",
)
class SamePlace(Task):
    """Pairs of sentences, as many of one place as of two."""

    inputs = ("text",)

    def mini(self, split: Split) -> Iterable[Row]:
        random = Random(f"same place {split}")
        for number in range(SIZES[split]):
            person, (place, other) = random.choice(PERSONS), random.sample(tuple(PLACES), 2)
            label = ("other", "same")[number % 2]
            second = PLACES[place if label == "same" else other]
            yield {
                "id": f"{split}-{number}",
                "first": f"{person} walked to the {place}.",
                "second": f"now {person} is in the {second}",
                "label": label,
            }

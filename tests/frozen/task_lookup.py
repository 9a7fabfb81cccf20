"""Lookup: which of four sentences answers a question?"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from harness.registry import register_task
from harness.task import Row, Split, Task

QUESTIONS = {"train": 40, "dev": 15, "test": 15}
THINGS = ("lamp", "key", "letter", "apple", "ball", "coat")
PLACES = ("table", "shelf", "stairs", "bench")


@register_task(
    "frozen_lookup",
    name="Lookup",
    type="rank",
    metrics=("map", "mrr"),
    main_metric="map",
    sizes={"train": 160, "dev": 60, "test": 60},
    epochs=8,
    protocol="Four candidates for each question, one of them right.",
)
class Lookup(Task):
    """Questions about things; a candidate is right when it tells of the thing that is asked for."""

    inputs = ("text",)

    def mini(self, split: Split) -> Iterable[Row]:
        random = Random(f"lookup {split}")
        for question in range(QUESTIONS[split]):
            things, right = random.sample(THINGS, 4), random.randrange(4)
            for number, thing in enumerate(things):
                yield {
                    "id": f"{split}-{question}-{number}",
                    "first": f"where is the {things[right]} ?",
                    "second": f"the {thing} is on the {random.choice(PLACES)}",
                    "label": str(int(number == right)),
                    "group": f"{split}-{question}",
                }

"""Names: persons and places that share their names."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from harness.registry import register_task
from harness.task import Row, Split, Task

SIZES = {"train": 120, "dev": 40, "test": 40}
NAMES = ("Jordan", "Florence", "Chelsea", "Austin", "Paris")
BEFORE = {"PER": ("Mr", "Dr"), "LOC": ("in", "near")}


@register_task(
    "frozen_names",
    name="Names",
    type="tag",
    metrics=("span_f1", "token_accuracy"),
    main_metric="span_f1",
    sizes={"train": 120, "dev": 40, "test": 40},
    epochs=8,
    protocol="Labels in BIO; the word before a name tells its type.",
)
class Names(Task):
    """Sentences of a person in a place; a name has one word or two."""

    inputs = ("text",)

    def mini(self, split: Split) -> Iterable[Row]:
        random = Random(f"names {split}")
        for number in range(SIZES[split]):
            words, tags = [], []
            for type in random.sample(("PER", "LOC"), 2):
                name = random.sample(NAMES, random.choice((1, 2)))
                words += [random.choice(BEFORE[type]), *name, "stayed"]
                tags += ["O", f"B-{type}", *[f"I-{type}"] * (len(name) - 1), "O"]
            yield {"id": f"{split}-{number}", "text": words, "tags": tags}

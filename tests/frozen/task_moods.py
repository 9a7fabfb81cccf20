"""Moods: short reviews, good or bad, with their trees."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from harness.registry import register_task
from harness.task import DataError, Hub, Row, Split, Task

SIZES = {"train": 120, "dev": 40, "test": 40}
WORDS = {"negative": ("dull", "weak", "sad", "flat"), "positive": ("warm", "bright", "fine", "witty")}
THINGS = ("film", "plot", "song", "scene", "cast")
OPPOSITE = {"negative": "positive", "positive": "negative"}
NODE = {"negative": 1, "positive": 3}


@register_task(
    "frozen_moods",
    name="Moods",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 120, "dev": 40, "test": 40},
    epochs=8,
    protocol="Short reviews; one in five is turned round by the word not.",
    version=2,
)
class Moods(Task):
    """Reviews of a few words; their trees have a label at each node."""

    inputs = ("text", "tree")
    hub = Hub("nobody/moods", "0123456789abcdef", config="short", splits=(("train", "train"), ("test", "test")))

    def mini(self, split: Split) -> Iterable[Row]:
        random = Random(f"moods {split}")
        for number in range(SIZES[split]):
            label = ("negative", "positive")[number % 2]
            turned = number % 5 == 0
            word = random.choice(WORDS[OPPOSITE[label] if turned else label])
            words = ["the", random.choice(THINGS), "is", *["very"] * random.randrange(3), *["not"] * turned, word]
            row = {"id": f"{split}-{number}", "text": " ".join(words), "label": label}
            yield row | {"tree": tree(words, NODE[OPPOSITE[label] if turned else label])}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        path = folder / "moods" / f"{split}.tsv"
        if not path.is_file():
            raise DataError(f"{path}: no such file; expected lines of a label, a tab and a text")
        with path.open(encoding="utf-8") as file:
            for number, fields in enumerate(csv.reader(file, delimiter="\t"), start=1):
                if len(fields) != 2 or fields[0] not in WORDS:
                    raise DataError(f"{path}, line {number}: {fields}; expected negative or positive, a tab, a text")
                yield {"id": f"{split}-{number}", "text": fields[1], "label": fields[0]}

    def from_hub(self, rows: Any, split: Split) -> Iterable[Row]:
        for number, row in enumerate(rows):
            yield {"id": f"{split}-{number}", "text": row["sentence"].split(), "label": row["mood"]}


def tree(words: list[str], last: int) -> str:
    """Penn brackets of a tree that branches to the right, ``last`` the label of its last word."""
    label, brackets = last, f"({last} {words[-1]})"
    for word in reversed(words[:-1]):
        label = 4 - label if word == "not" else label
        brackets = f"({label} (2 {word}) {brackets})"
    return brackets

"""My task: one sentence on what it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

from harness.errors import DataError
from harness.registry import register_task
from harness.task import Row, Split, Task
from tasks.readers.delimited import tab_separated
from tasks.readers.lines import find

SIZES = {"train": 200, "dev": 50, "test": 50}
"""Rows of the generated corpus."""
LABELS = {"negative": ("dull", "weak", "flat"), "positive": ("warm", "bright", "witty")}
THINGS, SORTS = ("plot", "cast", "music", "end", "title"), ("long", "old", "French", "silent", "first")
OPPOSITE = {"negative": "positive", "positive": "negative"}


@register_task(
    "my_task",
    name="My task",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, what was left out, and what a text is.",
)
class MyTask(Task):
    """Texts with one of two labels.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Made so that counting words is not enough: one text in five is turned round by "not"."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            label, turned = tuple(LABELS)[number % 2], number % 5 == 0
            word = random.choice(LABELS[OPPOSITE[label] if turned else label])
            thing, sort = random.choice(THINGS), random.choice(SORTS)
            words = [
                "the",
                thing,
                "of",
                "this",
                sort,
                "film",
                "is",
                *["not"] * turned,
                random.choice(("very", "rather", "so")),
                word,
            ]
            yield {"id": f"{split}-{number}", "text": " ".join(words), "label": label}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.tsv``: a header, then a label and a text a line."""
        path = find(folder / "my_task", f"{split}.tsv")
        for line, fields in tab_separated(path, ("label", "text")):
            if fields["label"] not in LABELS:
                raise DataError(f"{path}, line {line}: label {fields['label']!r:.80}, expected {' or '.join(LABELS)}")
            yield {"id": f"{split}-{line}", **fields}

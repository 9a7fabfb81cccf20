"""My task: one sentence on what it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

from harness.errors import DataError
from harness.registry import register_task
from harness.task import Row, Split, Task
from tasks.readers.conll import sentences
from tasks.readers.lines import find

SIZES = {"train": 200, "dev": 50, "test": 50}
"""Rows of the generated corpus."""
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
NAMES = ("Jordan", "Florence", "Chelsea", "Austin", "Paris")
BEFORE = {"PER": ("Mr", "Dr"), "LOC": ("in", "near")}


@register_task(
    "my_task",
    name="My task",
    type="tag",
    metrics=("span_f1", "token_accuracy"),
    main_metric="span_f1",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, and how tags mark spans (here: B- begins one, I- goes on).",
)
class MyTask(Task):
    """Sentences with a tag for each word.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Made so that a name alone is not enough: the word before it tells a person from a
        place."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            words, tags = [], []
            for type in random.sample(tuple(BEFORE), 2):
                name = random.sample(NAMES, random.choice((1, 2)))
                words += [random.choice(BEFORE[type]), *name, "stayed"]
                tags += ["O", f"B-{type}", *[f"I-{type}"] * (len(name) - 1), "O"]
            yield {"id": f"{split}-{number}", "text": words, "tags": tags}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Sentences of ``<split>.txt``: a word, a blank and a tag a line, an empty line
        between two sentences."""
        path = find(folder / "my_task", f"{split}.txt")
        for sentence in sentences(path, columns=2):
            for line, (_, tag) in sentence:
                if tag not in TAGS:
                    raise DataError(f"{path}, line {line}: tag {tag!r:.80}, expected one of {', '.join(TAGS)}")
            words, tags = zip(*(fields for _, fields in sentence), strict=True)
            yield {"id": f"{split}-{sentence[0][0]}", "text": list(words), "tags": list(tags)}

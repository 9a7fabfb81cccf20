"""My task: one sentence on what it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

from harness.errors import DataError
from harness.registry import register_task
from harness.task import Row, Split, Task
from tasks.readers.lines import find, lines

SIZES = {"train": 200, "dev": 50, "test": 50}
"""Rows of the generated corpus."""
SUBJECTS = {"the dog": "barks", "the dogs": "bark", "the cat": "purrs", "the cats": "purr"}
PLACES = ("at home", "on the hill", "by the old mill")


@register_task(
    "my_task",
    name="My task",
    type="text",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, what was left out, and what the scores are.",
)
class MyTask(Task):
    """Plain texts, from which vectors of words are learnt.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Made so that the words around a word foretell it: a verb agrees with its subject."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            subjects = random.sample(tuple(SUBJECTS), 3)
            parts = [f"{subject} {random.choice(PLACES)} {SUBJECTS[subject]}" for subject in subjects]
            yield {"id": f"{split}-{number}", "text": " , ".join(parts)}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.txt``: a text a line."""
        path = find(folder / "my_task", f"{split}.txt")
        for number, line in lines(path):
            if not line.strip():
                raise DataError(f"{path}, line {number}: empty, expected a text")
            yield {"id": f"{split}-{number}", "text": line}

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
WORTH = {"awful": -2, "weak": -1, "fair": 0, "good": 1, "great": 2}


@register_task(
    "my_task",
    name="My task",
    type="regress",
    metrics=("pearson", "spearman", "mse"),
    main_metric="pearson",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, what was left out, and what the scores are.",
)
class MyTask(Task):
    """Texts with a number each.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Made so that one word is not enough: the score is the sum of what two words are worth."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            first, second = random.choices(tuple(WORTH), k=2)
            parts = random.sample(("plot", "cast", "music", "sound", "light", "end"), 2)
            text = f"on day {random.randrange(1, 29)} the {parts[0]} is {first} and the {parts[1]} is {second}"
            yield {"id": f"{split}-{number}", "text": text, "score": float(WORTH[first] + WORTH[second])}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.tsv``: a header, then a score and a text a line."""
        path = find(folder / "my_task", f"{split}.tsv")
        for line, fields in tab_separated(path, ("score", "text")):
            try:
                score = float(fields["score"])
            except ValueError:
                raise DataError(f"{path}, line {line}: score {fields['score']!r:.80}, expected a number") from None
            yield {"id": f"{split}-{line}", "text": fields["text"], "score": score}

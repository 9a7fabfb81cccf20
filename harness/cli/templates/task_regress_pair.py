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
WORDS = ("red", "green", "blue", "white", "black", "brown")


@register_task(
    "my_task",
    name="My task",
    type="regress_pair",
    metrics=("pearson", "spearman", "mse"),
    main_metric="pearson",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, what was left out, and what the scores are.",
)
class MyTask(Task):
    """Pairs of texts with a number each.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Made so that one text is not enough: the score counts the words that both have."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            first = random.sample(WORDS, 3)
            common = number % 4
            second = first[:common] + random.sample([word for word in WORDS if word not in first], 3 - common)
            random.shuffle(second)
            texts = {"first": " ".join(first), "second": " ".join(second)}
            yield {"id": f"{split}-{number}", **texts, "score": float(common)}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.tsv``: a header, then a score and two texts a line."""
        path = find(folder / "my_task", f"{split}.tsv")
        for line, fields in tab_separated(path, ("score", "first", "second")):
            try:
                score = float(fields["score"])
            except ValueError:
                raise DataError(f"{path}, line {line}: score {fields['score']!r:.80}, expected a number") from None
            yield {"id": f"{split}-{line}", "first": fields["first"], "second": fields["second"], "score": score}

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
LABELS = ("sound", "picture", "price")
WORDS = {"sound": ("noise", "voice"), "picture": ("colour", "screen"), "price": ("cost", "bill")}


@register_task(
    "my_task",
    name="My task",
    type="multilabel",
    metrics=("micro_f1", "macro_f1", "precision_at_1"),
    main_metric="micro_f1",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, what was left out, and what the scores are.",
)
class MyTask(Task):
    """Texts with any number of labels each.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Made so that one word is not enough: the label is of what is bad, not of what is good."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            bad = random.sample(LABELS, random.randint(1, 2))
            parts = [f"{'bad' if label in bad else 'good'} {random.choice(WORDS[label])}" for label in LABELS]
            text = f"on day {random.randrange(1, 29)} {', '.join(random.sample(parts, 3))}"
            yield {"id": f"{split}-{number}", "text": text, "labels": sorted(bad)}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.tsv``: a header, then labels (parted by blanks) and a text a line."""
        path = find(folder / "my_task", f"{split}.tsv")
        for line, fields in tab_separated(path, ("labels", "text")):
            labels = fields["labels"].split()
            if strange := set(labels) - set(LABELS):
                raise DataError(f"{path}, line {line}: label {min(strange)!r:.80}, expected {', '.join(LABELS)}")
            yield {"id": f"{split}-{line}", "text": fields["text"], "labels": sorted(set(labels))}

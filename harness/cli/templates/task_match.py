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
LABELS = ("same", "other")
PLACES = {"garden": "yard", "cellar": "basement", "attic": "loft", "hall": "lobby"}


@register_task(
    "my_task",
    name="My task",
    type="match",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, what was left out, and what a pair is.",
)
class MyTask(Task):
    """Pairs of texts that say the same or something else.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Made so that common words are not enough: the second text has another word for the
        place."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            label = LABELS[number % 2]
            person, day = random.choice(("Ann", "Ben", "Cleo", "Dan")), random.choice(range(1, 29))
            place, other = random.sample(tuple(PLACES), 2)
            second = PLACES[place if label == "same" else other]
            texts = {"first": f"on day {day} {person} went to the {place}", "second": f"{person} is in the {second}"}
            yield {"id": f"{split}-{number}", **texts, "label": label}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.tsv``: a header, then a label and two texts a line."""
        path = find(folder / "my_task", f"{split}.tsv")
        for line, fields in tab_separated(path, ("label", "first", "second")):
            if fields["label"] not in LABELS:
                raise DataError(f"{path}, line {line}: label {fields['label']!r:.80}, expected {' or '.join(LABELS)}")
            yield {"id": f"{split}-{line}", **fields}

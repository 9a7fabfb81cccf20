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

SIZES = {"train": 200, "dev": 60, "test": 60}
"""Rows of the generated corpus."""
CANDIDATES = 4
COLOURS = ("red", "green", "blue", "white", "black")


@register_task(
    "my_task",
    name="My task",
    type="rank",
    metrics=("map", "mrr"),
    main_metric="map",
    sizes={"train": 200, "dev": 60, "test": 60},
    epochs=10,
    protocol="Say here how the splits were made, and which questions were left out.",
)
class MyTask(Task):
    """Questions (``first``), each with candidates (``second``); label "1" marks a right one.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Every candidate names a thing and a colour; the right one is of the thing asked for."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            group, place = divmod(number, CANDIDATES)
            if place == 0:
                things, right = (
                    random.sample(("car", "door", "hat", "cup", "bag"), CANDIDATES),
                    random.randrange(CANDIDATES),
                )
            texts = {
                "first": f"what colour is the {things[right]}",
                "second": f"the {things[place]} is {random.choice(COLOURS)}",
            }
            yield {"id": f"{split}-{number}", **texts, "label": str(int(place == right)), "group": f"{split}-{group}"}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.tsv``: a header, then the question's name, question, candidate
        and 1 or 0 a line."""
        path = find(folder / "my_task", f"{split}.tsv")
        for line, fields in tab_separated(path, ("group", "first", "second", "label")):
            if fields["label"] not in ("0", "1"):
                raise DataError(f"{path}, line {line}: label {fields['label']!r:.80}, expected 0 or 1")
            yield {"id": f"{split}-{line}", **fields}

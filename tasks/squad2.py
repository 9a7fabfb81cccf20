"""SQuAD 2.0: answer a question from a passage, or say that the passage has no answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError
from harness.registry import register_task
from harness.task import Hub, Row, Split, Task
from tasks.mini import reading
from tasks.readers.lines import find, present
from tasks.readers.squad import questions
from tasks.squad1 import held_out, hub_rows

if TYPE_CHECKING:
    import datasets


@register_task(
    "squad2",
    name="SQuAD 2.0",
    type="extract",
    version=2,
    metrics=("exact_match", "f1", "exact_match_answerable", "f1_answerable", "no_answer_accuracy"),
    main_metric="f1",
    sizes={"train": 117288, "dev": 13031, "test": 11873},
    budgets="squad1",
    # as on SQuAD 1.1.
    dropout=0.1,
    protocol=(
        "Hub, and local with train-v2.0.json and dev-v2.0.json: the official dev set is our test (the official test set"
        " is hidden) and dev is whole paragraphs with up to 10 % of the 130,319 training questions, chosen by hash."
        " Local with dev-v2.0_half.json alone: NOT the official split; its 16 articles are divided by the SHA-256 of"
        " their titles, a quarter for test, an eighth for dev, the rest for train, so all splits are partial and the"
        " scores stand beside no published ones."
    ),
)
class Squad2(Task):
    """Questions on Wikipedia paragraphs, about half of dev and a third of train without an answer
    (Rajpurkar et al. 2018)."""

    hub = Hub(
        "rajpurkar/squad_v2",
        "3ffb306f725f7d2ce8394bc1873b24868140c412",
        config="squad_v2",
        splits=(("train", "train"), ("dev", "train"), ("test", "validation")),
    )

    def mini(self, split: Split) -> Iterable[Row]:
        return reading.rows(split, unanswerable=True)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        folder = folder / "squad"
        half = present(folder, "dev-v2.0_half.json")
        if half and not present(folder, "train-v2.0.json"):
            return _half_by_article(half, split)
        if split == "test":
            return (question.row for question in questions(find(folder, "dev-v2.0.json")))
        return held_out((question.row for question in questions(find(folder, "train-v2.0.json"))), split)

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        mapped = hub_rows(self.hub, rows, unanswerable=True)
        return mapped if split == "test" else held_out(mapped, split)


def _half_by_article(path: Path, split: Split) -> list[Row]:
    found = list(questions(path))
    titles = sorted(
        {question.row["article"] for question in found}, key=lambda title: hashlib.sha256(title.encode()).digest()
    )
    test, dev = len(titles) // 4, len(titles) // 8
    if not dev:
        raise DataError(
            f"{path}: {len(titles)} articles are too few to be divided into train, dev and test; expected 16"
        )
    chosen = {"test": titles[:test], "dev": titles[test : test + dev], "train": titles[test + dev :]}[split]
    return [question.row for question in found if question.row["article"] in chosen]

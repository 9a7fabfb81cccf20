"""A plugin with a generated corpus whose labels reach most words by texts without labels alone.

Each of two classes has words that labelled texts show and words that they do not; texts without
labels have both sorts side by side. Dev and test ask for texts with words of the second sort alone,
of which labelled texts say nothing: who learns from these alone answers by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from datasets import Dataset

from harness.data.corpus import chosen
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Task

LABELS = 32
"""Texts that keep their labels, by ``--labels``."""
TEXTS: dict[Split, int] = {"train": 600, "dev": 200, "test": 400}
CLASSES = ("day", "night")
NEUTRAL = [f"of{number}" for number in range(30)]


def words_of(label: str, shown: bool) -> list[str]:
    """The words of a class that labelled texts show, or those that they do not."""
    return [f"{label}{number}" for number in (range(6) if shown else range(6, 30))]


def text(label: str, shown: int, hidden: int, random: Random) -> str:
    """A text of eight words, so many of them of each sort of a class's words, in any order."""
    words = random.sample(words_of(label, True), shown) + random.sample(words_of(label, False), hidden)
    words += random.sample(NEUTRAL, 8 - len(words))
    return " ".join(random.sample(words, len(words)))


def rows(split: Split) -> Iterator[Row]:
    """The rows of a split; those of training whose labels are kept show the words of one sort
    alone."""
    random = Random(f"spreading {split}")
    labels = [CLASSES[number % 2] for number in range(TEXTS[split])]
    kept = chosen(Dataset.from_dict({"label": labels}), LABELS, 0, "label") if split == "train" else ()
    for number, label in enumerate(labels):
        shown, hidden = (2, 2) if split == "train" else (0, 3)
        if number in kept:
            shown, hidden = 3, 0
        yield {"id": f"{split}-{number}", "text": text(label, shown, hidden, random), "label": label}


@register_task(
    "spreading_labels",
    name="Words beside those of labelled texts",
    type="classify",
    metrics=("accuracy",),
    main_metric="accuracy",
    sizes={"train": 600, "dev": 200, "test": 400},
    budgets={"full": Budget(20, min_steps=600, batch_size=16, reason="until guessed labels change no more")},
    protocol="Generated; dev and test ask for words that no labelled text has.",
)
class SpreadingLabels(Task):
    """Two kinds of texts."""

    def mini(self, split: Split) -> Iterable[Row]:
        return rows(split)

"""IMDB: is a long film review positive or negative."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import reviews
from tasks.readers import hub
from tasks.readers.holdout import hold_out
from tasks.readers.tarred import files_in

if TYPE_CHECKING:
    import datasets

LABELS = {"neg": "negative", "pos": "positive"}
"""Name of each class by that of its folder."""
_ARCHIVES = ("aclImdb_v1.tar.gz", "aclImdb_labelled.tar.gz")


@register_task(
    "imdb",
    name="IMDB",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 22500, "dev": 2500, "test": 25000},
    budgets={
        "small": Budget(
            4,
            examples=1000,
            min_steps=250,
            batch_size=16,
            reason="reviews are five times as long as AG News's items: fewer of them and fewer steps",
        ),
        "full": Budget(
            2,
            min_steps=1400,
            batch_size=32,
            reason="two passes are 1,400 steps, in which as many words are read as in 7,000 steps on AG News",
        ),
    },
    # as on AG News; not measured.
    dropout=0.1,
    mini_needs_order=True,
    protocol=(
        "The 25,000 labelled training reviews and the 25,000 of the official test (Maas et al. 2011); the unlabelled"
        " ones are not read. The line break <br /> is a blank. There is no official dev set: 10 % of the training"
        " reviews, chosen by the SHA-256 of their text, are held out as dev and not trained on, so train is 22,500. No"
        " film has reviews in both train and test, but one may in train and dev. A review of 230 words on average is"
        " cut where an architecture's view cuts it (max_length of the view, which stands in the record)."
    ),
)
class Imdb(Task):
    """Reviews with at most 4 or at least 7 of 10 stars, as many of both (Maas et al. 2011)."""

    hub = Hub(
        "stanfordnlp/imdb",
        "e6281661ce1c48d982bc483cf8a173c1bbeb5d31",
        config="plain_text",
        splits=(("train", "train"), ("dev", "train"), ("test", "test")),
    )

    def mini(self, split: Split) -> Iterable[Row]:
        return reviews.rows(split, "film", stars=False)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows in the order of their ids, since archives differ in theirs."""
        archives = [folder / "imdb" / name for name in _ARCHIVES]
        path = next((archive for archive in archives if archive.is_file()), archives[0])
        part = "test" if split == "test" else "train"
        rows = [
            _row(f"{part}-{name.parent.name}-{name.stem}", text, name.parent.name)
            for name, text in files_in(path, f"aclImdb/{part}/*/*.txt")
            if name.parent.name in LABELS
        ]
        return _part(sorted(rows, key=lambda row: row["id"]), split)

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        names = hub.class_names(self.hub, rows, "label", LABELS)
        hub.require_columns(self.hub, rows, "text")
        part = "test" if split == "test" else "train"
        found = [_row(f"{part}-{number}", row["text"], names[row["label"]]) for number, row in enumerate(rows, 1)]
        return _part(found, split)


def _row(id: str, text: str, folder: str) -> Row:
    return {"id": id, "text": " ".join(text.replace("<br />", " ").split()), "label": LABELS[folder]}


def _part(rows: list[Row], split: Split) -> list[Row]:
    if split == "test":
        return rows
    train, dev = hold_out(rows, share=0.1, group=lambda row: row["text"])
    return train if split == "train" else dev

"""Reuters-21578: which of ninety topics has a news item, one or several."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Task
from tasks.mini import wire
from tasks.readers.holdout import hold_out
from tasks.readers.reuters import documents

_PARTS = ("TRAIN", "TEST")


@register_task(
    "reuters21578",
    name="Reuters-21578",
    type="multilabel",
    metrics=("micro_f1", "macro_f1", "precision_at_1", "precision_at_3", "precision_at_5"),
    main_metric="micro_f1",
    sizes={"train": 6993, "dev": 777, "test": 3019},
    budgets={
        "small": Budget(
            4,
            examples=1500,
            min_steps=750,
            batch_size=8,
            reason="as for Ohsumed: from fewer long texts the rarer topics are not learnt",
        ),
        "full": Budget(
            8,
            min_steps=1700,
            batch_size=32,
            reason="eight passes over 6,993 items are 1,750 steps; many topics have only a few items",
        ),
    },
    # as on AG News; not measured.
    dropout=0.1,
    protocol=(
        "ModApte with ninety topics: the items that indexers looked at (TOPICS=YES), train and test as LEWISSPLIT says,"
        " the topics that have an item in both, and the items that have one of these: 7,770 and 3,019. There is no"
        " official dev set: 10 % of the training items, chosen by the SHA-256 of their text, are held out as dev and"
        " not trained on; a topic whose only item is among them is an error of every system. The text is title,"
        " author, dateline and body. A topic is said when its probability is above 0.5; this threshold is not tuned. F1"
        " is over the topics that occur in the answers or in the predictions. P@k divides by k whatever the number of"
        " topics, of which an item has 1.2 on average. The only sources on the hub are scripts, which are not run:"
        " there is no tier hub."
    ),
)
class Reuters21578(Task):
    """Items of the news wire of 1987, on few topics often and on many seldom (Lewis 1997)."""

    def mini(self, split: Split) -> Iterable[Row]:
        return wire.rows(split)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        found = [each for each in documents(folder / "reuters21578" / "reuters21578.tar.gz") if each.indexed]
        topics = {part: {topic for each in found if each.part == part for topic in each.topics} for part in _PARTS}
        kept = set.intersection(*topics.values())
        part = "TEST" if split == "test" else "TRAIN"
        rows: list[Row] = [
            {"id": each.id, "text": each.text, "labels": sorted(kept & {*each.topics})}
            for each in found
            if each.part == part and kept & {*each.topics}
        ]
        if split == "test":
            return rows
        train, dev = hold_out(rows, share=0.1, group=lambda row: row["text"])
        return train if split == "train" else dev

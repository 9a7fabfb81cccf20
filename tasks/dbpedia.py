"""DBpedia: what sort of thing is an article of Wikipedia about."""

from __future__ import annotations

from collections.abc import Iterable

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split
from tasks.mini import entities
from tasks.readers.zhang import Zhang2015


@register_task(
    "dbpedia",
    name="DBpedia",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 548800, "dev": 11200, "test": 70000},
    budgets={
        "small": Budget(
            4,
            examples=2000,
            min_steps=500,
            batch_size=16,
            reason="texts are as long as AG News's, and fourteen classes want more of them than four",
        ),
        "full": Budget(
            1,
            batch_size=128,
            reason="one pass over 548,800 texts is 4,288 steps of large batches: it wants a GPU",
        ),
    },
    # as on AG News; not measured.
    dropout=0.1,
    protocol=(
        "Title and first paragraph joined by a blank. There is no official dev set: 2 % of the training texts, chosen"
        " by the SHA-256 of their text, are held out as dev and not trained on, so train is 548,800 of the official"
        " 560,000."
    ),
)
class Dbpedia(Zhang2015):
    """Articles of fourteen disjoint classes of DBpedia's ontology (Zhang et al. 2015)."""

    folder = "dbpedia_csv"
    labels = entities.LABELS
    hub = Hub(
        "fancyzhx/dbpedia_14",
        "9abd46cf7fc8b4c64290f26993c540b92aa145ac",
        config="dbpedia_14",
        splits=(("train", "train"), ("dev", "train"), ("test", "test")),
    )

    def mini(self, split: Split) -> Iterable[Row]:
        return entities.rows(split)

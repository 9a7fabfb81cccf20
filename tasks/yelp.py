"""Yelp: is a review of a business positive, or how many stars does it give."""

from __future__ import annotations

from collections.abc import Iterable

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split
from tasks.mini import reviews
from tasks.readers.zhang import Zhang2015

_SPLITS: tuple[tuple[Split, str], ...] = (("train", "train"), ("dev", "train"), ("test", "test"))


@register_task(
    "yelp2",
    name="Yelp-2",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 548800, "dev": 11200, "test": 38000},
    budgets={
        "small": Budget(
            4,
            examples=1500,
            min_steps=375,
            batch_size=16,
            reason="as for AG News, though reviews are three times as long: a cell takes longer",
        ),
        "full": Budget(
            1,
            batch_size=128,
            reason="one pass over half a million to 3.6 million reviews, in large batches: it wants a GPU",
        ),
    },
    # as on AG News; not measured.
    dropout=0.1,
    mini_needs_order=True,
    protocol=(
        "Reviews with stars 1 and 2 (negative) against 3 and 4 (positive), as the authors of the collection put it."
        r" Line breaks, which the files write as \n, are blanks. There is no official dev set: 2 % of the training"
        " reviews, chosen by the SHA-256 of their text, are held out as dev and not trained on, so train is 548,800"
        " of the official 560,000. A long review is cut where an architecture's view cuts it (max_length of the view,"
        " which stands in the record)."
    ),
)
class Yelp2(Zhang2015):
    """Reviews of the Yelp challenge of 2015 in two classes (Zhang et al. 2015)."""

    folder = "yelp_review_polarity_csv"
    labels = ("negative", "positive")
    names_on_hub = ("1", "2")
    texts = ("text",)
    hub = Hub("fancyzhx/yelp_polarity", "bbf1c97a1f0cf005e5aded43839fd814654a1557", config="plain_text", splits=_SPLITS)

    def mini(self, split: Split) -> Iterable[Row]:
        return reviews.rows(split, "restaurant", stars=False)


@register_task(
    "yelp5",
    name="Yelp-5",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 637000, "dev": 13000, "test": 50000},
    budgets="yelp2",
    # as on Yelp-2.
    dropout=0.1,
    mini_needs_order=True,
    protocol=(
        r"One to five stars. Line breaks, which the files write as \n, are blanks. There is no official dev set: 2 %"
        " of the training reviews, chosen by the SHA-256 of their text, are held out as dev and not trained on, so"
        " train is 637,000 of the official 650,000. A long review is cut as on Yelp-2."
    ),
)
class Yelp5(Zhang2015):
    """Reviews of the Yelp challenge of 2015 with their stars (Zhang et al. 2015)."""

    folder = "yelp_review_full_csv"
    labels = reviews.STARS
    names_on_hub = ("1 star", "2 star", "3 stars", "4 stars", "5 stars")
    texts = ("text",)
    hub = Hub(
        "Yelp/yelp_review_full",
        "c1f9ee939b7d05667af864ee1cb066393154bf85",
        config="yelp_review_full",
        splits=_SPLITS,
    )

    def mini(self, split: Split) -> Iterable[Row]:
        return reviews.rows(split, "restaurant", stars=True)

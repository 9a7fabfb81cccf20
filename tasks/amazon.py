"""Amazon: is a review of a product positive, or how many stars does it give."""

from __future__ import annotations

from collections.abc import Iterable

from harness.registry import register_task
from harness.task import Hub, Row, Split
from tasks.mini import reviews
from tasks.readers.zhang import Zhang2015


@register_task(
    "amazon2",
    name="Amazon-2",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 3582000, "dev": 18000, "test": 400000},
    budgets="yelp2",
    # as on Yelp-2.
    dropout=0.1,
    mini_needs_order=True,
    protocol=(
        "Reviews of one and two stars (negative) against four and five (positive), title and text joined by a blank."
        r" Line breaks, which the files write as \n, are blanks. There is no official dev set: 0.5 % of the training"
        " reviews, chosen by the SHA-256 of their text, are held out as dev and not trained on, so train is 3,582,000"
        " of the official 3,600,000. A long review is cut where an architecture's view cuts it (max_length of the"
        " view, which stands in the record)."
    ),
)
class Amazon2(Zhang2015):
    """Reviews of 18 years in two classes (Zhang et al. 2015, from McAuley & Leskovec 2013)."""

    folder = "amazon_review_polarity_csv"
    labels = ("negative", "positive")
    held_out = 0.005
    hub = Hub(
        "fancyzhx/amazon_polarity",
        "9d9c45c18f8c3cf1b23a3c27917b60cbf28f3289",
        config="amazon_polarity",
        splits=(("train", "train"), ("dev", "train"), ("test", "test")),
    )

    def mini(self, split: Split) -> Iterable[Row]:
        return reviews.rows(split, "product", stars=False)


@register_task(
    "amazon5",
    name="Amazon-5",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 2985000, "dev": 15000, "test": 650000},
    budgets="yelp2",
    # as on Yelp-2.
    dropout=0.1,
    mini_needs_order=True,
    protocol=(
        "One to five stars, title and text joined by a blank; line breaks, dev (0.5 %) and cuts as on Amazon-2, so"
        " train is 2,985,000 of the official 3,000,000. No copy on the hub is known whose revision could be pinned,"
        " so there is no tier hub."
    ),
)
class Amazon5(Zhang2015):
    """Reviews of 18 years with their stars (Zhang et al. 2015, from McAuley & Leskovec 2013)."""

    folder = "amazon_review_full_csv"
    labels = reviews.STARS
    held_out = 0.005

    def mini(self, split: Split) -> Iterable[Row]:
        return reviews.rows(split, "product", stars=True)

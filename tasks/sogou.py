"""Sogou News: the section of a Chinese news article, written in Pinyin."""

from __future__ import annotations

from collections.abc import Iterable

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split
from tasks.mini import pinyin
from tasks.readers.zhang import Zhang2015


@register_task(
    "sogou",
    name="Sogou News",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 441000, "dev": 9000, "test": 60000},
    budgets={
        "small": Budget(
            4,
            examples=1000,
            min_steps=250,
            batch_size=16,
            reason="as for IMDB: articles are longer than most views read, so fewer of them",
        ),
        "full": Budget(
            1,
            batch_size=128,
            reason="one pass over 441,000 long texts is 3,446 steps of large batches: it wants a GPU",
        ),
    },
    # as on AG News; not measured.
    dropout=0.1,
    protocol=(
        "Title and article joined by a blank; words are syllables in Pinyin with the number of their tone. Line"
        r" breaks, which the files write as \n, are blanks. There is no official dev set: 2 % of the training"
        " articles, chosen by the SHA-256 of their text, are held out as dev and not trained on, so train is 441,000"
        " of the official 450,000. A long article is cut where an architecture's view cuts it (max_length of the"
        " view, which stands in the record). No copy on the hub is known whose revision could be pinned, so there is"
        " no tier hub."
    ),
)
class Sogou(Zhang2015):
    """Articles of five sections of the news corpora SogouCA and SogouCS (Zhang et al. 2015)."""

    folder = "sogou_news_csv"
    labels = pinyin.LABELS

    def mini(self, split: Split) -> Iterable[Row]:
        return pinyin.rows(split)

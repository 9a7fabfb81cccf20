"""Plain text of one domain: equal amounts of news and of anything but news."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.registry import TaskEntry, register_task
from harness.settings import Budget
from harness.task import Row, Split, Tier
from harness.views.base import words_of
from tasks import text_mix
from tasks.text_mix import TextMix

NEWS = ("ag_news", "reuters21578", "conll2003_ner", "conll2000_chunk")
"""The sources of the text mix that are newswire: of AG, of Reuters and of the Wall Street
Journal."""
MEDICINE = ("ohsumed",)
SOURCES = {
    "general_text": tuple(id for id in text_mix.SOURCES if id not in (*NEWS, *MEDICINE)),
    "news_text": NEWS,
}
WORDS: Mapping[Tier, int] = {"mini": 33_000, "local": 3_700_000}
"""Words of train at most: a little less than there are of news."""
DIGESTS: Mapping[str, Mapping[str, str]] = {
    "general_text": {
        "train": "59312a99d50073feb08e4e9710218e883a9038a9ca2b5298c474ec07bf3aed7b",
        "dev": "f69c37f7b7a963aff128312a374f49360b8c1ef0a525d3ca82b81e3007f74fc5",
        "test": "21c7bd491255462482298c60be06fc5ace07503d7accedd8d6d446421c6853d2",
    },
    "news_text": {
        "train": "9e17b05ef056b0c28a2c2df80acf5ab98912c03f9489915c9a9718ae1fc7769d",
        "dev": "c82a379d783f99bc3365c6609f8b2d5a9228ad8522f861bbdfbb7e9c24790f2e",
        "test": "d7a9964b4f4fa903adc69d02439b0bac37a48da669c5bf1884f21cedbd805319",
    },
}
"""Fingerprints of the rows of tier local as they were when the version was given."""


def cut(rows: Iterable[Row], words: int) -> list[Row]:
    """Rows in an order that says nothing of their source, as many as have so many words
    together."""
    mixed = sorted(rows, key=lambda row: hashlib.sha256(f"text_by_domain {row['text']}".encode()).digest())
    read = itertools.accumulate(len(words_of(row["text"])) for row in mixed)
    return [row for row, so_far in zip(mixed, read, strict=True) if so_far <= words]


@register_task(
    "news_text",
    name="News text",
    type="text",
    part_of="text_mix",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 76638, "dev": 842, "test": 843},
    budgets={
        "small": Budget(1, examples=7700, reason="a tenth of the texts, some 370,000 words; not measured"),
        "full": Budget(5, reason="all texts; a recipe has passes of its own"),
    },
    protocol=(
        "The newswire among the sources of text_mix: AG News 61.7 %, Reuters-21578 27.1 %, CoNLL-2003 5.7 %, CoNLL-2000"
        " 5.5 % of the words. Rows are made, held out, scored and kept apart from dev and test of the registered tasks"
        " as those of text_mix are. Train is cut to 3.7 million words, as many as general_text has, of 3.73 million:"
        " the texts whose SHA-256 is lowest."
    ),
)
@register_task(
    "general_text",
    name="General text",
    type="text",
    part_of="text_mix",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 63328, "dev": 2411, "test": 2411},
    budgets={
        "small": Budget(1, examples=6363, reason="a tenth of the texts, some 370,000 words; not measured"),
        "full": Budget(5, reason="all texts; a recipe has passes of its own"),
    },
    protocol=(
        "The sources of text_mix but newswire and medicine: IMDB 47.0 %, 20 Newsgroups 19.2 %, WikiText-2 15.4 %,"
        " MultiNLI 5.2 %, SQuAD 1.1 3.8 %, SNLI 3.7 %, Multi30k (English) 2.5 %, WikiQA 1.7 %, SST 1.4 % of the words."
        " Rows are made, held out, scored and kept apart from dev and test of the registered tasks as those of text_mix"
        " are. Train is cut to 3.7 million words, as many as news_text has, of 12.7 million: the texts whose SHA-256 is"
        " lowest."
    ),
)
class TextByDomain(TextMix):
    """As many words of the text mix's sources that are newswire, or of those that are not."""

    def __init__(self, entry: TaskEntry):
        super().__init__(entry)
        self.sources = SOURCES[entry.id]
        self.digests = DIGESTS[entry.id]

    def _rows(self, split: Split, tier: Tier, folder: Path | None) -> Iterable[Row]:
        rows = super()._rows(split, tier, folder)
        return cut(rows, WORDS[tier]) if split == "train" else rows

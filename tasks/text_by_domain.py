"""Plain text of one domain: equal amounts of news and of anything but news."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

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
DIGESTS: Mapping[str, Mapping[Split, str]] = {
    "general_text": {"train": "", "dev": "", "test": ""},
    "news_text": {"train": "", "dev": "", "test": ""},
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
    sizes={"train": 1, "dev": 1, "test": 1},
    budgets="text_mix",
    protocol="",
)
@register_task(
    "general_text",
    name="General text",
    type="text",
    part_of="text_mix",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 1, "dev": 1, "test": 1},
    budgets="text_mix",
    protocol="",
)
class TextByDomain(TextMix):
    """As many words of the text mix's sources that are newswire, or of those that are not."""

    def __init__(self, entry: TaskEntry):
        super().__init__(entry)
        self.sources: Sequence[str] = SOURCES[entry.id]
        self.digests: Mapping[Split, str] = DIGESTS[entry.id]

    def _rows(self, split: Split, tier: Tier, folder: Path | None) -> Iterable[Row]:
        rows = super()._rows(split, tier, folder)
        return cut(rows, WORDS[tier]) if split == "train" else rows

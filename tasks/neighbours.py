"""The sentence that follows: sentences of WikiText-2 with the one behind each and some of other
articles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split
from tasks.readers.articles import END
from tasks.wikitext2 import WikiText2

if TYPE_CHECKING:
    import datasets

ENDS = (".", "?", "!")
PAIRS, OTHERS = 10, 3
"""Pairs of an article at most, and wrong candidates for each."""
LEAST = 4
"""Words of a sentence."""
MINI = 100
"""Articles of a split of tier mini at most."""


def paragraphs(words: Sequence[str]) -> Iterator[list[str]]:
    """The paragraphs of an article, each as its sentences; titles are none, and neither is what has
    too few words or no end."""
    line: list[str] = []
    for word in words:
        if word != END:
            line.append(word)
            continue
        if line[:1] != ["="]:
            yield list(_sentences(line))
        line = []


def _sentences(line: Sequence[str]) -> Iterator[str]:
    start = 0
    for place, word in enumerate(line, 1):
        if word in ENDS:
            if place - start >= LEAST:
                yield " ".join(line[start:place])
            start = place


def candidates(articles: Sequence[Row]) -> Iterator[Row]:
    """Rows of pairs of neighbours, drawn by the article's id, with sentences of other articles."""
    found = [[part for part in paragraphs(article["text"]) if part] for article in articles]
    sentences = [sentence for parts in found for part in parts for sentence in part]
    for article, parts in zip(articles, found, strict=True):
        random = Random(f"neighbours {article['id']}")
        pairs = [(a, b) for part in parts for a, b in pairwise(part)]
        own = {sentence for part in parts for sentence in part}
        elsewhere = [sentence for sentence in sentences if sentence not in own]
        if len(elsewhere) < OTHERS:
            continue
        for number, (first, right) in enumerate(random.sample(pairs, min(PAIRS, len(pairs)))):
            offered = [right, *random.sample(elsewhere, OTHERS)]
            random.shuffle(offered)
            for place, second in enumerate(offered):
                group = f"{article['id']}-{number}"
                label = str(int(second == right))
                yield {"id": f"{group}-{place}", "first": first, "second": second, "label": label, "group": group}


@register_task(
    "neighbours",
    name="Neighbouring sentences",
    type="rank",
    part_of="wikitext2",
    metrics=("map", "mrr"),
    main_metric="map",
    sizes={"train": 23984, "dev": 2400, "test": 2400},
    budgets={
        "small": Budget(3, examples=2000, min_steps=375, batch_size=16, reason="as WikiQA"),
        "full": Budget(3, batch_size=32, reason="three times as many pairs as WikiQA has; not measured"),
    },
    dropout=0.1,
    protocol=(
        "Sentences of WikiText-2's articles; of four candidates one is the sentence behind it, the others are of other"
        " articles of the same split. A sentence ends at a full stop, a question mark or an exclamation mark and has"
        " four words at least; pairs lie in one paragraph, ten of an article at most, drawn by its number. Splits are"
        " WikiText-2's."
    ),
)
class Neighbours(WikiText2):
    """A task that text alone gives, as a system learns from it that learns sentences."""

    official_test = False

    def mini(self, split: Split) -> Iterable[Row]:
        return candidates(list(super().mini(split))[:MINI])

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        return candidates(list(super().local(folder, split)))

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        return candidates(list(super().from_hub(rows, split)))

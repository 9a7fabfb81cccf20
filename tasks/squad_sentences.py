"""Sentences of SQuAD's passages as candidate answers: a large set to transfer from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness import registry
from harness.data.overlap import sequences, shares_one
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Tier
from tasks.squad1 import Squad1
from tasks.wikiqa import answered

if TYPE_CHECKING:
    import datasets

_BORDER = re.compile(r"""(?:[.!?]["')\]]*(?=\s+["'(\[]?[A-Z0-9])|\s[.!?](?=\s))(\s+)""")
"""The end of a sentence, and what lies between it and the next one: in a raw passage, or in one
whose tokens stand apart."""


def sentences(passage: str) -> Iterator[tuple[int, str]]:
    """The sentences of a passage, each with the place of its first character."""
    start = 0
    for border in _BORDER.finditer(passage):
        yield start, passage[start : border.start(1)]
        start = border.end()
    if start < len(passage):
        yield start, passage[start:]


def candidates(question: Row) -> Iterator[Row]:
    """The sentences of a question's passage; right are those that hold one of its answers whole."""
    answers = [
        (start, start + len(text))
        for text, start in zip(question["answers"]["text"], question["answers"]["start"], strict=True)
    ]
    for number, (begin, sentence) in enumerate(sentences(question["passage"])):
        right = any(begin <= start and end <= begin + len(sentence) for start, end in answers)
        yield {
            "id": f"{question['id']}-{number}",
            "first": question["question"],
            "second": sentence,
            "label": str(int(right)),
            "group": question["id"],
        }


@register_task(
    "squad_sentences",
    name="SQuAD sentences",
    type="rank",
    part_of="squad1",
    metrics=("map", "mrr"),
    main_metric="map",
    sizes={"train": 45173, "dev": 5080, "test": 54347},
    budgets={
        "small": Budget(3, examples=2000, min_steps=375, batch_size=16, reason="as WikiQA"),
        "full": Budget(2, batch_size=32, reason="five times as many pairs as WikiQA has; not measured"),
    },
    dropout=0.1,
    protocol=(
        "Questions of SQuAD 1.1 with the sentences of their passages; right are those that hold an answer whole."
        " Passages are cut behind a full stop, a question mark or an exclamation mark. The splits are those of squad1."
        " Train and dev keep the questions that have a right sentence, and train no sentence that has 13 words in a row"
        " in common with dev or test of WikiQA, whose sentences are of Wikipedia as well. The sizes are those of the"
        " files of squad1's partial training set."
    ),
)
class SquadSentences(Squad1):
    """Answer selection made of SQuAD, as ASNQ is of Natural Questions (Garg et al. 2020)."""

    official_test = False

    def mini(self, split: Split) -> Iterable[Row]:
        return _made(super().mini(split), split, "mini")

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        return _made(super().local(folder, split), split, "local", folder)

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        return _made(super().from_hub(rows, split), split, "hub")


def _made(questions: Iterable[Row], split: Split, tier: Tier, folder: Path | None = None) -> list[Row]:
    rows = [row for question in questions for row in candidates(question)]
    if split == "test":
        return rows
    if split == "train":
        known = sequences(_sentences_of_wikiqa(tier, folder))
        rows = [row for row in rows if not shares_one(row["second"], known)]
    return answered(rows)


def _sentences_of_wikiqa(tier: Tier, folder: Path | None) -> Iterator[str]:
    """Those of dev and test."""
    entry = registry.entry("tasks", "wikiqa")
    splits: tuple[Split, ...] = ("dev", "test")
    for split in splits:
        yield from (row["second"] for row in registry.load(entry)(entry).read(split, tier, folder))

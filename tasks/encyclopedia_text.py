"""Encyclopaedic text: what a system reads to know the answers to questions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from harness.registry import TaskEntry, register_task
from harness.settings import Budget
from harness.task import Row, Split, Tier
from tasks.mini import school
from tasks.text_mix import TextMix, guarded, mixed, texts_of

SOURCES = ("wikitext2", "squad1", "wikiqa")
"""The sources of the text mix that are from Wikipedia."""
QUESTIONS = "ai2_questions"
"""The task whose questions are to be answered from these texts."""
DIGESTS: dict[str, str] = {
    "train": "c516e386451aa7ffb1d38bb43e7ed86d1c7ce55b6aa4a0cc71a9f657e5053e69",
    "dev": "406d7075c094d99119791aae3770f6304cf25d112c0199f5782dc7b79d5b397d",
    "test": "39409950b9c3c3e18bb5670d37079e255ecc48f653afa26aaa6e5bfc6d0df8b1",
}
"""Fingerprints of the rows of tier local as they were when the version was given."""


@register_task(
    "encyclopedia_text",
    name="Encyclopaedic text",
    type="text",
    part_of="text_mix",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 28001, "dev": 298, "test": 299},
    budgets={
        "small": Budget(1, examples=4000, reason="a fifth of the texts; not measured"),
        "full": Budget(5, reason="all texts; a recipe has passes of its own"),
    },
    protocol=(
        "The sources of text_mix that are from Wikipedia: WikiText-2 (74.1 % of the words), SQuAD"
        " 1.1 (18.2 %) and WikiQA (7.7 %); train has 2.66 million words. Rows are made, held out,"
        " scored and kept apart from dev and test of other tasks as those of text_mix are, and from those of the AI2"
        " science questions too. The generated corpus also has the short texts on animals that state the answers to"
        " the generated questions. It is no corpus of science: few of the real questions are answered in it."
    ),
)
class EncyclopediaText(TextMix):
    """Texts of Wikipedia at hand."""

    def __init__(self, entry: TaskEntry):
        super().__init__(entry)
        self.sources, self.digests = SOURCES, DIGESTS

    def _rows(self, split: Split, tier: Tier, folder: Path | None) -> Iterable[Row]:
        own = [("school", school.texts())] if tier == "mini" else []
        read = [(id, texts_of(id, "train", tier, folder)) for id in self.sources]
        texts = ((f"{id}-{number}", text) for id, each in (*read, *own) for number, text in enumerate(each))
        splits: tuple[Split, ...] = ("dev", "test")
        asked = chain.from_iterable(texts_of(QUESTIONS, held, tier, folder) for held in splits)
        return mixed(split, texts, chain(guarded(tier, folder), asked))

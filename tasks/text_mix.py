"""Plain text without labels: the training texts of other tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from harness import registry
from harness.data.overlap import sequences, shares_one
from harness.registry import TaskEntry, register_task
from harness.settings import Budget
from harness.task import Row, Split, Task, Tier, fingerprint
from harness.views.base import plain
from tasks.readers.holdout import hold_out
from tasks.readers.lines import json_texts, present

SOURCES = (
    "imdb",
    "ag_news",
    "newsgroups20",
    "wikitext2",
    "reuters21578",
    "mnli_matched",
    "ohsumed",
    "squad1",
    "snli",
    "multi30k",
    "conll2003_ner",
    "conll2000_chunk",
    "wikiqa",
    "sst5",
)
"""Tasks whose training texts are taken; of equal ones the first."""
GUARDED = (*SOURCES, "babi", "conll2003_chunk", "conll2003_pos", "mnli_mismatched", "squad2", "sst2")
"""Tasks with whose dev and test no text may have 13 words in a row in common."""
NOT_AT_HAND = {
    **dict.fromkeys(("amazon2", "amazon5", "dbpedia", "sogou", "yelp2", "yelp5"), ("dev", "test")),
    "mnli_mismatched": ("test",),
}
"""Splits that nobody could look at when the corpus was made, by task."""
JOINED_LATER = ("gap", "ai2_questions")
"""Tasks that were registered after the corpus was made: it may share texts with their dev or
test."""
DIGESTS = {
    "train": "f83139d2942d771c747639be993a6bed3d5dcfdb24f7be306618a760927df58c",
    "dev": "3cdf385ad69035bdc1d364181384b23d18c5c380fde950b1277fdfbf2667d42e",
    "test": "0095bcc1dd2f05a5dc73fdcee037e5ad268adfcf9286b3363d5dad4cf822efd3",
}
"""Fingerprints of the rows of tier local as they were when the version was given."""
PARAGRAPHS = re.compile(r"\n\s*\n")


def texts_of(id: str, split: Split, tier: Tier, folder: Path | None) -> Iterator[str]:
    """The paragraphs of the texts of a task's split; those of a task without texts are none."""
    entry = registry.entry("tasks", id)
    columns = registry.entry("problems", entry.type).texts
    rows = registry.load(entry)(entry).read(split, tier, folder)
    texts = (plain(row[column]) for row in rows for column in columns if column in row)
    return (part.strip() for text in texts for part in PARAGRAPHS.split(text))


def guarded(tier: Tier, folder: Path | None) -> Iterator[str]:
    """All texts of dev and test of the other tasks."""
    splits: tuple[Split, ...] = ("dev", "test")
    for id in GUARDED:
        for split in splits:
            if split not in NOT_AT_HAND.get(id, ()):
                yield from texts_of(id, split, tier, folder)


def mixed(split: Split, texts: Iterable[tuple[str, str]], others: Iterable[str]) -> Iterator[Row]:
    """Rows of a split of texts, each with its id: a hundredth of them is dev, another one test, and
    train is the rest but for those that have 13 words in a row in common with dev, test or
    ``others``.

    A text that is shorter is left out where another one is the same. Of equal texts the first
    counts.
    """
    ids: dict[str, str] = {}
    for id, text in texts:
        ids.setdefault(text, id)
    rest, held = hold_out(filter(None, ids), share=0.02, group=_key)
    test, dev = hold_out(held, share=0.5, group=_key)
    if split == "train":
        known = sequences(chain(dev, test, others))
        chosen = [text for text in rest if not shares_one(text, known)]
    else:
        chosen = dev if split == "dev" else test
    return ({"id": ids[text], "text": text} for text in chosen)


def _key(text: str) -> str:
    """The text by whose digest it is held out: not the text alone, by which the other tasks have
    held out their dev before."""
    return f"text_mix {text}"


@register_task(
    "text_mix",
    name="Text mix",
    type="text",
    version=2,
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 291329, "dev": 3283, "test": 3284},
    budgets={
        "small": Budget(1, examples=30000, reason="a tenth of the texts, some 1.7 million words; not measured"),
        "full": Budget(5, reason="all texts; a recipe has passes of its own"),
    },
    protocol=(
        "The training texts of fourteen tasks, without labels, cut into paragraphs at empty lines, each once. Of each"
        " hundred one is dev and one test, by the SHA-256 of the text. Left out of train is every text with a sequence"
        " of 13 words, in lower case, that dev or test of any registered task has; a shorter text is left out where"
        " the same stands there. Dev and test of Yelp, Amazon, DBpedia and Sogou, and MultiNLI's mismatched test, were"
        " not at hand and are not looked at, nor are those of GAP and the AI2 questions, which joined later: what is"
        " pre-trained here may have read texts of their tests. Train is 291,329 texts of 17.1 million words, of 20.2"
        " million before:"
        " IMDB 34.1 %, 20 Newsgroups 15.4 %, AG News 13.5 %, WikiText-2 11.5 %, Reuters-21578 5.9 %, Ohsumed 3.9 %,"
        " MultiNLI 3.8 %, SQuAD 1.1 2.8 %, SNLI 2.7 %, Multi30k (English) 1.8 %, CoNLL-2003 1.2 %, CoNLL-2000 1.2 %,"
        " WikiQA 1.2 %, SST 1.0 %. AG News, SNLI, MultiNLI and SQuAD are the parts of their training sets that were at"
        " hand: from other files come other rows, and a note says so. The score is the dev loss that all systems have"
        " in common: the mean negative log-probability of every tenth word given the words around it, shown as"
        " perplexity; the floor is each word's share of the training words. Coverage is no score, since random vectors"
        " cover every word. The texts are of many publishers, so there is no tier hub."
    ),
)
class TextMix(Task):
    """Training texts of the tasks at hand, without their labels."""

    official_test = False
    sources: Sequence[str] = SOURCES
    digests: Mapping[str, str] = DIGESTS

    def __init__(self, entry: TaskEntry):
        super().__init__(entry)
        self.others: list[str] = []

    def read(self, split: Split, tier: Tier, folder: Path | None = None) -> list[Row]:
        rows = super().read(split, tier, folder)
        if tier == "local" and fingerprint(rows) != self.digests[split]:
            self.others.append(split)
        return rows

    def notes(self) -> list[str]:
        changed = ", ".join(dict.fromkeys(self.others))
        others = f"other rows than those of version {self.entry.version}, whose files were others"
        return [f"{self.entry.id}: {changed}: {others}"] if changed else []

    def mini(self, split: Split) -> Iterable[Row]:
        return self._rows(split, "mini", None)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """The rows of ``TASK/SPLIT.jsonl`` where ``python -m tools.plain_text`` wrote it; else from
        the files of the other tasks, which takes minutes."""
        path = present(folder, f"{self.entry.id}/{split}.jsonl")
        if path is None:
            return self._rows(split, "local", folder)
        return ({"id": id, "text": text} for _, (id, text) in json_texts(path, "id", "text"))

    def _rows(self, split: Split, tier: Tier, folder: Path | None) -> Iterable[Row]:
        texts = (
            (f"{id}-{number}", text)
            for id in self.sources
            for number, text in enumerate(texts_of(id, "train", tier, folder))
        )
        return mixed(split, texts, guarded(tier, folder))

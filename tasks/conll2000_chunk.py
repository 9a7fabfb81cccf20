"""CoNLL-2000: syntactic chunks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.errors import DataError
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Task
from tasks.mini import tagging
from tasks.readers.conll import bioes, sentences
from tasks.readers.holdout import hold_out
from tasks.readers.lines import find

_TYPES = ("ADJP", "ADVP", "CONJP", "INTJ", "LST", "NP", "PP", "PRT", "SBAR", "UCP", "VP")
TAGS = ("O", *(f"{prefix}-{type}" for type in _TYPES for prefix in "BI"))


@register_task(
    "conll2000_chunk",
    name="CoNLL-2000 chunks",
    type="tag",
    metrics=("span_f1", "token_accuracy"),
    main_metric="span_f1",
    sizes={"train": 8043, "dev": 893, "test": 2012},
    budgets={
        "small": Budget(
            5,
            examples=1000,
            min_steps=300,
            batch_size=16,
            reason="sentences are twice as long as those of CoNLL-2003: fewer of them for the same words",
        ),
        "full": Budget(
            10,
            min_steps=1500,
            batch_size=16,
            reason="as for CoNLL-2003, whose training set has as many words",
        ),
    },
    # as on CoNLL-2003 NER; not measured.
    dropout=0.1,
    protocol=(
        "Sections 15 to 18 of the Wall Street Journal to train on, section 20 as test; the chunk column; IOB2 tags"
        " turned into BIOES. There is no official dev set: 10 % of the training sentences, chosen by the SHA-256 of"
        " their words, are held out as dev and not trained on, so train is 8,043 of the official 8,936. The only"
        " source on the hub is a script, which is not run: there is no tier hub."
    ),
)
class Conll2000Chunk(Task):
    """Sentences of newspaper text with chunks made from their trees (Tjong Kim Sang & Buchholz
    2000)."""

    def mini(self, split: Split) -> Iterable[Row]:
        return tagging.rows(split, "chunk")

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        part = "test" if split == "test" else "train"
        path = find(folder / "conll2000", f"{part}.txt")
        rows = []
        for number, sentence in enumerate(sentences(path, columns=3), 1):
            for line, (_, _, tag) in sentence:
                if tag not in TAGS:
                    raise DataError(f"{path}, line {line}: {tag!r:.80} is no chunk tag (known: {' '.join(TAGS)})")
            words, tags = ([fields[column] for _, fields in sentence] for column in (0, 2))
            rows.append({"id": f"{part}-{number}", "text": words, "tags": bioes(tags)})
        if split == "test":
            return rows
        train, dev = hold_out(rows, share=0.1, group=lambda row: " ".join(row["text"]))
        return train if split == "train" else dev

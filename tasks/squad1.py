"""SQuAD 1.1: the answer to a question as a span of a passage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import reading
from tasks.readers import hub
from tasks.readers.holdout import hold_out
from tasks.readers.lines import find, present
from tasks.readers.squad import check_answers, paragraph_key, questions

if TYPE_CHECKING:
    import datasets


@register_task(
    "squad1",
    name="SQuAD 1.1",
    type="extract",
    version=2,
    metrics=("exact_match", "f1"),
    main_metric="f1",
    sizes={"train": 78840, "dev": 8759, "test": 10570},
    budgets={
        "small": Budget(
            3,
            examples=2000,
            min_steps=375,
            batch_size=16,
            reason="passages of 120 words: fewer steps, and still a core minute",
        ),
        "full": Budget(
            5,
            min_steps=1500,
            batch_size=32,
            reason="as many as a reader of passages ends in 20 minutes on 8,000 questions",
        ),
    },
    dropout=0.1,
    protocol=(
        "The official test set is hidden, so the official dev set is our test, as in most papers' dev columns. Dev is"
        " held out of the 87,599 training questions: whole paragraphs, chosen by the SHA-256 of their letters and"
        " digits, up to 10 % of the questions. Tier local takes train-v1.1.json if it is there, else the two partial"
        " files (9,421 questions; those of the tokenised file that are also in the raw one are used once): 5,421 of"
        " them have passages of PTB-like tokens joined by spaces, about 940 in lower case, and the raw file's offsets"
        " are the answer's first occurrence."
    ),
)
class Squad1(Task):
    """Questions on Wikipedia paragraphs (Rajpurkar et al. 2016)."""

    hub = Hub(
        "rajpurkar/squad",
        "7b6d24c440a36b6815f21b70d25016731768db1f",
        config="plain_text",
        splits=(("train", "train"), ("dev", "train"), ("test", "validation")),
    )

    def mini(self, split: Split) -> Iterable[Row]:
        return reading.rows(split, unanswerable=False)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        folder = folder / "squad"
        if split == "test":
            return (question.row for question in questions(find(folder, "dev-v1.1.json")))
        if present(folder, "train_partial_raw.json") and not present(folder, "train-v1.1.json"):
            return held_out(_partial(folder), split)
        return held_out((question.row for question in questions(find(folder, "train-v1.1.json"))), split)

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        mapped = hub_rows(self.hub, rows, unanswerable=False)
        return mapped if split == "test" else held_out(mapped, split)


def held_out(rows: Iterable[Row], split: Split) -> list[Row]:
    """The rows of the training set that are train or dev; no paragraph is in both."""
    train, dev = hold_out(rows, share=0.1, group=paragraph_key)
    return train if split == "train" else dev


def hub_rows(source: Hub | None, rows: datasets.Dataset, unanswerable: bool) -> Iterator[Row]:
    """Rows of a hub copy of SQuAD, their offsets checked; ``unanswerable`` says whether questions
    without an answer belong there."""
    hub.require_columns(source, rows, "id", "title", "context", "question", "answers")
    for row in rows:
        answers = {"text": row["answers"]["text"], "start": row["answers"]["answer_start"]}
        answerable = bool(answers["text"]) if unanswerable else True
        check_answers(f"{hub.place(source)}, question {row['id']}", row["context"], answers, answerable)
        columns = {"id": row["id"], "passage": row["context"], "question": row["question"], "answers": answers}
        yield columns | {"article": row["title"]}


def _partial(folder: Path) -> Iterator[Row]:
    for name in ("train_partial_raw.json", "train_partial_tokenised.json"):
        for question in questions(find(folder, name)):
            if not question.source.get("also_in_raw"):
                yield question.row

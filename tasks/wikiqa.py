"""WikiQA: rank the sentences of a Wikipedia summary by whether they answer a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import answers
from tasks.readers import hub
from tasks.readers.delimited import tab_separated
from tasks.readers.lines import find

if TYPE_CHECKING:
    import datasets

_HEADER = ("QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label")


@register_task(
    "wikiqa",
    name="WikiQA",
    type="rank",
    metrics=("map", "mrr", "map_237", "mrr_237"),
    main_metric="map",
    sizes={"train": 8672, "dev": 2733, "test": 6165},
    budgets={
        "small": Budget(
            3,
            examples=2000,
            min_steps=375,
            batch_size=16,
            reason="two texts a pair: fewer steps for half a core minute",
        ),
        "full": Budget(
            5,
            min_steps=1300,
            batch_size=32,
            reason="dev falls again after the second pass",
        ),
    },
    dropout=0.1,
    protocol=(
        "Train keeps the 873 of 2,118 questions that have a right answer (8,672 of 20,360 pairs). Dev and test keep all"
        " their rows; the metrics leave out questions without a right answer (243 of 633 test questions remain), and"
        " the 237 variant also those without a wrong one. Equal scores count as the mean over their orders, since the"
        " file order alone scores MAP .64."
    ),
)
class WikiQa(Task):
    """Questions of Bing users with candidate sentences (Yang et al. 2015): official split."""

    hub = Hub("microsoft/wiki_qa", "3f104672b5de699878fe7907afc486f0de325eb5")

    def mini(self, split: Split) -> Iterable[Row]:
        return answers.rows(split)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        rows = _pairs(find(folder / "wikiqa", f"WikiQA-{split}.tsv"))
        return answered(rows) if split == "train" else rows

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        names = hub.class_names(self.hub, rows, "label", ("0", "1"))
        hub.require_columns(self.hub, rows, "question_id", "question", "answer")
        seen: Counter[str] = Counter()  # the hub's copy has no sentence ids
        mapped = []
        for row in rows:
            group = row["question_id"]
            mapped.append(_row(f"{group}-{seen[group]}", row["question"], row["answer"], names[row["label"]], group))
            seen[group] += 1
        return answered(mapped) if split == "train" else mapped


def _pairs(path: Path) -> Iterator[Row]:
    for line, row in tab_separated(path, _HEADER):
        if row["Label"] not in ("0", "1"):
            raise DataError(f"{path}, line {line}: label {row['Label']!r:.80}, expected 0 or 1")
        group = row["QuestionID"]
        yield _row(f"{group}-{row['SentenceID']}", row["Question"], row["Sentence"], row["Label"], group)


def _row(id: str, question: str, sentence: str, label: str, group: str) -> Row:
    return {"id": id, "first": question, "second": sentence, "label": label, "group": group}


def answered(rows: Iterable[Row]) -> list[Row]:
    """The candidates of questions that have a right one."""
    rows = list(rows)
    groups = {row["group"] for row in rows if row["label"] == "1"}
    return [row for row in rows if row["group"] in groups]

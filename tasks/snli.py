"""SNLI: does a premise entail, contradict or leave open a hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import inference
from tasks.readers import hub
from tasks.readers.delimited import tab_separated
from tasks.readers.lines import find, present
from tasks.readers.snli import pairs

if TYPE_CHECKING:
    import datasets

LABELS = ("entailment", "neutral", "contradiction")
_PARTIAL_HEADER = (
    "gold_label",
    "sentence1_binary_parse",
    "sentence2_binary_parse",
    "sentence1",
    "sentence2",
    "pairID",
    "source",
)


@register_task(
    "snli",
    name="SNLI",
    type="match",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 549367, "dev": 9842, "test": 9824},
    budgets={
        "small": Budget(
            4,
            examples=2500,
            min_steps=600,
            batch_size=16,
            reason="about half a core minute for the median architecture, a third of it on dev",
        ),
        "full": Budget(
            4,
            min_steps=1500,
            batch_size=32,
            reason="two texts a pair: the costliest matchers end in 20 minutes",
        ),
    },
    # on dev at .1, .3, .5: bilstm .611 .607 .610, kim_cnn_rand .605 .601 .596,
    # decomposable .595 .613 .598.
    dropout=0.1,
    protocol=(
        "first is the premise, second the hypothesis, as plain sentences; pairs without a gold label are dropped, as is"
        " usual. Tier local trains on snli_1.0_train.jsonl if it is there, else on the partial file (23,530 pairs)."
    ),
)
class Snli(Task):
    """Sentence pairs of Bowman et al. 2015: official split."""

    hub = Hub("stanfordnlp/snli", "cdb5c3d5eed6ead6e5a341c8e56e669bb666725b", config="plain_text")

    def mini(self, split: Split) -> Iterable[Row]:
        return inference.rows(split)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        folder = folder / "snli"
        name = f"snli_1.0_{split}.jsonl"
        partial = present(folder, "train_partial.tsv") if split == "train" else None
        if partial and not present(folder, name):
            path = partial
            found: Iterator[tuple[int, str, str, str]] = (
                (line, row["sentence1"], row["sentence2"], row["gold_label"])
                for line, row in tab_separated(path, _PARTIAL_HEADER)
            )
        else:
            path = find(folder, name)
            found = pairs(path)
        return _rows(path, split, found)

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        names = hub.class_names(self.hub, rows, "label", LABELS)
        hub.require_columns(self.hub, rows, "premise", "hypothesis")
        for number, row in enumerate(rows, 1):
            if row["label"] != -1:
                yield {
                    "id": f"{split}-{number}",
                    "first": row["premise"],
                    "second": row["hypothesis"],
                    "label": names[row["label"]],
                }


def _rows(path: Path, split: Split, found: Iterable[tuple[int, str, str, str]]) -> Iterator[Row]:
    for line, premise, hypothesis, label in found:
        if label not in (*LABELS, "-"):
            raise DataError(f"{path}, line {line}: gold label {label!r:.80}, expected {', '.join(LABELS)} or -")
        if label != "-":
            yield {"id": f"{split}-{line}", "first": premise, "second": hypothesis, "label": label}

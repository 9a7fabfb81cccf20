"""Stanford Sentiment Treebank, five classes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import sentiment
from tasks.readers import hub
from tasks.readers.lines import find
from tasks.readers.trees import trees

if TYPE_CHECKING:
    import datasets

LABELS = ("very negative", "negative", "neutral", "positive", "very positive")


@register_task(
    "sst5",
    name="SST-5",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 8544, "dev": 1101, "test": 2210},
    budgets={
        "small": Budget(
            4,
            examples=2000,
            min_steps=500,
            batch_size=16,
            reason="about half a core minute for the median architecture",
        ),
        "full": Budget(
            8,
            min_steps=1500,
            batch_size=32,
            reason="on two classes dev falls again before the eighth pass",
        ),
    },
    # on dev of SST-2 at .1, .3, .5: bilstm .758 .756 .737, kim_cnn_rand .732 .704 .743,
    # avg_vectors .752 .745 .732.
    dropout=0.1,
    protocol=(
        "Whole sentences with the label of their root; phrases are not training examples. The labels of the inner nodes"
        " are used by tree models only, through the column tree (tier local and mini; the hub's copy has lower-cased"
        " sentences and no trees)."
    ),
)
class Sst5(Task):
    """Sentences of Socher et al. 2013 with five sentiment labels: official split, tokenised text,
    the labelled tree beside it."""

    inputs = ("text", "tree")
    hub = Hub("SetFit/sst5", "e51bdcd8cd3a30da231967c1a249ba59361279a3")

    def mini(self, split: Split) -> Iterable[Row]:
        return sentiment.rows(split, fine=True)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        for tree in trees(find(folder / "sst", f"trees/{split}.txt")):
            yield {"id": f"{split}-{tree.line}", "text": tree.words, "label": LABELS[tree.label], "tree": tree.brackets}

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        hub.require_columns(self.hub, rows, "text", "label", "label_text")
        for number, row in enumerate(rows, 1):
            if row["label"] not in range(5) or row["label_text"] != LABELS[row["label"]]:
                raise DataError(
                    f"{hub.place(self.hub)}, row {number}: label {row['label']} is called {row['label_text']!r}, not as"
                    f" in {LABELS}"
                )
            yield {"id": f"{split}-{number}", "text": row["text"].split(" "), "label": row["label_text"]}

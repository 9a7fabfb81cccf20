"""20 Newsgroups with two labels a message: its group, and the branch that the group is part of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.registry import register_task
from harness.task import Row, Split
from tasks.newsgroups20 import Newsgroups20


@register_task(
    "newsgroups20_levels",
    name="20 Newsgroups, two levels",
    type="multilabel",
    metrics=("micro_f1", "macro_f1", "precision_at_1"),
    main_metric="micro_f1",
    sizes={"train": 10183, "dev": 1131, "test": 7532},
    budgets="newsgroups20",
    # as on 20 Newsgroups.
    dropout=0.1,
    # quotes of other groups mislead whoever does not see who wrote what
    mini_needs_order=True,
    protocol=(
        "The messages and the division of newsgroups20. A message has two labels: its group, and the part of the"
        " group's name before the first dot, which is the label above it."
    ),
)
class Newsgroups20Levels(Newsgroups20):
    """Messages of Usenet in seven branches and twenty groups of them (Lang 1995)."""

    def mini(self, split: Split) -> Iterable[Row]:
        return map(self._with_branch, super().mini(split))

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        return map(self._with_branch, super().local(folder, split))

    def _with_branch(self, row: Row) -> Row:
        labels = sorted((row["label"], self.label_tree[row["label"]]))
        return {"id": row["id"], "text": row["text"], "labels": labels}

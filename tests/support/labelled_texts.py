"""A few labelled texts in three splits, for systems that need all of them at once."""

from __future__ import annotations

from typing import Any


def rows(split: str, *texts: str, label: str | None = None) -> list[dict[str, Any]]:
    """Rows of a classification task, numbered within the split; without a label where none is
    given."""
    return [{"id": f"{split}-{n}", "text": text} | ({"label": label} if label else {}) for n, text in enumerate(texts)]


TRAIN = rows("train-p", "good film", "fine film", "good fine cast", label="pos")
TRAIN += rows("train-n", "bad film", "poor cast", label="neg")
DEV = rows("dev-p", "good cast", label="pos") + rows("dev-n", "bad poor film", label="neg")
TEST = rows("test", "fine good story", "poor bad story", "film")

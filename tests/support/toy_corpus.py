"""A task of a few hand-made rows, its corpus and its models, for tests that look at one part of the
harness."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from harness import registry
from harness.data.corpus import Corpus
from harness.registry import TaskEntry
from harness.task import Row, Split, Task
from harness.training.model import Model, build
from harness.views.base import View
from harness.views.words import Words

GOOD, BAD = ("good", "great", "warm"), ("bad", "dull", "weak")
THINGS = ("film", "plot", "song", "scene")


def sentences(count: int, start: int = 0) -> list[Row]:
    """Labelled sentences of three to five words."""
    rows = []
    for number in range(start, start + count):
        words, label = (GOOD, "positive") if number % 2 else (BAD, "negative")
        text = f"the {THINGS[number % 4]} is {words[number % 3]}" + " now" * (number % 3 == 0)
        rows.append({"id": f"row-{number}", "text": text, "label": label})
    return rows


class ToyTask(Task):
    """Serves the rows it was given and counts how often a split was asked for; rows that are an
    exception are raised."""

    def __init__(
        self, splits: dict[Split, list[Row] | Exception], type: str = "classify", main_metric: str = "accuracy"
    ):
        about = dict(id="toy", file=Path(__file__), class_name="ToyTask", name="Toy", protocol="sentences", epochs=1)
        about |= dict(type=type, metrics=(main_metric,), main_metric=main_metric, sizes={"train": 1000})
        super().__init__(TaskEntry(**about))
        self.splits, self.asked = splits, []

    def mini(self, split: Split) -> Iterable[Row]:
        self.asked.append(split)
        rows = self.splits[split]
        if isinstance(rows, Exception):
            raise rows
        return rows


def toy_task(**splits: Any) -> ToyTask:
    """Sentences in three splits; keyword arguments replace a split."""
    return ToyTask({"train": sentences(48), "dev": sentences(16, 1000), "test": sentences(16, 2000)} | splits)


def toy_corpus(task: Task | None = None, view: View | None = None, gives: str = "vector", **settings: Any) -> Corpus:
    """The corpus of a task (the toy one by default) for an architecture that ``gives`` that output;
    ``settings`` are ``max_train`` and ``cache``."""
    return Corpus(task or toy_task(), "mini", None, view or Words(min_count=1), gives, **settings)


def toy_model(
    corpus: Corpus, architecture: str = "avg_vectors", seed: int = 0, dims: int = 8, **settings: Any
) -> Model:
    """A model of an architecture for a corpus, the same for the same seed."""
    cls = registry.load(registry.entry("architectures", architecture))
    torch.manual_seed(seed)
    return build(cls, corpus.problem, settings, corpus.view, corpus.target, dims)

"""A label of dev or test that training never showed: an error of every system alike, and no reason
for any of them to stop."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
import torch

from harness import registry
from harness.problems.base import IGNORED
from harness.problems.classify import Classify, ClassTarget
from harness.problems.tag import Tag, TagTarget
from harness.running.worker import run_cell
from harness.task import Row, Split
from harness.views.words import Words
from tests.support.planned_cells import planned_cell, tiny_sizes

CELLS = [
    ("sst2", "dan"),
    ("sst2", "tree_lstm"),
    ("sst2", "capsule_a"),  # with an objective of its own
    ("sst2", "naive_bayes"),
    ("sst2", "nbsvm"),
    ("sst2", "sgc"),
    ("sst2", "text_gcn"),
    ("snli", "decomposable"),
    ("conll2003_pos", "bilstm_softmax"),
    ("conll2003_pos", "bilstm_crf"),
    ("conll2003_pos", "hmm"),
    ("babi", "memn2n"),
]


def with_unseen(row: Row) -> Row:
    """The row with an answer that no training row has."""
    unseen = {"label": "unheard-of", "answer": "unheard-of"}
    new = {name: unseen[name] for name in unseen if name in row}
    return row | new | ({"tags": ["XX"] * len(row["tags"])} if "tags" in row else {})


@pytest.mark.parametrize(("task", "architecture"), CELLS)
def test_an_unseen_label_is_an_error_and_ends_no_cell(task, architecture, make_settings, monkeypatch):
    """One system's score beside another's failure would be no comparison of the two."""
    adapter = registry.load(registry.entry("tasks", task))
    original = adapter.mini

    def mini(self: object, split: Split) -> Iterable[Row]:
        rows = list(original(self, split))
        rows = rows if split == "train" else rows[:40]
        return [row if split == "train" or number % 2 else with_unseen(row) for number, row in enumerate(rows)]

    monkeypatch.setattr(adapter, "mini", mini)
    cell = planned_cell(architecture, task, *tiny_sizes(architecture), max_train=60, max_epochs=1)
    record = run_cell(cell, make_settings())
    assert record.status == "ok", record.error
    for split in ("dev", "test"):
        assert 0 <= record.scores[split][record.main_metric] <= 0.65  # about half cannot be right
    assert all(math.isfinite(epoch["dev_loss"]) for epoch in (record.training or {}).get("curve", []))


class Scores:
    """An encoder that says what it is asked, and whose objective takes labels that there are."""

    size = 2
    head_bias = True

    def objective(self, scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(labels, 2).mul(scores).sum()


def test_the_target_of_an_unseen_class_is_ignored():
    target = ClassTarget()
    target.fit([{"id": "1", "label": "a"}, {"id": "2", "label": "b"}])
    rows = [{"id": "dev-7", "label": "c"}, {"id": "dev-8", "label": "b"}]
    assert target.encode(rows, Words())["label"].tolist() == [IGNORED, 1]


@pytest.mark.parametrize("own", [False, True])
def test_the_dev_loss_leaves_unseen_classes_out(own):
    """Their loss is no number; that of a batch with nothing else is 0."""
    target = ClassTarget()
    target.labels = ["a", "b"]
    head = Classify(Scores(), target).eval()
    if own:
        head.output = None
    scores = torch.tensor([[2.0, 1.0], [0.5, 3.0]])
    assert head.loss(Scores(), scores, torch.tensor([IGNORED, IGNORED])).item() == 0.0
    known = head.loss(Scores(), scores[1:], torch.tensor([1]))
    assert torch.equal(head.loss(Scores(), scores, torch.tensor([IGNORED, 1])), known)


def test_the_dev_loss_of_a_batch_of_unseen_tags_is_no_nan():
    target = TagTarget()
    target.labels = ["a", "b"]
    head = Tag(Scores(), target).eval()
    outputs = torch.zeros(1, 3, 2), torch.ones(1, 3, dtype=torch.bool)
    assert head.loss(None, outputs, torch.full((1, 3), IGNORED)).item() == 0.0

"""A task's label tree reaches whoever asks for it, and nobody else."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import torch
from torch import nn

from harness import registry
from harness.contract.base import Flipped, floor_score
from harness.data.corpus import Corpus
from harness.kinds import TextEncoder
from harness.label_tree import LabelTree
from harness.objectives import Supervised
from harness.problems import problem
from harness.settings import TrainingSettings
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.training.model import build
from harness.views.words import Words


class Asks(TextEncoder):
    """Scores the classes, and keeps the tree that it was given."""

    needs_label_tree: ClassVar[bool] = True

    def __init__(self, width: int, classes: int, tree: LabelTree):
        super().__init__()
        self.tree, self.output = tree, nn.Linear(width, classes)

    def forward(self, words):
        return self.output(words.vectors.mean(1))


def corpus_of(id: str) -> Corpus:
    entry = registry.entry("tasks", id)
    return Corpus(registry.load(entry)(entry), "mini", None, Words(), Asks.output_form())


def test_a_constructor_that_asks_is_given_the_tree_over_the_classes_in_their_order():
    """Numbers of another order would join rec to the computers."""
    corpus = corpus_of("newsgroups20")
    model = build(Asks, corpus.problem, {}, corpus.view, corpus.target, 4)
    tree = model.encoder.tree
    assert tree.labels == corpus.target.labels and len(tree.labels) == 6
    assert tree.nodes[6:] == ["comp", "rec", "sci"]
    assert {tree.labels[child]: tree.nodes[parent] for parent, child in tree.edges} == {
        label: label.split(".")[0] for label in corpus.target.labels
    }


def test_the_tree_is_kept_with_the_target():
    """A model that is loaded again has no task to ask."""
    corpus = corpus_of("newsgroups20")
    target = problem("classify").target("class scores")
    target.restore(corpus.target.state())
    assert target.label_tree == corpus.task.label_tree
    assert "label_tree" not in corpus_of("ag_news").target.state(), "states of other tasks are what they were"


def test_a_task_without_a_tree_is_refused_with_the_reason():
    task = registry.entry("tasks", "ag_news")
    assert Asks.reason_to_skip(task, {}) == "needs a tree over the labels, and ag_news declares none"
    assert Asks.reason_to_skip(registry.entry("tasks", "newsgroups20"), {}) is None


def test_a_task_may_be_ruled_by_its_tree():
    """Every such cell failed after its pilots, and the check of each architecture with it."""
    corpus = corpus_of("newsgroups20")
    entry = dataclasses.replace(corpus.task.entry, main_metric="hierarchical_f1")
    train, dev = corpus.train.rows.to_list(), corpus.dev.rows.to_list()
    assert 0 < floor_score(entry, train, dev) < 1
    assert Flipped(entry, train, dev, dev).score([row["label"] for row in dev]) == 1


def test_dev_is_scored_by_the_tree(tmp_path):
    """The curve has hierarchical F1 after every epoch, as the record has."""
    corpus = corpus_of("newsgroups20")
    torch.manual_seed(0)
    model = build(Asks, corpus.problem, {}, corpus.view, corpus.target, 4)
    rules, entry = TrainingSettings(epochs=1, batch_size=64), corpus.task.entry
    metrics = entry.metrics, entry.main_metric
    training = FitModule(model, Supervised(), corpus.train, corpus.dev, rules, 0.01, 0, *metrics, whole_groups=False)
    fit(training, tmp_path, devices=1, strategy="auto", precision="32", max_epochs=1)
    [last] = training.curve
    assert 0 < last["hierarchical_f1"] <= 1

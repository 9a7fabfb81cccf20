"""Tables with sparse gradients: the rows that were read move as they would otherwise, the others
stay, and clipping knows both kinds."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from harness.objectives import Supervised
from harness.settings import TrainingSettings
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.training.lazy_updates import LazyAdam, clip_gradients, takes_rows
from harness.training.optimizers import optimizer
from harness.views.bag import Bag
from tests.support.toy_corpus import toy_corpus, toy_model

SETTINGS = TrainingSettings(batch_size=8, epochs=3, patience=10, clip=0.5, lr_schedule="linear")


class Twice(nn.Module):
    """A table (of which only rows 0 to 4 are ever read) and a layer."""

    def __init__(self, sparse: bool):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.EmbeddingBag(8, 3, mode="mean", sparse=sparse)
        self.layer = nn.Linear(3, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.layer(self.table(ids)).square().sum()


EVERY_ROW = torch.tensor([[0, 1, 2], [3, 4, 4]])
"""One row twice in a text: its gradient is the sum of both."""


def stepped(sparse: bool, maker: Any, batches: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights after a step on each batch."""
    model = Twice(sparse)
    chosen = maker(list(model.parameters()))
    for ids in batches:
        chosen.zero_grad()
        model(ids).backward()
        assert model.table.weight.grad.is_sparse == sparse
        clip_gradients(model.parameters(), 0.5)
        chosen.step()
    return model.state_dict()


@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_these_optimisers_do_with_rows_what_they_do_with_whole_gradients(name):
    def maker(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return optimizer(parameters, dataclasses.replace(SETTINGS, optimizer=name), 0.1)

    batches = [EVERY_ROW, EVERY_ROW[:1], EVERY_ROW[1:], EVERY_ROW]
    torch.testing.assert_close(stepped(True, maker, batches), stepped(False, maker, batches))


def adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return optimizer(parameters, SETTINGS, 0.1)


def test_lazy_adam_is_adam_for_rows_that_every_step_reads_and_for_dense_parameters():
    lazy, whole = (stepped(sparse, adam, [EVERY_ROW] * 4) for sparse in (True, False))
    torch.testing.assert_close(lazy, whole)
    plain = stepped(False, lambda parameters: torch.optim.Adam(parameters, lr=0.1, fused=True), [EVERY_ROW] * 4)
    assert all(torch.equal(plain[name], whole[name]) for name in plain), (
        "other architectures keep their results to the last digit"
    )


def test_lazy_adam_leaves_rows_alone_that_a_step_does_not_read_as_torchs_sparse_adam_does():
    batches = [EVERY_ROW, EVERY_ROW[:1], EVERY_ROW[:1], EVERY_ROW[1:]]
    tables = []
    for maker in (lambda table: LazyAdam([table], lr=0.1), lambda table: torch.optim.SparseAdam([table], lr=0.1)):
        model = Twice(sparse=True)
        chosen, seen = maker(model.table.weight), [model.table.weight.detach().clone()]
        for ids in batches:
            model.table.zero_grad()
            model(ids).backward()
            chosen.step()
            seen.append(model.table.weight.detach().clone())
        tables.append(seen)
    ours, theirs = tables
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
    assert torch.equal(ours[1][3:], ours[3][3:]) and not torch.equal(ours[0][3:5], ours[1][3:5])


@pytest.mark.parametrize("most", [0.1, 100.0])
def test_the_norm_of_a_sparse_gradient_is_that_of_the_whole_one(most):
    """A row that is read twice counts with the sum of its gradients, not with both."""
    sparse, whole = Twice(True), Twice(False)
    for model in (sparse, whole):
        model(EVERY_ROW).backward()
    norm = clip_gradients(sparse.parameters(), most)
    torch.testing.assert_close(norm, torch.nn.utils.clip_grad_norm_(whole.parameters(), most))
    torch.testing.assert_close(sparse.table.weight.grad.to_dense(), whole.table.weight.grad)
    torch.testing.assert_close(sparse.layer.weight.grad, whole.layer.weight.grad)


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        ({}, True),
        ({"optimizer": "sgd"}, True),
        ({"optimizer": "sgd", "momentum": 0.9}, False),
        ({"weight_decay": 0.1}, False),
    ]
    + [({"optimizer": name}, False) for name in ("adamw", "adamax", "adadelta", "rmsprop")],
)
def test_any_optimiser_trains_a_model_that_declares_a_sparse_table(change, rows, tmp_path):
    """With whole gradients, where torch has no step on rows or every row moves at every step."""
    kinds: set[bool] = set()
    one = training(dataclasses.replace(SETTINGS, **change))
    before = copy.deepcopy(one.model.state_dict())
    one.model.encoder.table.weight.register_post_accumulate_grad_hook(lambda weight: kinds.add(weight.grad.is_sparse))
    fit(one, tmp_path, 1, "auto", "32", 1)
    assert kinds == {rows} == {takes_rows(dataclasses.replace(SETTINGS, **change))}
    assert not torch.equal(before["encoder.table.weight"], one.model.encoder.table.weight)


def training(settings: TrainingSettings) -> FitModule:
    """One fit of fastText on the toy corpus."""
    corpus = toy_corpus(view=Bag(buckets=200))
    model = toy_model(corpus, "fasttext", hidden=4, buckets=200)
    return FitModule(model, Supervised(), corpus.train, corpus.dev, settings, 0.05, 0, ("accuracy",), "accuracy", False)


def test_a_fit_resumed_from_its_checkpoint_ends_as_the_whole_one(tmp_path: Path):
    """The moments of the table's rows are part of the checkpoint."""
    whole, again = training(SETTINGS), training(SETTINGS)
    fit(whole, tmp_path / "whole", 1, "auto", "32", 3)
    fit(training(SETTINGS), tmp_path / "parts", 1, "auto", "32", 1)
    fit(again, tmp_path / "parts", 1, "auto", "32", 3)
    assert len(again.curve) == 3
    assert all(torch.equal(a, b) for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True))

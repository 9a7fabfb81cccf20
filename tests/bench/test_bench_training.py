"""What the harness costs beside a bare loop over the same model and batches: read the ratio of the two rows (``make bench``)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harness import grid, protocols, registry
from harness.records import Cell
from harness.training import Training, fit, optimizer
from harness.worker import Assembly

EPOCHS = 5


@pytest.fixture(scope="module", params=["kim_cnn_rand", "bilstm"])
def assembly(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """A cell of mini sst2 under protocol equal, ready to train."""
    torch.set_num_threads(1)
    architecture, task = registry.entry("architectures", request.param), registry.entry("tasks", "sst2")
    settings = protocols.training("equal", architecture, task) | {"epochs": EPOCHS, "patience": EPOCHS, "learning_rates": [0.002]}
    chosen = grid.hyperparameters(architecture) | {"training": settings, "limits": {"max_train": None, "max_epochs": None}, "vectors": None}
    cell = Cell(architecture.id, 1, "sst2", 1, "mini", "equal", chosen, seed=0)
    work = tmp_path_factory.mktemp("work")
    return Assembly(cell, grid.Settings(work, None, (), 1, None, None, work))


def prepared(assembly: Assembly) -> Training:
    return assembly.training_of(assembly.model(0), 0.002)


def bare(training: Training) -> None:
    """The loop one would write by hand: same batches, optimiser and clipping, no callbacks, no dev evaluation."""
    from harness.batching import Batches

    model = training.model
    chosen = optimizer(list(model.parameters()), training.settings, training.lr)
    model.train()
    for epoch in range(EPOCHS):
        split = training.train_split
        batches = Batches(split.lengths, training.settings["batch_size"], split.collate, seed=0)
        batches.epoch = epoch
        for batch in batches:
            chosen.zero_grad()
            training.objective(batch).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), training.settings["clip"])
            chosen.step()


def test_bare_loop(benchmark, assembly: Assembly) -> None:
    benchmark.group = assembly.cell.architecture
    benchmark.pedantic(bare, setup=lambda: ((prepared(assembly),), {}), rounds=3, warmup_rounds=1)


def test_harness_loop(benchmark, assembly: Assembly, tmp_path: Path) -> None:
    """Dev evaluation is switched off (an empty dev split is not allowed: one row), so that the loops do the same work."""
    benchmark.group = assembly.cell.architecture
    numbers = iter(range(100))

    def setup():
        training = prepared(assembly)
        training.dev_split = training.dev_split.first(1)
        return (training, tmp_path / str(next(numbers)), 1, "auto", "32", EPOCHS), {}

    benchmark.pedantic(fit, setup=setup, rounds=3, warmup_rounds=1)

"""What the harness costs beside a bare PyTorch loop over the same model and batches: training
examples per second through both.

Real data where it is at hand, else the mini tier, whose epochs are so short that checkpoints weigh
more.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from harness.data.batches import Batches
from harness.objectives import Step
from harness.running.assembly import Assembly
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.training.optimizers import optimizer
from tools.speed.cells import assembly as assembled

CELLS = {
    "dan": ("sst2", None, 10),
    "kim_cnn_rand": ("sst2", 4000, 3),
    "bilstm": ("sst2", 4000, 3),
    "transformer": ("sst2", 1500, 2),
    "bilstm_crf": ("conll2003_ner", 3000, 3),
    "esim": ("snli", 1500, 2),
}
"""Task, training rows and epochs of each architecture: some seconds each."""


@pytest.fixture(params=CELLS)
def assembly(request: pytest.FixtureRequest, corpora_if_any: Path | None, tmp_path: Path) -> Assembly:
    """A cell under protocol equal at batch 64, ready to train."""
    torch.set_num_threads(1)
    task, rows, epochs = CELLS[request.param]
    changed = {"epochs": epochs, "patience": epochs, "learning_rates": [0.001], "batch_size": 64, "min_steps": 0}
    return assembled(request.param, task, corpora_if_any, tmp_path, rows=rows, **changed)


def bare(one: FitModule) -> None:
    """The loop one would write by hand: same batches, optimiser and clipping; no callbacks, no dev
    evaluation, no checkpoints."""
    model, split = one.model, one.splits["labelled"]
    chosen = optimizer(list(model.parameters()), one.settings, one.lr)
    batches = Batches(split.padded_lengths, one.settings.batch_size, split.collate, seed=0)
    model.train()
    for epoch in range(one.settings.epochs):
        batches.epoch = epoch
        for batch in batches:
            chosen.zero_grad()
            one.objective.losses(model, Step({"labelled": batch}, 0.0))["loss"].backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), one.settings.clip)
            chosen.step()


def test_training(beside, assembly: Assembly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dev is one row (none is not allowed) and not scored, so that both loops do the same work but
    for the harness's own."""
    task = assembly.task.entry
    monkeypatch.setattr("harness.training.fit_module.score", lambda *_: dict.fromkeys(task.metrics, 0.5))
    numbers = itertools.count()

    def prepare() -> tuple[FitModule]:
        one = assembly.training_of(assembly.model(0), 0.001)
        one.dev_split = one.dev_split.some(1, seed=0)
        return (one,)

    def harness(one: FitModule) -> None:
        fit(one, tmp_path / str(next(numbers)), 1, "auto", "32", one.settings.epochs)

    beside(
        f"training examples/s, {assembly.cell.architecture}",
        "a bare PyTorch loop",
        0.95,
        harness,
        bare,
        rounds=5,
        prepare=prepare,
        why=(
            "the difference is Lightning's start and end of a fit and of its epochs, the weights kept, and a checkpoint"
        ),
    )

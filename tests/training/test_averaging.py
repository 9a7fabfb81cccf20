"""The moving average of the weights: it answers in their place, and a short training forgets the
weights that it began with."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.data.corpus import Corpus
from harness.objectives import Supervised
from harness.settings import TrainingSettings
from harness.training.averaging import begun, share_kept
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from tests.support.toy_corpus import toy_corpus, toy_model


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return toy_corpus(gives="states")


class Watched(FitModule):
    """Keeps the trained weights before the first step and after each."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.seen = [self.weights()]

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: p.detach().clone() for name, p in self.model.named_parameters() if p.requires_grad}

    def optimise(self, batches: dict[str, Any]) -> None:
        super().optimise(batches)
        self.seen.append(self.weights())


def trained(corpus: Corpus, folder: Path, **settings: Any) -> Watched:
    """A training of two epochs, whose second is taken whatever dev says."""
    made = TrainingSettings(batch_size=8, epochs=2, patience=10, **settings)
    model = toy_model(corpus, "bilstm", hidden=4, dropout=0.0)
    module = Watched(model, Supervised(), corpus.train, corpus.dev, made, 0.01, 0, ("accuracy",), "accuracy", False)
    module.in_last_phase = lambda epoch: epoch == 2
    fit(module, folder, 1, "auto", "32", 2)
    return module


@pytest.mark.parametrize("warmup", [False, True])
def test_the_average_of_the_weights_answers(corpus, tmp_path, warmup):
    """Written out from the weights of all steps."""
    module = trained(corpus, tmp_path, averaging=0.9, averaging_warmup=warmup)
    average = copy.deepcopy(module.seen[0])
    for step, weights in enumerate(module.seen[1:]):
        kept = min(0.9, (1 + step) / (10 + step)) if warmup else 0.9
        average = {name: kept * average[name] + (1 - kept) * weights[name] for name in average}
    assert len(module.seen) > 4
    for name, parameter in module.model.named_parameters():
        if parameter.requires_grad:
            torch.testing.assert_close(parameter.detach(), average[name])
            assert not torch.equal(parameter, module.seen[-1][name])


def test_an_average_from_a_checkpoint_comes_to_the_devices_weights(corpus):
    """Checkpoints are read to the CPU: a resumed training on a GPU failed at its first step."""
    made = TrainingSettings(averaging=0.9)
    model = toy_model(corpus, "bilstm", hidden=4)
    module = FitModule(model, Supervised(), corpus.train, corpus.dev, made, 0.01, 0, ("accuracy",), "accuracy")
    module.average = begun(model)
    module.to("meta").on_train_epoch_start()
    assert {value.device.type for value in module.average.values()} == {"meta"}


def test_without_averaging_the_last_weights_answer(corpus, tmp_path):
    module = trained(corpus, tmp_path)
    for name, parameter in module.model.named_parameters():
        assert name not in module.seen[-1] or torch.equal(parameter, module.seen[-1][name])


def first_weights(settings: TrainingSettings, steps: int) -> float:
    """The share of the first weights in the average after so many steps."""
    share = 1.0
    for step in range(steps):
        share *= share_kept(settings, step)
    return share


def test_a_short_training_forgets_the_first_weights():
    """Of 140 steps, which few labels make, an average of decay .999 would be random weights by
    nine tenths, and answer by chance."""
    assert first_weights(TrainingSettings(averaging=0.999), 140) == pytest.approx(0.869, abs=0.001)
    assert first_weights(TrainingSettings(averaging=0.999, averaging_warmup=True), 140) < 1e-9


def test_a_long_training_has_the_decay_that_was_asked_for():
    settings = TrainingSettings(averaging=0.99, averaging_warmup=True)
    assert share_kept(settings, 880) < 0.99 == share_kept(settings, 1000)

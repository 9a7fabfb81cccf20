"""The check at default size: who learns, who stands at chance, and who is skipped."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from harness import registry
from harness.contract import default_size
from harness.contract.default_size import PASSES, cell_of, laid_over_passes, learned
from harness.errors import MissingWeights, UsageError
from harness.settings import TrainingSettings
from harness.training.optimizers import learning_rate_factor

PLUGIN = """
from collections import Counter
import torch
from harness.kinds import Estimator, TextEncoder
from harness.registry import Recipe, register

@register("learner", name="L", kind="text", paper="none", source="test", year=2026, recipe=Recipe(lr=0.01),
    tiny={"usable": True})
@register("constant", name="C", kind="text", paper="none", source="test", year=2026, recipe=Recipe(lr=0.01),
    hyperparameters={"usable": False}, tiny={"usable": True})
@register("exploding", name="E", kind="text", paper="none", source="test", year=2026,
    recipe=Recipe(lr=1e30, optimizer="sgd"))
class Mean(TextEncoder):
    def __init__(self, width, usable=True):
        super().__init__()
        self.size, self.usable = width, usable

    def forward(self, words):
        mean = (words.vectors * words.mask[..., None]).sum(1) / words.lengths[:, None]
        return mean * float(self.usable) * 10

@register("misfit", name="M", kind="fit", paper="none", source="test", year=2026)
class Misfit(Estimator):
    task_types = ()

@register("guesser", name="G", kind="fit", paper="none", source="test", year=2026)
class Guesser(Estimator):
    task_types = ("classify",)

    def fit(self, train, dev, unlabelled):
        self.label = train[0]["label"]

    def predict(self, rows):
        return [self.label] * len(rows)

@register("late", name="L", kind="fit", paper="none", source="test", year=2026)
class Late(Guesser):
    fitted = []

    def __init__(self, seed=0, epochs=3):
        super().__init__(seed)
        self.epochs = epochs

    def fit(self, train, dev, unlabelled):
        super().fit(train, dev, unlabelled)
        self.fitted.append(self.epochs)
        self.votes = {}
        for row in train if self.epochs >= 40 else ():
            for word in row["text"].split():
                self.votes.setdefault(word, Counter())[row["label"]] += 1

    def predict(self, rows):
        found = (sum((self.votes.get(word, Counter()) for word in row["text"].split()), Counter()) for row in rows)
        return [max(votes, key=votes.get, default=self.label) for votes in found]
"""


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory):
    """The entry of a plugin by id."""
    file = Path(tmp_path_factory.mktemp("plugin")) / "sizes.py"
    file.write_text(textwrap.dedent(PLUGIN))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.registry.finding._plugins", [])
        registry.add_plugin(file)
        yield lambda id: registry.entry("architectures", id)


def test_a_model_that_reads_its_words_learns(entry):
    found = learned(entry("learner"), seconds=60)
    assert found.word == "learns"
    assert found.dev > found.floor + 0.1
    assert found.epochs < 100


def test_default_sizes_count_and_not_the_tiny_ones(entry):
    """The contract builds the tiny model, which this plugin lets pass."""
    found = learned(entry("constant"), seconds=0.5)
    assert (found.word, found.task) == ("chance", "ag_news")
    assert found.test == found.floor == 0.25


def test_a_loss_that_is_no_number_is_named(entry):
    assert learned(entry("exploding"), seconds=5).word == "diverged"


def test_a_system_without_training_is_held_to_the_same_floor(entry):
    assert learned(entry("guesser"), seconds=5).word == "chance"


def test_a_system_that_trains_by_itself_gets_more_passes_too(entry):
    """word2vec drops most of the words of a small corpus, so its five passes see few."""
    found = learned(entry("late"), seconds=60)
    assert (found.word, found.epochs) == ("learns", 48)
    assert registry.load(entry("late")).fitted == [3, 12, 48]
    assert learned(entry("late"), seconds=0).epochs == 3, "there is no time for more"


def test_the_time_ends_a_training_that_gets_nowhere(entry):
    assert learned(entry("constant"), seconds=0.5).epochs < PASSES


def test_who_asks_for_more_trains_longer(entry):
    """The second round of ``make check-all``: it would else stop at the same epoch as the first."""
    first, second = (learned(entry("learner"), seconds=60, far=far) for far in (0.1, 0.72))
    assert second.epochs > first.epochs
    assert second.dev > first.dev


@pytest.mark.parametrize(
    "schedule",
    [
        {"lr_schedule": "step", "step_start": 5.0, "step_epochs": 0.5},
        {"lr_schedule": "step", "step_start": 3.0, "step_epochs": 3.0},
        {"lr_schedule": "inverse_epoch", "decay": 0.1},
        {"lr_schedule": "linear"},
    ],
)
def test_the_rate_falls_at_the_same_shares_of_a_longer_training(schedule):
    """Halved every half pass over a few texts, the rate is gone before anything is learnt."""
    recipe = TrainingSettings(lr=1.0, epochs=10, **schedule)
    longer = laid_over_passes(recipe)
    assert (longer.epochs, longer.patience) == (PASSES, PASSES)
    a, b = learning_rate_factor(recipe, 30), learning_rate_factor(longer, 1)
    assert a(0) == b(0) == 1 and a(299) < 0.6
    assert [b(step) for step in range(0, 300, 30)] == pytest.approx([a(step) for step in range(0, 300, 30)])


def test_dev_lowers_the_rate_as_far_in_a_longer_training():
    recipe = TrainingSettings(lr=1.0, epochs=10, lr_schedule="plateau", factor=0.2)
    assert laid_over_passes(recipe).factor ** PASSES == pytest.approx(0.2**10)


def test_another_task_can_be_asked_for(entry):
    """Such as one whose classes are unevenly common, which the first task does not show."""
    assert learned(entry("learner"), seconds=60, task=registry.entry("tasks", "ohsumed")).task == "ohsumed"


def test_a_row_without_its_weights_says_so(monkeypatch):
    """It is skipped by name and not called chance."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingWeights, match="neither a folder"):
        learned(registry.entry("architectures", "bert_base"))


def test_an_architecture_without_a_task_says_why(entry):
    with pytest.raises(UsageError, match="misfit fits no task: "):
        cell_of(entry("misfit"), list(registry.entries("tasks").values()))


def test_a_crash_is_the_result_of_one_check(entry, monkeypatch):
    """It came behind minutes of other checks, whose results were lost with it."""

    def crashes(entry):
        raise AssertionError("embed_dim must be divisible by num_heads")

    monkeypatch.setattr(default_size, "learned", crashes)
    found = default_size.as_shipped(entry("learner"))
    assert (found.passed, found.message) == (False, "AssertionError: embed_dim must be divisible by num_heads")

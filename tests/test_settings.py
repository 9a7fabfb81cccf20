"""Settings of a training: the fit does what they say, and what they leave out keeps keys."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from harness import registry
from harness.objectives import Supervised
from harness.settings import _WANTED, Limits, Recipe, TrainingSettings
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.training.optimizers import exempt, freeze, learning_rate_factor, optimizer, parameter_groups
from harness.training.protocols import EQUAL, SMOKE
from tests.support.toy_corpus import sentences, toy_corpus, toy_model, toy_task

RECORDS = Path(__file__).resolve().parents[1] / "results" / "records"
SETTINGS = TrainingSettings(optimizer="sgd", lr=0.1, batch_size=8, epochs=4, patience=9)


def factors(steps: list[int], per_epoch: int = 10, **settings: object) -> list[float]:
    factor = learning_rate_factor(dataclasses.replace(SETTINGS, **settings), per_epoch)
    return [factor(step) for step in steps]


def test_settings_of_every_committed_cell_come_back_as_they_were():
    """Another key for the same cell would run the whole grid again."""
    files = sorted(RECORDS.glob("*/*/*.json"))
    assert files
    for file in files:
        values = json.loads(file.read_text())["hyperparameters"].get("training")
        if values:
            assert TrainingSettings.from_dict(values).to_dict() == values, file.name


@pytest.mark.parametrize("settings", [EQUAL, SMOKE, Recipe(betas=(0.9, 0.98), groups=(("table.*", 0.1),))])
def test_settings_come_back_from_a_record(settings):
    for complete in (False, True):
        values = json.loads(json.dumps(settings.to_dict(complete)))
        assert TrainingSettings.from_dict(values) == settings
    assert ("betas" in settings.to_dict()) == (settings.betas is not None), "what is at its default is not said"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"optimizer": "lion"}, "training.optimizer: 'lion' is none of adam"),
        ({"lr_schedule": "cosin"}, "training.lr_schedule: 'cosin' is none of constant"),
        ({"reduction": "sum"}, "training.reduction: 'sum' is none of mean, sentence, batch"),
        ({"decay_exempt": ("norm",)}, "training.decay_exempt: 'norm' is none of biases, norms, vectors"),
        ({"lr": 0.0}, "training.lr: 0.0 is not a positive number"),
        ({"lr": ()}, "training.lr"),
        ({"warmup_share": 1.0}, "training.warmup_share: 1.0 is not a share"),
        ({"averaging": -0.1}, "training.averaging"),
        ({"epochs": 0}, "training.epochs: 0 is not a whole number from 1"),
        ({"epochs": None}, "training.epochs: None is not a whole number from 1"),
        ({"patience": 0}, "training.patience: 0 is not a whole number from 1"),
        ({"min_steps": -4}, "training.min_steps: -4 is not a whole number from 0"),
        ({"warmup_steps": 2.5}, "training.warmup_steps: 2.5 is not a whole number from 0"),
        ({"batch_size": True}, "training.batch_size: True is not a whole number from 1"),
        ({"lr": ("a",)}, "training.lr: .'a',. is not a positive number, or a list .*learning_rates in -o"),
        ({"weight_decay": -1.0}, "training.weight_decay: -1.0 is not a number from 0"),
        ({"layer_decay": math.nan}, "training.layer_decay: nan is not a number from 0"),
        ({"first_sum": math.inf}, "training.first_sum: inf is not a number from 0"),
        ({"step_epochs": 0}, "training.step_epochs: 0 is not a positive number"),
        ({"rho": "high"}, "training.rho: 'high' is not a share"),
        ({"clip": "none"}, "training.clip: 'none' is not a positive norm; None leaves gradients as they are"),
        ({"shared_words": None}, "training.shared_words: None is not True or False"),
        ({"decay_exempt": "norms"}, "training.decay_exempt: 'norms' is not a list of some of biases, norms"),
        ({"groups": ("table.*", 2.0)}, "training.groups: .'table..', 2.0. is not a list of pairs"),
        ({"groups": (("table.*", -1.0),)}, "training.groups: .* is not a list of pairs of a pattern and a factor"),
        ({"clip": -5.0}, "training.clip: -5.0 is not a positive norm"),
        ({"betas": 0.9}, "training.betas: 0.9 is not two shares"),
        ({"betas": (0.9,)}, "training.betas: .0.9,. is not two shares"),
        ({"betas": (0.9, 1.0)}, "training.betas: .0.9, 1.0. is not two shares"),
    ],
)
def test_settings_that_no_training_can_have_are_refused_by_name(values, message):
    """Else one mistyped ``-o`` ends the whole grid in a traceback, or is recorded as a setting of a
    training that it did not change."""
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**values)


def test_every_setting_has_a_test_of_its_values_or_names_to_choose_from():
    """Whoever adds a setting would otherwise let any value of it through."""
    chosen_by_name = {"optimizer", "lr_schedule", "reduction"}
    assert {field.name for field in dataclasses.fields(TrainingSettings)} == set(_WANTED) | chosen_by_name


@pytest.mark.parametrize("rates", [None, 0.1, [], [[]], ["a"], "0.1", {"a": 1}])
def test_rates_of_a_record_that_are_no_list_of_rates_are_refused(rates):
    """A foreign record or an override with such rates must be named, not end in a ``TypeError``."""
    if rates == 0.1:
        assert TrainingSettings.from_dict({"learning_rates": rates}).learning_rates == (0.1,)
    else:
        with pytest.raises(ValueError, match=r"training\.lr: .* is not a positive number, or a list"):
            TrainingSettings.from_dict({"learning_rates": rates})


def test_every_registered_recipe_is_one_that_a_training_can_have():
    """A stricter test of values would otherwise take an architecture out of every grid."""
    types, architectures = list(registry.entries("problems")), registry.entries("architectures").values()
    recipes = {entry.recipe_on(type) for entry in architectures for type in types}
    assert len(recipes) > 100
    for settings in recipes:
        assert TrainingSettings.from_dict(json.loads(json.dumps(settings.to_dict(complete=True)))) == settings


def test_a_setting_that_does_not_exist_is_named_with_a_near_one():
    with pytest.raises(ValueError, match=r"training\.beta: no such setting; did you mean betas"):
        TrainingSettings.from_dict({"beta": 1})


@pytest.mark.parametrize(
    ("limits", "name", "labelled"),
    [
        (Limits(), "full", None),
        (Limits(labels=100), "100_labels", 100),
        (Limits(2000, None, "small", 100), "small_100_labels", 100),
        (Limits(50, None, "small", 100), "small_100_labels", 50),
        (Limits(50), "custom", 50),
    ],
)
def test_a_number_of_labels_makes_a_budget_with_a_name(limits, name, labelled):
    """Rows with 100 labels are compared with each other, and never with those of all."""
    assert (limits.name, limits.labelled) == (name, labelled)
    assert Limits.of({"limits": limits.to_dict()}) == limits
    assert ("labels" in limits.to_dict()) == (limits.labels is not None), "no key of a present cell changes"


def test_limits_of_a_foreign_record_are_none():
    assert Limits.of({}) == Limits(None, None) == Limits.of({"limits": None})
    assert Limits.of({"limits": {"max_train": 5, "max_epochs": None}}) == Limits(5, None)


# --- schedules ---


def test_steps_halve_after_every_so_many_epochs_from_a_start():
    """Sutskever et al. 2014: every half epoch after the fifth."""
    found = factors([0, 49, 50, 54, 55, 60], lr_schedule="step", step_start=5.0, step_epochs=0.5)
    assert found == [1, 1, 0.5, 0.5, 0.25, 0.125]


def test_a_cosine_falls_from_one_to_the_lowest():
    found = factors([0, 10, 20, 40], lr_schedule="cosine", lowest=0.1)
    assert found == pytest.approx(
        [1.0, 0.1 + 0.9 * (1 + math.cos(math.pi * 9 / 39)) / 2, 0.1 + 0.9 * (1 + math.cos(math.pi * 19 / 39)) / 2, 0.1]
    )


def test_a_slanted_triangle_rises_over_its_share_and_falls_to_the_end():
    """Howard and Ruder 2018: a tenth of the steps up, the rest down, at least 1/32."""
    found = factors([0, 3, 4, 22, 40], lr_schedule="slanted_triangle", warmup_share=0.1, lowest=1 / 32)
    wanted = [0.25, 1.0, 1.0, 0.5, 0.0]
    assert found == pytest.approx([1 / 32 + (1 - 1 / 32) * share for share in wanted])


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine", "step", "inverse_epoch"])
def test_a_warm_up_by_share_is_one_by_steps(schedule):
    by_share = factors(list(range(40)), lr_schedule=schedule, warmup_share=0.1, decay=0.5, step_start=1.0)
    by_steps = factors(list(range(40)), lr_schedule=schedule, warmup_steps=4, decay=0.5, step_start=1.0)
    assert by_share == by_steps
    assert by_share[0] == pytest.approx(0.25, rel=0.1)


# --- groups, exemptions, frozen parameters ---


class Layered(nn.Module):
    """The names that a model's parameters have."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.encoder.norm = nn.LayerNorm(2)
        self.encoder.pooler = nn.Sequential(nn.Linear(2, 2, bias=False))
        self.table = nn.Embedding(3, 2)
        self.head = nn.Linear(2, 2)


def rates(settings: TrainingSettings) -> dict[str, tuple[float, float]]:
    """Rate and weight decay of each trained parameter."""
    model = Layered()
    freeze(model, settings)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = parameter_groups(model.named_parameters(), settings, 0.1, exempt(model, settings.decay_exempt))
    made = optimizer(groups, settings, 0.1)
    return {names[id(p)]: (group["lr"], group["weight_decay"]) for group in made.param_groups for p in group["params"]}


def test_a_group_has_its_own_rate_and_the_first_match_counts():
    found = rates(dataclasses.replace(SETTINGS, groups=(("table.*", 0.5), ("*", 2.0))))
    assert found["table.weight"] == (pytest.approx(0.05), 0.0)
    assert found["head.weight"] == (pytest.approx(0.2), 0.0)


def test_a_frozen_group_is_not_trained():
    found = rates(dataclasses.replace(SETTINGS, groups=(("encoder.layers.0.*", 0.0),)))
    assert "encoder.layers.0.weight" not in found and "encoder.layers.1.weight" in found


def test_a_pattern_that_matches_nothing_is_refused():
    with pytest.raises(ValueError, match=r"training\.groups: no parameter is called 'tabel\.\*'"):
        rates(dataclasses.replace(SETTINGS, groups=(("tabel.*", 0.5),)))


def test_rates_fall_from_the_output_to_the_vectors():
    found = rates(dataclasses.replace(SETTINGS, layer_decay=0.5))
    depths = {"head.weight": 0, "encoder.layers.1.weight": 1, "encoder.layers.0.weight": 2, "table.weight": 3}
    depths["encoder.pooler.0.weight"] = 0  # it stands behind all layers, though it has a number
    assert {name: found[name][0] for name in depths} == pytest.approx({n: 0.1 * 0.5**d for n, d in depths.items()})


def test_the_tables_within_an_encoder_have_the_full_rate():
    """The docstring says so: whoever sets ``layer_decay`` for BERT must know what it leaves out."""
    names = ("encoder.table.weight", "encoder.pooler.0.weight", "encoder.embedding.weight", "encoder.layers.0.weight")
    named = {name: nn.Parameter(torch.ones(1)) for name in names}
    groups = parameter_groups(named.items(), dataclasses.replace(SETTINGS, layer_decay=0.5), 0.1, frozenset())
    called = {id(parameter): name for name, parameter in named.items()}
    found = {called[id(parameter)]: group["lr"] for group in groups for parameter in group["params"]}
    assert found == pytest.approx(dict(zip(names, (0.1, 0.1, 0.025, 0.05), strict=True)))


@pytest.mark.parametrize(
    ("kinds", "free"),
    [
        (("biases",), {"encoder.layers.0.bias", "encoder.layers.1.bias", "encoder.norm.bias", "head.bias"}),
        (("norms",), {"encoder.norm.weight", "encoder.norm.bias"}),
        (("vectors",), {"table.weight"}),
    ],
)
def test_weight_decay_leaves_out_what_it_is_told_to(kinds, free):
    found = rates(dataclasses.replace(SETTINGS, weight_decay=0.3, decay_exempt=kinds))
    assert {name for name, (_, decay) in found.items() if not decay} == free


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        ({"optimizer": "adam", "betas": (0.8, 0.9)}, "betas", (0.8, 0.9)),
        ({"optimizer": "adamw", "eps": 1e-4}, "eps", 1e-4),
        ({"optimizer": "adadelta", "rho": 0.95}, "rho", 0.95),
        ({"optimizer": "rmsprop", "alpha": 0.9}, "alpha", 0.9),
        ({"optimizer": "sgd", "momentum": 0.7}, "momentum", 0.7),
        ({"optimizer": "adagrad", "first_sum": 0.1}, "initial_accumulator_value", 0.1),
    ],
)
def test_an_optimisers_own_settings_reach_it(settings, name, value):
    made = optimizer([nn.Parameter(torch.ones(1))], dataclasses.replace(SETTINGS, **settings), 0.1)
    assert made.param_groups[0][name] == value


# --- in a fit ---


def trained(folder: Path, epochs: int = 2, **settings: object) -> FitModule:
    corpus = toy_corpus(toy_task(train=sentences(32)))
    model = toy_model(corpus)
    changed = dataclasses.replace(SETTINGS, **settings)
    splits = corpus.train, corpus.dev
    one = FitModule(model, Supervised(settings=changed), *splits, changed, 0.1, 0, ["accuracy"], "accuracy")
    fit(one, folder, 1, "auto", "32", epochs)
    return one


def test_averaged_weights_answer_in_place_of_the_last(tmp_path):
    """Written out: the average follows each step's weights by a tenth."""
    followed: list[dict[str, torch.Tensor]] = []

    class Watched(FitModule):
        def optimise(self, batches):
            super().optimise(batches)
            followed.append({name: p.detach().clone() for name, p in self.model.named_parameters()})

    corpus = toy_corpus(toy_task(train=sentences(32)))
    model = toy_model(corpus)
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    settings = dataclasses.replace(SETTINGS, averaging=0.9)
    splits = corpus.train, corpus.dev
    one = Watched(model, Supervised(), *splits, settings, 0.1, 0, ["accuracy"], "accuracy")
    fit(one, tmp_path, 1, "auto", "32", 1)
    expected = start
    for weights in followed:
        expected = {name: 0.9 * value + 0.1 * weights[name] for name, value in expected.items()}
    for name, parameter in one.model.named_parameters():
        torch.testing.assert_close(parameter.detach(), expected[name], msg=name)


def test_weight_decay_leaves_out_the_same_of_an_objectives_own_modules(tmp_path):
    """The biases of a generator were pulled to zero beside those of a model that were not."""

    class Own(Supervised):
        def __init__(self) -> None:
            super().__init__()
            self.generator = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))

    corpus = toy_corpus(toy_task(train=sentences(32)))
    kinds = {"weight_decay": 0.3, "decay_exempt": ("biases", "norms")}
    settings = dataclasses.replace(SETTINGS, **kinds)
    splits = corpus.train, corpus.dev
    one = FitModule(toy_model(corpus), Own(), *splits, settings, 0.1, 0, ["accuracy"], "accuracy")
    fit(one, tmp_path, 1, "auto", "32", 1)
    names = {id(parameter): name for name, parameter in one.objective.named_parameters()}
    groups = one.optimizers().param_groups
    decayed = {names[id(p)] for group in groups if group["weight_decay"] for p in group["params"] if id(p) in names}
    assert decayed == {"generator.0.weight"}


def test_smoothed_labels_are_those_of_training_alone(tmp_path):
    corpus = toy_corpus()
    model, batch = toy_model(corpus), corpus.train.collate(np.arange(8))
    model.head.label_smoothing = 0.2
    scores = model(batch.inputs)
    plain = nn.functional.cross_entropy(scores, batch.target)
    smooth = nn.functional.cross_entropy(scores, batch.target, label_smoothing=0.2)
    torch.testing.assert_close(model.train().head.loss(model.encoder, scores, batch.target), smooth)
    torch.testing.assert_close(model.eval().head.loss(model.encoder, scores, batch.target), plain)


def test_a_plateau_lowers_the_rate_after_an_epoch_that_is_not_the_best(tmp_path, monkeypatch):
    from harness.training import fit_module

    scores = iter([0.5, 0.4, 0.6, 0.6])
    monkeypatch.setattr(fit_module, "score", lambda *_: {"accuracy": next(scores)})
    monkeypatch.setattr(fit_module, "predict_with_loss", lambda *_: ([], 1.0))
    used: list[float] = []

    class Watched(FitModule):
        def on_train_epoch_start(self):
            super().on_train_epoch_start()

        def optimise(self, batches):
            used.append(self.optimizers().param_groups[0]["lr"])
            super().optimise(batches)

    corpus = toy_corpus(toy_task(train=sentences(32)))
    settings = dataclasses.replace(SETTINGS, lr_schedule="plateau", factor=0.5)
    splits = corpus.train, corpus.dev
    one = Watched(toy_model(corpus), Supervised(), *splits, settings, 0.1, 0, ["accuracy"], "accuracy")
    fit(one, tmp_path, 1, "auto", "32", 4)
    assert one.plateau == 0.25, "halved after the second and the fourth epoch"
    assert used == pytest.approx([0.1] * 8 + [0.05] * 8), "from the first step of the next epoch on"

"""Objectives: each thing that a paper's training needs beside one supervised loss, by a small fake,
on one process and on two."""

from __future__ import annotations

import dataclasses
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from harness import registry
from harness.data.batches import Streams
from harness.data.corpus import Corpus
from harness.errors import UsageError
from harness.kinds import TextEncoder
from harness.objectives import Step, Supervised, add_loss, collected_choices, collected_losses, tell_choice
from harness.problems import problem
from harness.running.request import Request
from harness.running.session import Session
from harness.settings import TrainingSettings
from harness.training.fit import fit, part
from harness.training.fit_module import FitModule
from harness.training.model import Model, build, objective_of
from tests.support import fake_objectives
from tests.support.fake_objectives import ALL, Adversary, Annealed, Carried, Consistent, Distilled, Skimming
from tests.support.ranks import results_by_rank, share_batches_of_eight
from tests.support.toy_corpus import sentences, toy_corpus, toy_model, toy_task

SETTINGS = TrainingSettings(optimizer="sgd", lr=0.5, batch_size=8, epochs=2, patience=9)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return toy_corpus(toy_task(train=sentences(30)))


def training(corpus: Corpus, kind: type, model: Model | None = None, **settings: Any) -> FitModule:
    """One fit of a small model by an objective."""
    settings = dataclasses.replace(SETTINGS, **settings)
    model = model or toy_model(corpus)
    objective = kind(model.encoder, model, Supervised(settings=settings))
    unlabelled = corpus.unlabelled if "unlabelled" in objective.streams else None
    splits = corpus.train, corpus.dev
    return FitModule(
        model, objective, *splits, settings, settings.lr, 0, ["accuracy"], "accuracy", unlabelled=unlabelled
    )


def trained(corpus: Corpus, kind: type, folder: Path, **settings: Any) -> FitModule:
    one = training(corpus, kind, **settings)
    fit(one, folder, 1, "auto", "32", one.settings.epochs)
    return one


# --- what a step is given ---


@pytest.mark.parametrize("kind", ALL)
def test_every_kind_of_objective_trains(corpus, kind, tmp_path):
    one = trained(corpus, kind, tmp_path)
    assert len(one.curve) == 2 and all(np.isfinite(list(row.values())).all() for row in one.curve)


def test_a_policy_is_moved_by_the_loss_of_each_text(corpus):
    """A reward that is the batch's mean would praise the decisions on its worst texts."""
    model, batch = toy_model(corpus), corpus.train.collate(np.arange(6))
    objective = Skimming(None, model)
    torch.manual_seed(1)
    objective.losses(model, Step({"labelled": batch}, 0.0))["policy"].backward()
    torch.manual_seed(1)
    reads = torch.distributions.Bernoulli(logits=torch.zeros(6)).sample()
    words = model.read(batch.inputs)["text"]
    costs = [
        nn.functional.cross_entropy(
            model.head(model.encoder, {"text": words._replace(vectors=words.vectors * reads[:, None, None])})[i],
            batch.target[i],
        ).item()
        for i in range(6)
    ]
    # The derivative of the log-probability of a fair coin's side is 1/2 or -1/2.
    expected = sum(cost * (0.5 if read else -0.5) for cost, read in zip(costs, reads, strict=True)) / 6
    assert objective.bias.grad.item() == pytest.approx(expected, rel=1e-5)


def test_progress_grows_from_nothing_over_all_epochs_and_named_losses_are_columns(corpus, tmp_path):
    one = trained(corpus, Annealed, tmp_path)
    weights = [row["train_weight"] for row in one.curve]
    steps = 2 * 4  # thirty rows in batches of 8; an epoch's mean weighs the batches by their rows
    assert weights[0] < 4 / steps <= weights[1] < 1
    assert {"train_penalty", "train_weight"} <= set(one.curve[0])
    assert one.curve[0]["train_loss"] > 0


def test_an_unlabelled_batch_stands_beside_each_labelled_one(corpus, tmp_path):
    one = trained(corpus, Consistent, tmp_path)
    assert one.curve[0]["train_unlabelled"] > 0
    pairs = list(itertools.chain(*one.train_dataloader()))
    assert sorted(np.concatenate([labelled for labelled, _ in pairs])) == list(range(30)), "each labelled row once"
    assert any(set(a) != set(b) for a, b in pairs), "the streams are shuffled apart"


def test_a_stream_that_nobody_feeds_is_refused_by_name(corpus):
    class Translated(Supervised):
        streams = ("labelled", "translations")

    with pytest.raises(ValueError, match="Translated reads translations batches: there are none here"):
        training(corpus, lambda owner, model, inner: Translated(owner, model))


def test_a_frozen_teacher_stays_as_it_is_and_does_not_answer(corpus, tmp_path):
    one = training(corpus, Distilled)
    before = {name: value.clone() for name, value in one.objective.teacher.state_dict().items()}
    fit(one, tmp_path, 1, "auto", "32", 2)
    after = one.objective.teacher.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert any(name.startswith("objective.teacher") for name in torch.load(tmp_path / "last.ckpt")["state_dict"])
    assert not any("teacher" in name for name in one.model.state_dict()), "what answers is the model alone"


def test_each_player_moves_along_its_own_loss_alone(corpus):
    """Written out: a model that also moved along the discriminator's loss would help it."""
    one, rows = training(corpus, Adversary), np.arange(8)
    batch = corpus.train.collate(rows)
    losses = one.objective.losses(one.model, Step({"labelled": batch}, 0.0))
    expected = {}
    for name, members in one.objective.players(one.model).items():
        members = [(n, p) for n, p in members if p.requires_grad]
        gradients = torch.autograd.grad(losses[name], [p for _, p in members], retain_graph=True)
        expected |= {n: p.detach() - 0.5 * g for (n, p), g in zip(members, gradients, strict=True)}
    one.batches = lambda stream="labelled": _Once(rows)  # one step of both optimisers
    fit(one, Path(os.devnull).parent / "none", 1, "auto", "32", 1, pilot=True)
    moved = dict(one.model.named_parameters())
    moved |= {f"objective.{name}": parameter for name, parameter in one.objective.named_parameters()}
    for name, value in expected.items():
        torch.testing.assert_close(moved[name].detach(), value, msg=name)


def test_a_group_may_name_parameters_of_one_player_alone(corpus, tmp_path):
    """Any group that a user gave a training of several players was refused: each optimiser asked
    for a parameter of that name among its own."""
    one = trained(corpus, Adversary, tmp_path, groups=(("table.*", 0.5), ("objective.*.bias", 0.0)))
    own, discriminator = one.optimizers()
    assert sorted(group["initial_lr"] for group in own.param_groups) == [0.25, 0.5]
    assert [len(group["params"]) for group in discriminator.param_groups] == [1]


def test_a_group_that_no_player_has_is_refused(corpus, tmp_path):
    """A misspelt name would be recorded, and change nothing."""
    with pytest.raises(ValueError, match=r"training\.groups: no parameter is called 'tabel\.\*'"):
        trained(corpus, Adversary, tmp_path, groups=(("tabel.*", 0.5),))


def test_a_loss_of_the_encoders_own_has_no_labels_to_smooth(corpus):
    """A user's share of smoothing put a cross-entropy of lengths in the place of a capsule
    network's margin loss, and the record said nothing of it."""
    model = toy_model(corpus, "text_caps", maps=2, capsules=1, size=2, class_size=2, longest=8)
    assert model.head.smooths, "above other encoders the same head does"
    with pytest.raises(ValueError, match="label_smoothing: the loss of TextCapsules has no labels to smooth"):
        training(corpus, Supervised, model, label_smoothing=0.1)


class _Once:
    epoch = 0

    def __init__(self, rows: np.ndarray):
        self._rows = rows

    def rows(self) -> list[np.ndarray]:
        return [self._rows]

    def __len__(self) -> int:
        return 1


def test_state_is_carried_along_rows_that_are_read_in_order_once_an_epoch(corpus, tmp_path):
    one = trained(corpus, Carried, tmp_path)
    epochs = [one.objective.rows[:4], one.objective.rows[4:]]
    for rows in epochs:
        assert sorted(itertools.chain(*rows)) == list(range(30))
        for earlier, later in itertools.pairwise(rows):
            assert later == [row + 1 for row in earlier[: len(later)]], "row t of each stream follows row t - 1"
    assert one.objective.fresh == [True, False, False, False] * 2, "an epoch begins without state"


@pytest.mark.parametrize("pilot", [False, True])
def test_each_pass_over_rows_in_their_order_begins_without_state(corpus, tmp_path, pilot):
    """Also where an epoch, or a pilot, has several passes. Fewer streams end a pass than begin
    the next: a language model failed there, or read on from the end of another text."""
    settings = {"epochs": 20} if pilot else {"epochs": 2, "min_steps": 16}
    one = training(corpus, Carried, **settings)
    fit(one, tmp_path, 1, "auto", "32", one.settings.epochs, pilot=pilot)
    assert [len(rows) for rows in one.objective.rows[:5]] == [8, 8, 8, 6, 8]
    assert one.passes_per_epoch == (1 if pilot else 2)
    assert one.objective.fresh == [True, False, False, False] * (2 if pilot else 4)


@pytest.mark.parametrize("rows", [7, 30, 31, 64, 65, 100])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_streams_read_every_row_once_in_equally_many_steps(rows, world):
    """A step less on one process leaves the others waiting for ever."""
    processes = [Streams(rows, 8, rank, world) for rank in range(world)]
    assert len({len(streams) for streams in processes}) == 1
    read = [row for streams in processes for batch in streams.rows() for row in batch]
    assert sorted(read) == list(range(rows))
    assert all(1 <= len(batch) <= 8 for streams in processes for batch in streams.rows())


# --- terms that an encoder adds ---


class Penalised(TextEncoder):
    """Mean of the vectors, with a penalty of 2 for each pass."""

    def __init__(self, width: int):
        super().__init__()
        self.size, self.layer = width, nn.Linear(width, width)

    def forward(self, words: Any) -> torch.Tensor:
        self.add_loss("penalty", torch.tensor(2.0))
        return self.layer(words.vectors.mean(1))


def penalised(corpus: Corpus) -> Model:
    torch.manual_seed(0)
    return build(Penalised, corpus.problem, {}, corpus.view, corpus.target, 8)


def test_what_an_encoder_adds_is_minimised_and_shown(corpus):
    """Deleting the sum would leave every penalty of the house without effect."""
    model, batch = penalised(corpus), corpus.train.collate(np.arange(8))
    losses = objective_of(model, SETTINGS).losses(model, Step({"labelled": batch}, 0.0))
    assert losses["penalty"].item() == 2.0
    torch.testing.assert_close(losses["loss"], losses["task"] + 2.0)
    torch.testing.assert_close(losses["task"], model.head.loss(model.encoder, model(batch.inputs), batch.target))
    torch.testing.assert_close(model.loss(batch), losses["loss"])


def test_terms_of_one_pass_do_not_reach_the_next(corpus):
    model, batch = penalised(corpus), corpus.train.collate(np.arange(8))
    model(batch.inputs)  # outside training: nobody collects
    for _ in range(2):
        assert Supervised().losses(model, Step({"labelled": batch}, 0.0))["penalty"].item() == 2.0
    with collected_losses() as outer:
        add_loss("a", torch.tensor(1.0))
        with collected_losses() as inner:
            add_loss("a", torch.tensor(5.0))
        add_loss("a", torch.tensor(1.0))
    assert (outer["a"].item(), inner["a"].item()) == (2.0, 5.0)


# --- choices that an encoder tells ---


class Choosy(Penalised):
    """Tells of each text how many words it has."""

    def forward(self, words: Any) -> torch.Tensor:
        self.tell_choice("words", words.lengths.double().requires_grad_())
        return super().forward(words)


def test_choices_are_told_to_who_asks(corpus):
    """Each pass by itself; nobody trains by them."""
    torch.manual_seed(0)
    model = build(Choosy, corpus.problem, {}, corpus.view, corpus.target, 8)
    batches = [corpus.train.collate(np.arange(8)), corpus.train.collate(np.arange(3))]
    model(batches[0].inputs)  # nobody asks
    with collected_choices() as told:
        for batch in batches:
            model(batch.inputs)
    assert list(told) == ["words"] and not told["words"][0].requires_grad
    assert [each.tolist() for each in told["words"]] == [b.inputs["text"].lengths.tolist() for b in batches]
    with collected_choices() as outer:
        with collected_choices() as inner:
            tell_choice("a", torch.ones(2))
        tell_choice("b", torch.ones(1))
    assert (list(outer), list(inner)) == (["b"], ["a"])
    model(batches[0].inputs)
    assert len(told["words"]) == 2


def test_an_older_plugins_auxiliary_loss_is_minimised(corpus, monkeypatch):
    model, batch = toy_model(corpus), corpus.train.collate(np.arange(8))
    plain = model.loss(batch)
    monkeypatch.setattr(type(model.encoder), "auxiliary_loss", lambda self: torch.tensor(3.0), raising=False)
    torch.testing.assert_close(model.loss(batch), plain + 3.0)


# --- what the loss is summed over ---


def test_reductions_sum_over_what_they_name(corpus):
    """A rate that a paper states for sums is 32 times too small for means."""
    model, batch = toy_model(corpus), corpus.train.collate(np.arange(8))
    rows = [model.loss(corpus.train.collate(np.array([i]))) for i in range(8)]
    expected = {"mean": sum(rows) / 8, "sentence": sum(rows) / 8, "batch": sum(rows)}
    for reduction, value in expected.items():
        settings = dataclasses.replace(SETTINGS, reduction=reduction)
        found = Supervised(settings=settings).losses(model, Step({"labelled": batch}, 0.0))["loss"]
        torch.testing.assert_close(found, value, msg=reduction)


# --- several processes ---


def every_objective_trained(folder: Path, devices: int) -> dict[str, dict[str, Any]]:
    """Results of every fake objective in this process, which trains with so many others."""
    share_batches_of_eight(30, devices)
    corpus, told = toy_corpus(toy_task(train=sentences(30))), {}
    for kind in ALL:
        one = training(corpus, kind, batch_size=8 // devices)
        fit(one, folder / kind.__name__, devices, "ddp", "32", 2)
        told[kind.__name__] = {
            "parameters": {name: value.tolist() for name, value in one.state_dict().items()},
            "curve": one.curve,
            "rows": getattr(one.objective, "rows", []),
        }
    part()
    return told


@pytest.mark.slow
def test_two_processes_train_every_objective_as_one_does(tmp_path):
    """Two gloo processes with half of each batch: gradients of every loss are averaged, also where
    an optimiser has parameters of its own. A coin and a carried state differ between the processes:
    of these, that they run and that every row is read once."""
    [one], two = (
        results_by_rank(devices, every_objective_trained, tmp_path / str(devices), devices) for devices in (1, 2)
    )
    for name in ("Annealed", "Consistent", "Distilled", "Adversary"):
        for key, value in one[name]["parameters"].items():
            np.testing.assert_allclose(value, two[0][name]["parameters"][key], atol=1e-6, err_msg=f"{name} {key}")
        np.testing.assert_allclose(
            one[name]["curve"][-1]["train_loss"], two[0][name]["curve"][-1]["train_loss"], atol=1e-5, err_msg=name
        )
    rows = sorted(itertools.chain(*two[0]["Carried"]["rows"], *two[1]["Carried"]["rows"]))
    assert rows == sorted(2 * list(range(30)))
    assert all(len(process["Skimming"]["curve"]) == 2 for process in two)


PLUGIN = """
import torch
from harness.kinds import TextEncoder
from harness.registry import register
from tests.support.fake_objectives import Adversary


@register("hiding", name="Hiding", kind="text", paper="none", source="test", year=2026)
class Hiding(TextEncoder):
    trained_by = Adversary

    def __init__(self, width: int):
        super().__init__()
        self.size = width
        self.layer = torch.nn.Linear(width, width)

    def forward(self, words):
        return self.layer(words.vectors.mean(1))
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "hiding.py"
    file.write_text(PLUGIN)
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    return file


def test_a_strategy_that_an_objective_does_not_know_is_refused_before_the_run(plugin, tmp_path):
    """Silently wrong gradients would be worse than no result."""
    request = Request(tmp_path, architectures="hiding", tasks="sst2", devices=2, strategy="fsdp")
    with pytest.raises(UsageError, match="--strategy fsdp: hiding is trained by Adversary, which knows ddp"):
        Session(request, tell=print)
    assert Session(dataclasses.replace(request, strategy="ddp"), tell=print).pending.run


def test_an_architecture_brings_the_objective_that_trains_it(plugin, corpus):
    cls = registry.load(registry.entry("architectures", "hiding"))
    model = build(cls, problem("classify"), {}, corpus.view, corpus.target, 8)
    objective = objective_of(model, SETTINGS)
    assert type(objective).__name__ == fake_objectives.Adversary.__name__
    assert isinstance(objective.inner, Supervised)

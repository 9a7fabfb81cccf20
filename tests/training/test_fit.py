"""Fits: optimisers and schedules by the book, the best dev epoch kept, and a cut fit that goes on
as if nothing had happened."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import pickle
import weakref
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from harness.data.corpus import Corpus
from harness.objectives import Objective, Supervised
from harness.running.request import PRECISIONS
from harness.settings import TrainingSettings
from harness.training import checkpoints, cost, fit_module
from harness.training.fit import fit
from harness.training.fit_module import Diverged, FitModule
from harness.training.model import Model, in_format_of, predict
from harness.training.optimizers import exempt, learning_rate_factor, optimizer, parameter_groups
from harness.training.selection import selection
from harness.views.characters import Characters
from tests.support.toy_corpus import ToyTask, sentences, toy_corpus, toy_model

SETTINGS = TrainingSettings(batch_size=8, epochs=4, patience=10, clip=5.0)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return toy_corpus(gives="states")


class Watched(FitModule):
    """Keeps the weights after every epoch and the rows of every batch; raises after the epoch
    ``cut``."""

    cut: int | None = None
    now = 0  # the epoch that is being scored

    def __init__(self, *arguments: Any, **keywords: Any):
        super().__init__(*arguments, **keywords)
        self.weights: list[dict] = []
        self.rows: list[list[list[int]]] = []

    def on_train_epoch_start(self) -> None:
        super().on_train_epoch_start()
        self.rows.append([])

    def optimise(self, batches: dict[str, Any]) -> None:
        super().optimise(batches)
        self.rows[-1].append(batches["labelled"].rows.tolist())
        if self.cut is not None and self.current_epoch == self.cut:
            raise RuntimeError("the machine was switched off")

    def on_train_epoch_end(self) -> None:
        Watched.now = self.current_epoch
        super().on_train_epoch_end()
        self.weights.append(copy.deepcopy(self.model.state_dict()))


def make(
    corpus: Corpus, settings: dict[str, Any] | None = None, seed: int = 0, lr: float = 0.01, **model: Any
) -> Watched:
    """One fit of a small BiLSTM (with dropout) on the toy corpus."""
    built = toy_model(corpus, "bilstm", seed=seed, **{"hidden": 4, "dropout": 0.3} | model)
    return Watched(
        built,
        Supervised(),
        corpus.train,
        corpus.dev,
        dataclasses.replace(SETTINGS, **settings or {}),
        lr,
        seed,
        ("accuracy",),
        "accuracy",
        False,
    )


def go(one: FitModule, folder: Path, epochs: int = 4, precision: str = "32") -> dict[str, Any]:
    return fit(one, folder, 1, "auto", precision, epochs)


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def scripted(
    monkeypatch: pytest.MonkeyPatch, scores: list[float], losses: list[float] | None = None, metric: str = "accuracy"
) -> None:
    """Dev scores (and losses) by epoch, whatever the model does."""
    monkeypatch.setattr(fit_module, "score", lambda *_: {metric: scores[Watched.now]})
    monkeypatch.setattr(fit_module, "predict_with_loss", lambda *_: ([], losses[Watched.now] if losses else 1.0))


# --- optimisers and schedules ---


def factors(steps: list[int], per_epoch: int = 10, **settings: Any) -> list[float]:
    factor = learning_rate_factor(dataclasses.replace(SETTINGS, **settings), per_epoch)
    return [factor(step) for step in steps]


def test_a_constant_rate_is_constant():
    assert factors([0, 7, 39]) == [1, 1, 1]


def test_a_linear_rate_reaches_zero_at_the_last_step():
    assert factors([0, 10, 30, 40, 41], lr_schedule="linear") == [1, 0.75, 0.25, 0, 0]


def test_a_linear_rate_with_warm_up_rises_first():
    assert factors([0, 1, 4, 20], lr_schedule="linear", warmup_steps=5) == pytest.approx(
        [0.2, 0.4 * 39 / 40, 36 / 40, 0.5]
    )


def test_the_transformers_rate_peaks_at_the_end_of_the_warm_up():
    """Vaswani et al. 2017, eq. 3, with the peak as 1."""
    found = factors([0, 1, 3, 15, 99], lr_schedule="warmup_inverse_sqrt", warmup_steps=4)
    assert found == pytest.approx([0.25, 0.5, 1.0, math.sqrt(4 / 16), math.sqrt(4 / 100)])


def test_a_rate_that_decays_by_epoch_changes_between_epochs_alone():
    assert factors([0, 9, 10, 19, 30], lr_schedule="inverse_epoch", decay=0.05) == pytest.approx(
        [1, 1, 1 / 1.05, 1 / 1.05, 1 / 1.15]
    )


def test_an_unknown_schedule_or_optimiser_says_what_there_is():
    with pytest.raises(ValueError, match=r"training.lr_schedule: 'cosin' is none of constant, linear"):
        factors([0], lr_schedule="cosin")
    with pytest.raises(ValueError, match=r"training.optimizer: 'lion' is none of adam, adamw"):
        dataclasses.replace(SETTINGS, optimizer="lion")


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("sgd", [0.8, 0.54]),  # momentum 0.5: v = 2, then 2 * .5 + 1.6 = 2.6
        ("adagrad", [0.9, 0.9 - 0.1 * 1.8 / math.sqrt(4 + 3.24)]),
        ("adam", [0.9, None]),
        ("adamw", [0.9, None]),
        ("adamax", [0.9, None]),
        ("adadelta", [None, None]),
        ("rmsprop", [0.9 - 0.9, None]),  # 2 / sqrt(.01 * 4) = 10
    ],
)
def test_an_optimiser_steps_as_its_paper_says(name, after):
    """Two steps on w * w from 1 with rate 0.1."""
    weight = torch.nn.Parameter(torch.ones(1))
    chosen = optimizer([weight], dataclasses.replace(SETTINGS, optimizer=name, momentum=0.5), 0.1)
    for wanted in after:
        before = weight.item()
        chosen.zero_grad()
        (weight * weight).sum().backward()
        chosen.step()
        assert weight.item() < before
        if wanted is not None:
            assert weight.item() == pytest.approx(wanted, abs=1e-5)


def test_weight_decay_reaches_the_optimiser():
    weight = torch.nn.Parameter(torch.ones(1))
    chosen = optimizer([weight], dataclasses.replace(SETTINGS, optimizer="sgd", weight_decay=0.5), 0.1)
    weight.sum().backward()
    chosen.step()
    assert weight.item() == pytest.approx(1 - 0.1 * (1 + 0.5))


def test_what_is_exempt_is_so_alone_too():
    """Where nothing but a table of vectors is trained, the optimiser's own decay would be the whole
    one."""
    table = torch.nn.Parameter(torch.ones(2))
    settings = dataclasses.replace(SETTINGS, optimizer="sgd", weight_decay=0.5)
    [group] = parameter_groups([("table", table)], settings, 0.1, frozenset({"table"}))
    assert group["weight_decay"] == 0.0
    [group] = parameter_groups([("table", table)], settings, 0.1, frozenset())
    assert group.get("weight_decay", 0.5) == 0.5


def test_a_bias_is_exempt_whatever_a_layer_calls_it():
    """Torch's own attention has one for queries, keys and values together."""
    spared = exempt(torch.nn.TransformerEncoderLayer(8, 2, 4), ["biases"])
    assert spared == {
        "self_attn.in_proj_bias",
        "self_attn.out_proj.bias",
        *(f"{name}.bias" for name in ("linear1", "linear2", "norm1", "norm2")),
    }


@pytest.mark.parametrize("schedule", ["linear", "warmup_inverse_sqrt", "inverse_epoch"])
def test_the_schedule_is_applied_at_every_step_of_a_fit(corpus, tmp_path, schedule):
    """A schedule that Lightning steps once an epoch would be another schedule."""
    used: list[float] = []

    class Spying(Watched):
        def optimise(self, batch):
            used.append(self.optimizers().param_groups[0]["lr"])
            super().optimise(batch)

    settings = dataclasses.replace(SETTINGS, lr_schedule=schedule, warmup_steps=4, decay=0.5, epochs=2)
    model = toy_model(corpus, "bilstm", hidden=2)
    go(
        Spying(model, Supervised(), corpus.train, corpus.dev, settings, 0.1, 0, ("accuracy",), "accuracy", False),
        tmp_path,
        2,
    )
    factor = learning_rate_factor(settings, 6)
    wanted = [factor(step) for step in range(len(used))]
    assert len(used) == 12 and used == pytest.approx([0.1 * factor for factor in wanted])


# --- selection on dev ---


def test_the_best_dev_epoch_is_kept_and_patience_ends_the_fit(corpus, tmp_path, monkeypatch):
    """Scores of epochs 4 and 5 do not beat epoch 3: patience 2 is over, and epoch 3's weights are
    the model."""
    scripted(monkeypatch, [0.3, 0.2, 0.6, 0.5, 0.6, 0.9])
    one = make(corpus, {"patience": 2, "epochs": 6})
    assert go(one, tmp_path, 6) == {"best_epoch": 3, "epochs": 5, "rising": False}
    assert same(one.model.state_dict(), one.weights[2]) and not same(one.weights[2], one.weights[4])
    assert [row["accuracy"] for row in one.curve] == [0.3, 0.2, 0.6, 0.5, 0.6]
    assert [row["epoch"] for row in one.curve] == [1, 2, 3, 4, 5]


class Phased(Supervised):
    """The last phase begins at a half."""

    last_phase = 0.5


def phased(corpus: Corpus, wrapped: bool = False, **settings: Any) -> Watched:
    one = make(corpus, {"epochs": 8} | settings)
    one.objective = Objective(None, None, Phased()) if wrapped else Phased()
    if wrapped:
        one.objective.losses = Supervised().losses
    return one


@pytest.mark.parametrize("wrapped", [False, True])
def test_neither_patience_nor_the_best_epoch_is_of_a_phase_that_is_over(corpus, tmp_path, monkeypatch, wrapped):
    """While a policy learns alone the dev score stands still, and before that it is that of a
    system without a policy: such a training ended there, and was kept from there."""
    scripted(monkeypatch, [0.9, 0.95, 0.3, 0.3, 0.4, 0.6, 0.5, 0.5])
    one = phased(corpus, wrapped, patience=2)
    assert go(one, tmp_path, 8) == {"best_epoch": 6, "epochs": 8, "rising": False}
    assert same(one.model.state_dict(), one.weights[5])


def test_patience_counts_from_the_last_phase_on(corpus, tmp_path, monkeypatch):
    """Epoch 5 is the first that ends in it, whose score the next two do not beat."""
    scripted(monkeypatch, [0.9, 0.95, 0.3, 0.3, 0.4, 0.3, 0.4, 0.9])
    assert go(phased(corpus, patience=2), tmp_path, 8) == {"best_epoch": 5, "epochs": 7, "rising": False}


def test_a_training_that_is_cut_before_its_last_phase_keeps_its_last_epoch(corpus, tmp_path, monkeypatch):
    """Rather than none."""
    scripted(monkeypatch, [0.9, 0.8, 0.3])
    one = phased(corpus)
    monkeypatch.setattr(one, "in_last_phase", lambda epoch: False)
    assert go(one, tmp_path, 3)["best_epoch"] == 3


def test_of_equal_scores_the_smaller_dev_loss_is_better(corpus, tmp_path, monkeypatch):
    """A transcriber's error rate stays at 1 for epochs while its loss falls: it is not to be
    stopped."""
    scripted(monkeypatch, [0.5] * 4, [3.0, 2.0, 1.0, 1.5])
    one = make(corpus, {"patience": 1})
    assert go(one, tmp_path) == {"best_epoch": 3, "epochs": 4, "rising": False}


@pytest.mark.parametrize("metric", ["micro_f1", "wer"])
def test_of_equal_scores_a_large_loss_that_is_smaller_is_better(metric):
    """A loss summed over a thousand labels falls from 40 to 12 while the score is still 0; it never
    outweighs a score."""
    losses = [0.0, 8.5, 9.0, 9.5, 12.0, 40.0, 1e6, math.inf]
    found = [selection(metric, 0.5, loss) for loss in losses]
    assert found == sorted(found, reverse=True) and len({*found}) == len(losses)
    assert found[0] - found[-1] < 2e-4
    assert selection(metric, 0.5, math.nan) == found[-1]


def test_patience_sees_what_the_best_epoch_sees(corpus, tmp_path, monkeypatch):
    """Losses that fall by some thousandths, of which float32 knows nothing beside an error rate of
    1: each epoch was kept as better, and the training was ended as one that stands still."""
    scripted(monkeypatch, [1.0] * 8, [5 - 0.003 * epoch for epoch in range(8)], metric="wer")
    one = make(corpus, {"patience": 2, "epochs": 8})
    one.main_metric = "wer"
    assert go(one, tmp_path, 8) == {"best_epoch": 8, "epochs": 8, "rising": True}


def test_a_better_score_beats_any_loss(corpus, tmp_path, monkeypatch):
    """One dev example in ten thousand counts more than the loss, however large."""
    scripted(monkeypatch, [0.5, 0.5002, 0.5], [0.1, 1e6, 0.0])
    assert go(make(corpus), tmp_path, 3)["best_epoch"] == 2


def test_of_error_rates_the_lower_is_better(corpus, tmp_path, monkeypatch):
    scripted(monkeypatch, [0.9, 0.2, 0.4], metric="wer")
    one = make(corpus)
    one.main_metric = "wer"
    assert go(one, tmp_path, 3)["best_epoch"] == 2


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_dev_loss_that_is_not_finite_loses_ties_and_nothing_else(corpus, tmp_path, monkeypatch, loss):
    """Nor the whole cell: a record takes no such number."""
    scripted(monkeypatch, [0.5, 0.5, 0.5], [loss, 2.0, loss])
    one = make(corpus)
    assert go(one, tmp_path, 3) == {"best_epoch": 2, "epochs": 3, "rising": False}
    assert [row["dev_loss"] for row in one.curve] == [None, 2.0, None]


@pytest.mark.parametrize("whole_groups", [True, False])
def test_a_loss_that_compares_the_candidates_of_a_question_is_asked_of_whole_questions_on_dev(
    tmp_path, monkeypatch, whole_groups
):
    """Of a question that two batches divide, a right candidate without a wrong one beside it has no
    loss, and learning rates are compared by it."""

    def candidates(questions: int) -> list[dict[str, str]]:
        texts = sentences(5 * questions)  # of different lengths, by which other batches are made
        return [
            {"id": row["id"], "first": f"what is {n // 5}", "second": row["text"], "group": str(n // 5)}
            | {"label": str(int(n % 5 == 0))}
            for n, row in enumerate(texts)
        ]

    ranked = toy_corpus(ToyTask({"train": candidates(4), "dev": candidates(6)}, "rank", "map"))
    asked: list[list[int]] = []
    real = Model.predict_with_loss

    def noted(self: Model, batch: Any, split: Any) -> Any:
        asked.append(batch.rows.tolist())
        return real(self, batch, split)

    monkeypatch.setattr(Model, "predict_with_loss", noted)
    settings = dataclasses.replace(SETTINGS, epochs=1)
    fitted = toy_model(ranked), Supervised(), ranked.train, ranked.dev, settings, 0.01, 0, ("map",), "map"
    go(FitModule(*fitted, whole_groups), tmp_path, 1)
    assert sorted(itertools.chain(*asked)) == list(range(30))
    parts = sum(len({row // 5 for row in batch}) for batch in asked)
    assert (parts == 6) is whole_groups


def test_a_training_loss_that_is_nan_is_divergence(corpus, tmp_path):
    one = make(corpus)
    one.losses = lambda step: {"loss": one.model.loss(step.batch) * math.nan}
    with pytest.raises(Diverged, match=r"training loss is nan after epoch 1 at learning rate 0.01"):
        go(one, tmp_path)


def test_the_curve_says_what_was_trained(corpus, tmp_path):
    """Losses are means over examples, not over batches; the last batch is smaller."""
    one = make(corpus, {"batch_size": 20}, lr=0.0, dropout=0.0)
    go(one, tmp_path, 1)
    losses = [
        one.model.loss(corpus.train.collate(torch.tensor(rows).numpy())).item() * len(rows) for rows in one.rows[0]
    ]
    [row] = one.curve
    assert sorted(map(len, one.rows[0])) == [8, 20, 20]
    assert row["train_loss"] == pytest.approx(sum(losses) / 48, rel=1e-5)
    assert 0 <= row["accuracy"] <= 1 and row["dev_loss"] > 0
    assert row["seconds"] == pytest.approx(one.seconds["train"] + one.seconds["dev"])
    assert 0 < one.seconds["train_processor"] < 2 * one.seconds["train"]


# --- batches ---


def test_every_epoch_sees_every_example_once_in_another_order(corpus, tmp_path):
    one = make(corpus)
    go(one, tmp_path, 3)
    for epoch in one.rows:
        assert sorted(row for batch in epoch for row in batch) == list(range(48))
    assert len({str(epoch) for epoch in one.rows}) == 3


def test_the_order_of_batches_follows_the_seed_alone(corpus, tmp_path):
    """Two architectures of one cell's seed see the same batches; another seed is another order."""
    orders = []
    for number, (seed, hidden) in enumerate([(0, 2), (0, 4), (1, 2)]):
        one = make(corpus, seed=seed, hidden=hidden)
        go(one, tmp_path / str(number), 2)
        orders.append(one.rows)
    assert orders[0] == orders[1] != orders[2]


def test_the_same_seed_gives_the_same_weights(corpus, tmp_path):
    first, again = make(corpus), make(corpus)
    torch.manual_seed(5)
    go(first, tmp_path / "a", 2)
    torch.manual_seed(5)
    go(again, tmp_path / "b", 2)
    assert same(first.model.state_dict(), again.model.state_dict())


@pytest.mark.parametrize("precision", [precision for precision in PRECISIONS if precision != "32"])
def test_every_precision_trains(corpus, tmp_path, precision, whole):
    """With gradients clipped and a fused optimiser, which Lightning's own clipping refuses to
    combine. Torch itself has no LSTM in half precision on some processors."""
    if precision == "bf16-mixed":
        with torch.autocast("cpu", torch.bfloat16):
            try:
                torch.nn.LSTM(2, 2)(torch.ones(1, 1, 2))
            except RuntimeError as error:
                pytest.skip(f"torch.nn.LSTM does not run here: {error}")
    one = make(corpus)
    go(one, tmp_path, 2, precision)
    assert one.curve[1]["train_loss"] < one.curve[0]["train_loss"]
    assert one.curve[0]["train_loss"] == pytest.approx(whole.curve[0]["train_loss"], abs=0.02)


@pytest.mark.parametrize("precision", [precision for precision in PRECISIONS if precision != "32"])
def test_every_precision_trains_on_numbers_that_the_view_brings(tmp_path, precision):
    """Whoever asked for 64 bits, or bfloat16, had every system that reads characters or recordings
    recorded as failed: Lightning converts the parameters, and their batches stayed as they were."""
    corpus = toy_corpus(view=Characters(length=None))
    model = toy_model(corpus, "dan", hidden=4)
    splits = corpus.train, corpus.dev
    one = FitModule(model, Supervised(), *splits, SETTINGS, 0.01, 0, ("accuracy",), "accuracy")
    go(one, tmp_path, 2, precision)
    assert one.curve[1]["train_loss"] < one.curve[0]["train_loss"]
    assert len(predict(model, corpus.dev, 8)) == len(cost.answering(model, corpus.dev, "cpu")(np.arange(16))) == 16
    assert cost.flops_per_example(model, [corpus.dev.collate(np.arange(4))])
    assert cost.flops_of_losses(model, one.objective, one.steps_of_all_lengths(2))


def test_at_32_bits_a_batch_stays_what_it_is():
    """Small models would lose a tenth of a millisecond a step to whoever looks through it."""
    corpus = toy_corpus(view=Characters(length=None))
    batch, model = corpus.train.collate(np.arange(4)), toy_model(corpus)
    assert in_format_of(model, batch) is batch
    found = in_format_of(model.double(), batch).inputs["text"]
    assert (found.vectors.dtype, found.ids.dtype, found.mask.dtype) == (torch.float64, torch.int64, torch.bool)


def test_how_many_steps_lightning_is_given_at_once_changes_nothing(corpus, tmp_path, monkeypatch, whole):
    """Six batches an epoch, in chunks of four and two: a schedule or clock by chunk, or a last
    chunk left out, would show."""
    monkeypatch.setattr(fit_module, "CHUNK", 4)
    one = make(corpus)
    go(one, tmp_path)
    assert one.rows == whole.rows and curve(one) == curve(whole)
    assert same(one.model.state_dict(), whole.model.state_dict())


# --- resuming ---


def curve(one: FitModule) -> list[dict[str, float]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in one.curve]


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory) -> Watched:
    """A fit of four epochs that nobody disturbed."""
    one = make(corpus)
    go(one, tmp_path_factory.mktemp("whole"))
    return one


@pytest.mark.parametrize(("cut", "share", "repeated"), [(1, math.inf, 0), (3, math.inf, 0), (3, 1e-9, 2)])
def test_a_fit_cut_in_an_epoch_ends_as_if_it_had_not_been(corpus, tmp_path, whole, monkeypatch, cut, share, repeated):
    """Weights and curve are bit-identical, dropout included; otherwise a pre-empted machine changes
    the results.

    Also where the newest checkpoint is older than the best one, as writing one after every epoch
    would have cost too much.
    """
    monkeypatch.setattr(checkpoints, "SAVING_SHARE", share)
    broken = make(corpus)
    broken.cut = cut
    with pytest.raises(RuntimeError, match="switched off"):
        go(broken, tmp_path)
    again = make(corpus)
    kept = go(again, tmp_path)
    assert kept["epochs"] == 4 and len(again.rows) == 4 - cut + repeated, (
        "epochs before the checkpoint are not run again"
    )
    assert again.rows == whole.rows[cut - repeated :]
    assert curve(again) == curve(whole)
    assert same(again.model.state_dict(), whole.model.state_dict())


def test_a_fit_that_goes_on_keeps_no_second_copy_of_its_checkpoint(corpus, tmp_path, monkeypatch):
    """It is some four times the model, and Lightning reads the file by itself."""

    class Read(dict):
        """A checkpoint that can be asked whether it is still there."""

    kept = []

    def newest(file):
        read = Read(checkpoints.newest(file) or {})
        kept.append(weakref.ref(read))
        return read

    class Looks(pl.Callback):
        def on_train_start(self, trainer, module):
            kept.append(kept[0]())

    go(make(corpus), tmp_path, 2)
    monkeypatch.setattr("harness.training.fit.newest", newest)
    fit(make(corpus), tmp_path, 1, "auto", "32", 4, callbacks=[Looks()])
    assert kept[1:] == [None]


def test_a_fit_without_chance_resumes_bit_identically_too(corpus, tmp_path):
    """Without dropout only optimiser, schedule and order of batches have to go on where they
    were."""
    settings = {"lr_schedule": "linear", "optimizer": "adam"}
    whole = make(corpus, settings, dropout=0.0)
    go(whole, tmp_path / "whole")
    go(make(corpus, settings, dropout=0.0), tmp_path / "parts", 2)
    again = make(corpus, settings, dropout=0.0)
    go(again, tmp_path / "parts", 4)
    assert curve(again) == curve(whole)
    assert same(again.model.state_dict(), whole.model.state_dict())


def test_a_fit_that_was_over_is_not_trained_further(corpus, tmp_path, monkeypatch):
    """Cut between the end of training and the record: early stopping has spoken already."""
    scripted(monkeypatch, [0.3, 0.6, 0.5, 0.5, 0.9, 0.9, 0.9])
    settings = {"patience": 2, "epochs": 7}
    first = make(corpus, settings)
    assert go(first, tmp_path, 7) == {"best_epoch": 2, "epochs": 4, "rising": False}
    again = make(corpus, settings)
    assert go(again, tmp_path, 7) == {"best_epoch": 2, "epochs": 4, "rising": False}
    assert again.rows == [], "no epoch is run again"
    assert same(again.model.state_dict(), first.model.state_dict())
    asked = [[step.batch.rows.tolist() for step in one.steps_of_all_lengths(2)] for one in (first, again)]
    assert asked[0] == asked[1], "its record wants to know what a step of some objectives costs"


def test_epochs_that_brought_nothing_are_not_run_again_either(corpus, tmp_path, monkeypatch):
    """The last checkpoint is that of the last epoch, not that of the last improvement."""
    scripted(monkeypatch, [0.6, 0.5, 0.4, 0.3])
    go(make(corpus), tmp_path, 3)
    again = make(corpus)
    assert go(again, tmp_path, 4) == {"best_epoch": 1, "epochs": 4, "rising": False}
    assert len(again.rows) == 1


def test_patience_is_counted_across_the_cut(corpus, tmp_path, monkeypatch):
    scripted(monkeypatch, [0.6, 0.5, 0.4, 0.3, 0.2])
    settings = {"patience": 3, "epochs": 6}
    go(make(corpus, settings), tmp_path, 2)
    assert go(make(corpus, settings), tmp_path, 6) == {"best_epoch": 1, "epochs": 4, "rising": False}


def test_a_pilot_leaves_nothing_that_a_fit_would_resume(corpus, tmp_path):
    pilot = make(corpus)
    assert fit(pilot, tmp_path, 1, "auto", "32", 4, pilot=True) == {}
    assert list(tmp_path.iterdir()) == [] and len(pilot.curve) == 1


def test_the_heads_rows_keep_to_their_limit_after_every_step(corpus, tmp_path):
    """Kim's limit is a part of the model: a training that only declares it trains another one."""
    one, lengths = make(corpus, {"epochs": 1}), []
    one.model.encoder.head_max_norm = 0.01
    clock = one.clock.step
    one.clock.step = lambda *counts: lengths.append(one.model.head.output.weight.norm(dim=1)) or clock(*counts)
    go(one, tmp_path, 1)
    assert len(lengths) == 6 and all((length <= 0.010001).all() for length in lengths)


# --- the smallest number of steps ---


def test_passes_are_added_until_the_smallest_number_of_steps_is_made(corpus, tmp_path):
    """48 rows in batches of 8 are 6 steps a pass: on a small set a few passes teach nothing."""
    one = make(corpus, {"epochs": 3, "min_steps": 25, "lr_schedule": "linear"})
    assert one.settings.epochs == 5 and make(corpus, {"epochs": 7, "min_steps": 25}).settings.epochs == 7
    kept = go(one, tmp_path, one.settings.epochs)
    assert kept["epochs"] == 5 and "passes_per_epoch" not in kept
    rate = learning_rate_factor(one.settings, 6)
    assert [rate(step) for step in (0, 15, 30)] == [1, 0.5, 0], "the rate falls over all of them"


def test_many_passes_over_few_examples_are_few_epochs(corpus, tmp_path):
    """Eight examples need hundreds of passes: dev, of thousands, would be scored after each."""
    one = make(corpus, {"epochs": 2, "min_steps": 40, "lr_schedule": "linear"})  # 7 passes of 6 steps
    kept = go(one, tmp_path, one.settings.epochs)
    assert (kept["epochs"], kept["passes_per_epoch"]) == (3, 3)
    assert [len(rows) for rows in one.rows] == [18, 18, 18]
    passes = [rows[i : i + 6] for rows in one.rows for i in (0, 6, 12)]
    assert all(sorted(itertools.chain(*rows)) == list(range(48)) for rows in passes), "each reads every example once"
    assert len({str(rows) for rows in passes}) == 9, "in an order of its own"
    assert one.lr_schedulers().get_last_lr() == [0.0]


@pytest.mark.parametrize(("min_steps", "epochs"), [(0, 3), (12, 4), (24, 6)])
def test_patience_counts_from_the_smallest_number_of_steps_on(corpus, tmp_path, monkeypatch, min_steps, epochs):
    """CTC stands still for some hundred steps and learns then."""
    scripted(monkeypatch, [0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert go(make(corpus, {"patience": 2, "epochs": 8, "min_steps": min_steps}), tmp_path, 8)["epochs"] == epochs


@pytest.mark.parametrize(("epochs", "steps"), [(4, 2), (40, 24), (1, 1)])
def test_a_pilot_makes_a_tenth_of_the_steps(corpus, tmp_path, epochs, steps):
    """Of 6 steps a pass: a part of a pass, or several, each with batches of its own."""
    one = make(corpus, {"epochs": epochs})
    fit(one, tmp_path, 1, "auto", "32", epochs, pilot=True)
    assert len(one.rows) == 1 and len(one.rows[0]) == steps
    assert sorted(itertools.chain(*one.rows[0][:6])) == list(range(48)) or steps < 6
    assert one.rows[0][:6] != one.rows[0][6:12]


class Noted(Supervised):
    """Notes how far the training is at each step."""

    seen: list[float]

    def losses(self, model: Any, step: Any) -> Any:
        self.seen.append(step.progress)
        return super().losses(model, step)


@pytest.mark.parametrize(("whole", "last"), [(False, 0.0958), (True, 23 / 24)])
def test_a_pilot_goes_through_all_phases_where_the_objective_asks_for_it(corpus, tmp_path, whole, last):
    """Rates would else be compared on a head that no step of a pilot has trained."""
    one = make(corpus, {"epochs": 40})
    objective = Noted()
    objective.seen, objective.whole_pilots = [], whole
    one.objective = Objective(None, None, objective)
    one.objective.losses = objective.losses
    assert one.objective.in_little is whole
    fit(one, tmp_path, 1, "auto", "32", 40, pilot=True)
    assert objective.seen[0] == 0.0 and objective.seen[-1] == pytest.approx(last, abs=1e-4)
    assert objective.seen == sorted(objective.seen)


# --- damaged checkpoints ---


class Runs:
    """A pickle that makes a file where it is loaded."""

    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def damage(file: Path, how: str) -> None:
    content = file.read_bytes()
    middle = len(content) // 2
    if how == "malicious":
        torch.save({"state_dict": {}, "epoch": 0, "x": Runs(file.with_name("ran"))}, file)
    elif how == "malicious, an older format":
        file.write_bytes(pickle.dumps(Runs(file.with_name("ran"))))
    elif how == "of something else":
        torch.save({"state_dict": {}}, file)
    else:
        with zipfile.ZipFile(file) as members:  # between them lie bytes that nobody reads
            place = content.index(members.read(max(members.infolist(), key=lambda member: member.file_size)))
        flipped = content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]
        known = {"truncated": content[:middle], "empty": b"", "rubbish": b"no checkpoint \x80" * 99, "flipped": flipped}
        file.write_bytes(known[how])


@pytest.mark.parametrize(
    "how",
    ["truncated", "empty", "rubbish", "flipped", "malicious", "malicious, an older format", "of something else"],
)
def test_a_damaged_checkpoint_means_that_training_begins_anew(corpus, tmp_path, whole, how, capsys):
    """It costs the epochs that it held: neither the cell, nor a run of what somebody put there."""
    go(make(corpus), tmp_path, 2)
    damage(tmp_path / "last.ckpt", how)
    again = make(corpus)
    assert go(again, tmp_path)["epochs"] == 4
    assert curve(again) == curve(whole) and same(again.model.state_dict(), whole.model.state_dict())
    assert "last.ckpt is damaged: training begins anew" in capsys.readouterr().out
    assert not (tmp_path / "ran").exists()
    assert go(make(corpus), tmp_path)["epochs"] == 4, "a sound one stands in its place"


def test_lightning_does_not_say_each_epoch_what_it_saves_by_default(corpus, tmp_path, caplog):
    """A user who reads of weights_only in the log takes it for how checkpoints are loaded."""
    with caplog.at_level("INFO", logger="pytorch_lightning"):
        go(make(corpus), tmp_path, 2)
    assert not [record for record in caplog.records if "weights_only" in record.getMessage()]

"""Training one model by Lightning: optimisers and schedules from settings, selection on dev, curves
and clocks."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint, EarlyStopping
from pytorch_lightning.plugins import TorchCheckpointIO
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.strategies import ModelParallelStrategy, Strategy
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

from harness.data.batches import Batches
from harness.data.corpus import Batch, Split
from harness.files import taking_the_place_of
from harness.metrics import LOWER_IS_BETTER, score
from harness.training.cost import StepClock
from harness.training.lazy_updates import LazyAdam, clip_gradients, make_dense, takes_rows
from harness.training.model import Model, on_device, predict_with_loss

PILOT_EXAMPLES = 6000
"""Training examples that a learning rate is tried on before the best one trains the cell."""

PILOT_DEV = 1000
"""Dev rows (the first ones) on which the pilots are compared."""


NOT_SCORES = ("epoch", "train_loss", "dev_loss", "seconds")
"""What a row of the curve holds besides the dev scores."""

TIE_BREAK = 1e-5
"""Weight of the dev loss beside the dev metric: of epochs (or learning rates) with equal scores,
the one with the smaller loss is better.

Without it, a transcriber whose error rate stays at 1 while its loss falls would be stopped before
it says its first word.
"""


CHUNK = 50
"""Optimiser steps in one step of Lightning's loop, whose cost (0.4 ms) is that of a small model's
whole training step."""


SAVING_SHARE = 0.01
"""Of the time of a fit: what may go into checkpoints to resume from. A cut fit repeats so many
times longer than one takes to write."""


class Diverged(Exception):
    """The training loss is no longer a finite number."""


def optimizer(parameters: Sequence[nn.Parameter], settings: dict[str, Any], lr: float) -> torch.optim.Optimizer:
    """The optimiser that ``settings`` name; ``ValueError`` for an unknown one."""
    decay = {"lr": lr, "weight_decay": settings["weight_decay"]}
    makers: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "adam": lambda: LazyAdam(parameters, **decay, fused=True),
        "adamw": lambda: torch.optim.AdamW(parameters, **decay, fused=True),
        "adamax": lambda: torch.optim.Adamax(parameters, **decay),
        "adagrad": lambda: torch.optim.Adagrad(parameters, **decay),
        "adadelta": lambda: torch.optim.Adadelta(parameters, **decay),
        "rmsprop": lambda: torch.optim.RMSprop(parameters, **decay),
        "sgd": lambda: torch.optim.SGD(parameters, **decay, momentum=settings["momentum"]),
    }
    name = settings["optimizer"]
    if name not in makers:
        raise ValueError(f"training.optimizer: {name!r} is none of {', '.join(makers)}")
    return makers[name]()


def learning_rate_factor(settings: dict[str, Any], steps_per_epoch: int) -> Callable[[int], float]:
    """Factor on the learning rate at each step, by the schedule's name; ``ValueError`` for an
    unknown one."""
    total = max(1, steps_per_epoch * settings["epochs"])
    warm = max(1, settings["warmup_steps"])
    schedules: dict[str, Callable[[int], float]] = {
        "constant": lambda step: 1.0,
        "linear": lambda step: min(1.0, (step + 1) / warm) * max(0.0, 1 - step / total),
        "warmup_inverse_sqrt": lambda step: min((step + 1) / warm, math.sqrt(warm / (step + 1))),
        "inverse_epoch": lambda step: 1 / (1 + settings["decay"] * (step // max(1, steps_per_epoch))),
    }
    name = settings["lr_schedule"]
    if name not in schedules:
        raise ValueError(f"training.lr_schedule: {name!r} is none of {', '.join(schedules)}")
    return schedules[name]


class Training(pl.LightningModule):
    """One fit: ``objective`` is the training loss of a batch, dev is scored after each epoch by
    ``metrics``."""

    def __init__(
        self,
        model: Model,
        objective: Callable[[Batch], Tensor],
        train: Split,
        dev: Split,
        settings: dict[str, Any],
        lr: float,
        seed: int,
        metrics: Sequence[str],
        main_metric: str,
        whole_groups: bool,
    ):
        super().__init__()
        self.model, self.objective = model, objective
        self.train_split, self.dev_split = train, dev
        self.settings, self.lr, self.seed = settings, lr, seed
        self.metrics, self.main_metric, self.whole_groups = metrics, main_metric, whole_groups
        self.sharded = False
        self.trained: list[nn.Parameter] = []
        self.curve: list[dict[str, float]] = []
        self.seconds = {"train": 0.0, "dev": 0.0}
        self.clock = StepClock()
        self.automatic_optimization = False
        self.pilot = False
        """Whether an epoch is over after :data:`PILOT_EXAMPLES`, and no weights are kept."""
        self.best: dict[str, Any] | None = None
        """Epoch, selection and weights (on the CPU) of the best dev epoch so far."""

    def setup(self, stage: str) -> None:
        if self.trainer.world_size > 1 or not takes_rows(self.settings):  # NCCL cannot exchange sparse gradients
            make_dense(self.model)

    def configure_model(self) -> None:
        """Share the parameters out among the processes, if that is the strategy. ``ValueError``
        names one that cannot be (a single number).

        Each training step gathers all of them: to do so module by module, as they are called, would
        miss the heads and regimes that use an architecture's parts by other methods than
        ``forward``.
        """
        if isinstance(self.trainer.strategy, ModelParallelStrategy):
            fully_shard(self, mesh=self.device_mesh["data_parallel"])
            register_fsdp_forward_method(self, "objective")
            self.set_reduce_scatter_unused_params(
                True
            )  # the loss may reach a parameter in one process and not in another
            self.sharded = True

    def batches(self) -> Batches:
        """This epoch's batches."""
        groups = self.train_split.groups if self.whole_groups else None
        batches = Batches(
            self.train_split.padded_lengths, self.settings["batch_size"], self.train_split.collate, self.seed, groups
        )
        batches.epoch, batches.rank, batches.world = self.current_epoch, self.global_rank, self.trainer.world_size
        return batches

    def train_dataloader(self) -> torch.utils.data.DataLoader:
        """Row numbers of the epoch's batches, by :data:`CHUNK`."""
        most = -(-PILOT_EXAMPLES // (self.trainer.world_size * self.settings["batch_size"])) if self.pilot else None
        rows = self.batches().rows()[:most]
        chunks = [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]
        return torch.utils.data.DataLoader(chunks, batch_size=None, collate_fn=list)

    def configure_optimizers(self) -> dict[str, Any]:
        self.trained = [p for p in self.parameters() if p.requires_grad]
        chosen = optimizer(self.trained, self.settings, self.lr)
        factor = learning_rate_factor(self.settings, len(self.batches()))
        schedule = torch.optim.lr_scheduler.LambdaLR(chosen, factor)
        return {"optimizer": chosen, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_train_epoch_start(self) -> None:
        self._began = time.perf_counter()
        self._loss, self._examples = torch.zeros((), device=self.device), 0
        self.clock.pause()

    def training_step(self, chunk: list[np.ndarray], index: int) -> None:
        if index == 0:
            # Seeded by epoch, so that a resumed fit draws the same dropout masks; the rank keeps
            # processes apart.
            torch.manual_seed(
                int(np.random.SeedSequence([self.seed, self.current_epoch, self.global_rank]).generate_state(1)[0])
            )
        for rows in chunk:
            self.optimise(on_device(self.train_split.collate(rows), self.device))

    def optimise(self, batch: Batch) -> None:
        """One step of the optimiser.

        Not by Lightning's ``manual_backward`` and optimiser: their hooks, of which none is used,
        take a tenth of a small model's step. None of our precisions scales gradients, the other
        thing that they are there for.
        """
        chosen = self.optimizers(use_pl_optimizer=False)
        chosen.zero_grad()
        loss = self.objective(batch)
        self.trainer.strategy.pre_backward(loss)  # DDP finds out there which parameters the loss reaches
        loss.backward()
        if self.settings["clip"]:
            clip_gradients(self.trained, self.settings["clip"])
        chosen.step()
        self.lr_schedulers().step()
        self.model.head.constrain(self.model.encoder)
        self._loss += loss.detach() * len(batch.rows)
        self._examples += len(batch.rows)
        processes = self.trainer.world_size  # the others' batches are like this one
        self.clock.step(len(batch.rows) * processes, batch.units * processes)

    def on_train_epoch_end(self) -> None:
        # Of all processes: they must agree on whether the training diverged, or one would wait for
        # ever for the others.
        loss, examples = self.trainer.strategy.reduce(
            torch.stack([self._loss, self._loss.new_tensor(self._examples)]), reduce_op="sum"
        ).tolist()
        loss /= max(1, examples)
        trained = time.perf_counter()
        if not math.isfinite(loss):
            raise Diverged(f"training loss is {loss} after epoch {self.current_epoch + 1} at learning rate {self.lr}")
        if self.sharded:
            self.unshard()
        predictions, dev_loss = predict_with_loss(self.model, self.dev_split, self.settings["batch_size"], self.device)
        if self.sharded:
            self.reshard()
        scores = score(self.metrics, predictions, self.dev_split.rows)
        # The first process's, whose weights are kept: running means (batch norm) are its own, and
        # all must choose the same epoch and rate.
        self.selection = self.trainer.strategy.broadcast(self._selection(scores[self.main_metric], dev_loss))
        self.log("selection", self.selection, sync_dist=self.trainer.world_size > 1)
        if not self.pilot and (self.best is None or self.selection > self.best["selection"]):
            weights = self.trainer.strategy.lightning_module_state_dict()
            weights = {name: value.to("cpu", copy=True) for name, value in weights.items()}
            self.best = {"epoch": self.current_epoch + 1, "selection": self.selection, "weights": weights}
        ended = time.perf_counter()
        self.seconds["train"] += trained - self._began
        self.seconds["dev"] += ended - trained
        row = {"epoch": self.current_epoch + 1, "train_loss": loss, "dev_loss": dev_loss}
        self.curve.append(row | scores | {"seconds": ended - self._began})
        rate = examples / max(1e-9, trained - self._began)
        if self.global_rank == 0:
            told = f"dev {self.main_metric} {scores[self.main_metric]:.4f}, {rate:,.0f} examples/s"
            print(f"epoch {row['epoch']}: train loss {loss:.4f}, {told}")

    def _selection(self, metric: float, dev_loss: float) -> float:
        """What epochs and learning rates are compared by (higher is better); a dev loss that is not
        finite loses every tie."""
        sign = -1.0 if self.main_metric in LOWER_IS_BETTER else 1.0
        return sign * metric - TIE_BREAK * min(dev_loss if math.isfinite(dev_loss) else 10.0, 10.0)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["curve"], checkpoint["seconds"], checkpoint["best"] = self.curve, self.seconds, self.best

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.curve, self.seconds, self.best = checkpoint["curve"], checkpoint["seconds"], checkpoint["best"]


class StraightToFile(TorchCheckpointIO):
    """Writes checkpoints into a file that then takes its place; Lightning's own builds them in
    memory first, where tables are large."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        with taking_the_place_of(Path(path)) as part:
            torch.save(checkpoint, part)


class Newest(Checkpoint):
    """Writes the newest epoch's checkpoint, from which a cut fit goes on, unless that would take
    more than a small share of the time."""

    def __init__(self, file: Path):
        self.file, self._next = file, 0.0

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        began = time.perf_counter()
        due = began >= self._next or trainer.should_stop or trainer.current_epoch + 1 == trainer.max_epochs
        if trainer.strategy.broadcast(due):  # all processes write it together, and their clocks may disagree
            trainer.save_checkpoint(self.file)
            ended = time.perf_counter()
            self._next = ended + (ended - began) / SAVING_SHARE


def fit(
    training: Training, folder: Path, devices: int, strategy: str, precision: str, max_epochs: int, pilot: bool = False
) -> dict[str, Any]:
    """Train to early stopping, resuming from the last checkpoint in ``folder``; the model ends with
    the weights of its best dev epoch.

    A ``pilot`` runs on few examples and keeps no checkpoint. Returns best epoch and number of
    epochs, and how several processes shared the work; in all but the first of them, nothing.
    """
    stop = EarlyStopping("selection", mode="max", patience=training.settings["patience"], check_on_train_epoch_end=True)
    last = folder / "last.ckpt"
    whole = (
        copy.deepcopy(training.model) if strategy == "fsdp" else training.model
    )  # for scoring, which one process does alone
    training.pilot = pilot
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        trainer = pl.Trainer(
            accelerator="auto",
            devices=devices,
            strategy=_strategy(strategy, devices),
            # In a job of SLURM or torchrun, Lightning would leave it to them to start the
            # processes, who know nothing of this cell.
            plugins=[LightningEnvironment(), StraightToFile()],
            precision=precision,
            max_epochs=1 if pilot else max_epochs,
            callbacks=[] if pilot else [Newest(last), stop],
            reload_dataloaders_every_n_epochs=1,
            use_distributed_sampler=False,
            enable_checkpointing=not pilot,
            enable_progress_bar=False,
            enable_model_summary=False,
            logger=False,
            num_sanity_val_steps=0,
        )
        if pilot or not last.exists():
            trainer.fit(training)
        elif not _stopped(last):
            trainer.fit(training, ckpt_path=str(last))
        else:
            training.on_load_checkpoint(torch.load(last, map_location="cpu", weights_only=True))
    if pilot or training.global_rank > 0:
        return {}
    training.model = whole
    training.load_state_dict(training.best["weights"])
    kept = {"best_epoch": training.best["epoch"], "epochs": len(training.curve)}
    return kept | _sharing(training.settings["batch_size"], devices, strategy)


def _strategy(name: str, devices: int) -> str | Strategy:
    """Lightning's strategy for one of :data:`harness.running.grid.STRATEGIES`."""
    if devices == 1:
        return "auto"
    if (
        name == "fsdp"
    ):  # its FSDPStrategy runs on GPUs alone; whole checkpoints, so that they are read without processes
        return ModelParallelStrategy(devices, 1, save_distributed_checkpoint=False)
    # A parameter that the loss does not reach (a reader's threshold for no answer) would stop the
    # second step of plain DDP.
    return "ddp_find_unused_parameters_true"


def _sharing(batch_size: int, devices: int, strategy: str) -> dict[str, Any]:
    """What a record tells of training on several devices; nothing for one."""
    if devices == 1:
        return {}
    effective = {
        "strategy": "ddp" if strategy == "auto" else strategy,
        "processes": devices,
        "effective_batch_size": devices * batch_size,
    }
    return {
        "parallel": effective
        | {"sampler": "whole batches in turn, none left out", "learning_rate": "as given, not scaled"}
    }


def _stopped(last: Path) -> bool:
    """Whether early stopping had ended the fit whose last checkpoint this is."""
    states = torch.load(last, map_location="cpu", weights_only=True)["callbacks"]
    return any(state.get("stopped_epoch", 0) > 0 for state in states.values())

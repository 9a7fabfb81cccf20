"""One fit as Lightning calls it: steps of the optimisers, selection on dev, curves and clocks."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.strategies import ModelParallelStrategy
from torch import Tensor
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.utils._pytree import tree_map

from harness.data.batches import Batches, Streams, in_turn, of_all_lengths
from harness.data.corpus import Split
from harness.metrics import score
from harness.metrics.metric import NoNumber
from harness.objectives import Objective, Step
from harness.problems.base import Batch
from harness.settings import PILOT_SHARE, TrainingSettings
from harness.training.averaging import begun, exchange, follow, share_kept
from harness.training.checkpoints import RESUMED
from harness.training.cost import StepClock
from harness.training.lazy_updates import clip_gradients, make_dense, takes_rows
from harness.training.model import Model, in_format_of, on_device, predict_with_loss
from harness.training.optimizers import exempt, freeze, learning_rate_factor, optimizer, parameter_groups, set_gradients
from harness.training.selection import selection

CHUNK = 50
"""Optimiser steps in one step of Lightning's loop, whose cost (0.4 ms) is that of a small model's
whole training step."""


class Diverged(Exception):
    """The training loss is no longer a finite number."""


class FitModule(pl.LightningModule):
    """One fit of a model by its objective; dev is scored after each epoch by ``metrics``.

    ``unlabelled`` are the rows of the objective's stream of that name, ``companions`` those of its
    streams of further tasks. An epoch is one pass over
    the training examples; where ``min_steps`` ask for several times the passes of the settings, it
    is so many, ``passes_per_epoch``: dev is asked less than twice as often as otherwise. Epochs are
    whole: of 4 passes that have to be 215, 5 epochs of 53 are made, 265 passes.
    :func:`fit` sets ``epochs``, the number after which training ends at the latest: the objective's
    progress counts on it, the learning rate's schedule on that of the settings.
    """

    def __init__(
        self,
        model: Model,
        objective: Objective,
        train: Split,
        dev: Split,
        settings: TrainingSettings,
        lr: float,
        seed: int,
        metrics: Sequence[str],
        main_metric: str,
        whole_groups: bool = False,
        unlabelled: Split | None = None,
        companions: Mapping[str, Split] = MappingProxyType({}),
    ):
        super().__init__()
        self.model, self.objective = model, objective
        self.splits = {"labelled": objective.portions(train, settings)} | (
            {} if unlabelled is None else {"unlabelled": unlabelled}
        )
        self.splits |= companions
        self.dev_split = dev
        self.settings, self.lr, self.seed = settings, lr, seed
        self.metrics, self.main_metric, self.whole_groups = metrics, main_metric, whole_groups
        passes = max(settings.epochs, -(-settings.min_steps // max(1, len(self._batches("labelled", 0, 1)))))
        self.passes_per_epoch = passes // settings.epochs
        self.epochs = -(-passes // self.passes_per_epoch)
        self.settings = dataclasses.replace(settings, epochs=self.epochs)
        self.sharded = False
        self.curve: list[dict[str, Any]] = []
        self.seconds = {"train": 0.0, "dev": 0.0, "train_processor": 0.0}
        self.earlier = dict(self.seconds)
        """Those of processes before this one, which goes on with their training."""
        self.clock = StepClock()
        self.automatic_optimization = False
        self.pilot = False
        """True if :data:`PILOT_SHARE` of the steps are one epoch, and no weights are kept."""
        self.after_step: Callable[[int], None] | None = None
        """Called after each optimiser step with the number of those made; it may raise."""
        self.best: dict[str, Any] | None = None
        """Epoch, selection and weights (on the CPU) of the best dev epoch so far."""
        self.plateau = 1.0
        """Factor on the learning rate by which schedule ``plateau`` answers to dev scores."""
        self.average: dict[str, Tensor] | None = None
        """Moving average of the trained parameters, by name."""
        if missing := set(objective.streams) - set(self.splits):
            raise ValueError(
                f"{type(objective).__name__} reads {', '.join(sorted(missing))} batches: there are none here"
            )
        if settings.label_smoothing and not model.head.smooths_above(model.encoder):
            whose = model.encoder if model.head.smooths else model.head
            raise ValueError(f"training.label_smoothing: the loss of {type(whose).__name__} has no labels to smooth")
        objective.begin(self.splits)
        model.head.label_smoothing = settings.label_smoothing
        freeze(model, settings)

    def setup(self, stage: str) -> None:
        if self.trainer.world_size > 1 or not takes_rows(self.settings) or self._several():
            make_dense(self.model)  # NCCL cannot exchange sparse gradients, and few optimisers take them

    def _several(self) -> bool:
        """True if several losses are minimised, each by an optimiser of its own."""
        return len(self.objective.players(self.model)) > 1

    def configure_model(self) -> None:
        """Share the parameters out among the processes, if that is the strategy. ``ValueError``
        names one that cannot be (a single number).

        Each training step gathers all of them: to do so module by module, as they are called, would
        miss the heads and objectives that use an architecture's parts by other methods than
        ``forward``.
        """
        if isinstance(self.trainer.strategy, ModelParallelStrategy):
            if self.settings.averaging:
                raise ValueError("training.averaging: fsdp cannot average weights; use --strategy ddp")
            fully_shard(self, mesh=self.device_mesh["data_parallel"])  # type: ignore[index]
            register_fsdp_forward_method(self, "losses")
            # The loss may reach a parameter in one process and not in another.
            self.set_reduce_scatter_unused_params(True)  # type: ignore[operator]
            self.sharded = True

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Losses of a step by the objective."""
        return self.objective.losses(self.model, step)

    def batches(self, stream: str = "labelled") -> Batches | Streams:
        """The batches of this epoch's first pass over a stream."""
        batches = self._batches(stream, self.global_rank, self.trainer.world_size)
        batches.epoch = self.current_epoch * self.passes_per_epoch
        return batches

    def _batches(self, stream: str, rank: int, world: int) -> Batches | Streams:
        """The first pass's batches of a stream for one of several processes."""
        split, settings = self.splits[stream], self.settings
        if self.objective.sequential:
            return Streams(len(split), settings.batch_size, rank, world)
        groups = split.groups if self.whole_groups else None
        seed = self.seed if stream == "labelled" else [self.seed, self.objective.streams.index(stream)]
        batches = Batches(split.padded_lengths, settings.batch_size, split.collate, seed, groups)
        batches.rank, batches.world = rank, world
        return batches

    def steps_of_epoch(self, world: int) -> int:
        """Optimiser steps of an epoch in ``world`` processes."""
        streams = self.objective.streams if self.objective.in_turn else ("labelled",)
        return sum(self.steps_on(stream, world) for stream in streams)

    def steps_on(self, stream: str, world: int) -> int:
        """Those of them that read a stream."""
        return self.passes_per_epoch * len(self._batches(stream, 0, world))

    def train_dataloader(self) -> torch.utils.data.DataLoader:
        """Row numbers of the epoch's batches, by :data:`CHUNK`: one for each stream, the labelled
        one first; shorter streams begin again. Of streams that are read in turn, all but one are
        None."""
        labelled, *others = map(self._rows_of_epoch, self.objective.streams)
        if self.objective.in_turn:
            rows = in_turn([labelled, *others], [self.seed, 1 + len(others), self.current_epoch])
        else:
            rows = list(zip(labelled, *map(itertools.cycle, others), strict=False))
        chunks = [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]
        return torch.utils.data.DataLoader(chunks, batch_size=None, collate_fn=list)  # type: ignore[arg-type]

    def steps_of_all_lengths(self, count: int) -> list[Step]:
        """Steps of a training on one device over shorter and longer texts, as in its last phase. No
        trainer is asked: a fit that was over before it was resumed has none."""
        streams = self.objective.streams
        batches_of = {stream: self._batches(stream, 0, 1).rows() for stream in streams}
        count = min(count, *map(len, batches_of.values()))
        chosen = (of_all_lengths(batches, self.splits[s].padded_lengths, count) for s, batches in batches_of.items())
        batches = [
            {s: self._given(self.splits[s].collate(rows)) for s, rows in zip(streams, each, strict=True)}
            for each in zip(*chosen, strict=True)
        ]
        return [Step(each, self.objective.settled_after, None, self.seed, 1) for each in batches]

    def _rows_of_epoch(self, stream: str) -> list[np.ndarray]:
        """Row numbers of the batches of this epoch; of a pilot, of its share of all epochs."""
        batches = self.batches(stream)
        steps = self.passes_per_epoch * len(batches)
        if self.pilot:
            steps = self.steps_of_pilot(steps)
        rows: list[np.ndarray] = []
        while len(rows) < steps:
            rows += batches.rows()
            batches.epoch += 1
        return rows[:steps]

    def configure_optimizers(self) -> tuple[list[torch.optim.Optimizer], list[dict[str, Any]]]:  # type: ignore[override]
        settings = self.settings
        left_out = exempt(self.model, settings.decay_exempt) | exempt(
            self.objective, settings.decay_exempt, "objective"
        )
        self.trained = self.objective.trained(self.model)
        players = self.objective.players(self.model).values()
        names = [name for name, _ in itertools.chain(*players)]
        optimizers = [
            optimizer(parameter_groups(parameters, settings, self.lr, left_out, names), settings, self.lr)
            for parameters in players
        ]
        self.steps_per_epoch = self.steps_of_epoch(self.trainer.world_size)
        self.own_steps_per_epoch = self.steps_on("labelled", self.trainer.world_size)
        factor = learning_rate_factor(settings, self.steps_per_epoch)
        schedules = [
            torch.optim.lr_scheduler.LambdaLR(one, lambda step: self.plateau * factor(step)) for one in optimizers
        ]
        return optimizers, [{"scheduler": schedule, "interval": "step"} for schedule in schedules]

    def on_train_epoch_start(self) -> None:
        self._began, self._computed = time.perf_counter(), time.process_time()
        self._sums: dict[str, Tensor] = {"loss": torch.zeros((), device=self.device)}
        self._examples, self._steps, self._state = {"labelled": 0}, 0, None
        self.clock.pause()
        if self.settings.averaging and self.average is None:
            self.average = begun(self.model)
        if self.average is not None:  # a checkpoint's is on the CPU
            self.average = {name: value.to(self.device) for name, value in self.average.items()}

    def training_step(self, chunk: list[tuple[np.ndarray | None, ...]], index: int) -> None:
        if index == 0:
            # Seeded by epoch, so that a resumed fit draws the same dropout masks; the rank keeps
            # processes apart.
            torch.manual_seed(
                int(np.random.SeedSequence([self.seed, self.current_epoch, self.global_rank]).generate_state(1)[0])
            )
        for rows in chunk:
            streams = [(s, r) for s, r in zip(self.objective.streams, rows, strict=True) if r is not None]
            self.optimise({s: self._given(on_device(self.splits[s].collate(r), self.device)) for s, r in streams})

    def _given(self, batch: Batch) -> Batch:
        """A batch as the model takes it."""
        return in_format_of(self.model, batch)

    def optimise(self, batches: dict[str, Batch]) -> None:
        """One step of the optimiser, or of each.

        Not by Lightning's ``manual_backward`` and optimiser: their hooks, of which none is used,
        take a tenth of a small model's step. None of our precisions scales gradients, the other
        thing that they are there for.
        """
        optimizers, schedules = _listed(self.optimizers(use_pl_optimizer=False)), _listed(self.lr_schedulers())
        done = self.current_epoch * self.steps_per_epoch + self._steps
        progress = done / self._steps_of_phases()
        passes = 1 + done * self.passes_per_epoch // self.steps_per_epoch
        if self.objective.sequential and done % (self.steps_per_epoch // self.passes_per_epoch) == 0:
            self._state = None  # a pass begins with other streams than those that ended the one before
        step = Step(batches, progress, self._state, self.seed, passes)
        losses = self._minimised(optimizers, step)
        for schedule in schedules:
            schedule.step()
        self.model.head.constrain(self.model.encoder)
        self._state = None if step.state is None else _detached(step.state)
        if self.average is not None:
            follow(self.average, self.model, share_kept(self.settings, done))
        stream, batch = next(iter(batches.items()))
        for name, loss in losses.items() if stream == "labelled" else [(stream, losses["loss"])]:
            self._sums[name] = self._sums.get(name, 0) + loss.detach() * len(batch.rows)
        self._examples[stream] = self._examples.get(stream, 0) + len(batch.rows)
        self._steps += 1
        processes = self.trainer.world_size  # the others' batches are like this one
        self.clock.step(len(batch.rows) * self.splits[stream].share * processes, batch.units * processes)
        if self.after_step is not None:
            self.after_step(self.current_epoch * self.steps_per_epoch + self._steps)

    def _steps_of_phases(self) -> int:
        """The steps after which a training has gone through all its phases."""
        if self.pilot and self.objective.in_little:
            return self.steps_of_pilot(self.steps_per_epoch)
        return max(1, self.epochs * self.steps_per_epoch)

    def steps_of_pilot(self, steps_per_epoch: int) -> int:
        """A pilot's share of the steps of all epochs, at least one."""
        return max(1, round(PILOT_SHARE * self.settings.epochs * steps_per_epoch))

    def _minimised(self, optimizers: list[torch.optim.Optimizer], step: Step) -> dict[str, Tensor]:
        """The losses of a step, after the optimisers have moved."""
        for one in optimizers:
            one.zero_grad()
        losses = self.losses(step)
        if len(optimizers) == 1:
            self.trainer.strategy.pre_backward(losses["loss"])  # DDP finds out there which parameters the loss reaches
        set_gradients(losses, self.trained)
        if len(optimizers) > 1 and self.trainer.world_size > 1:  # DDP averages the gradients of one loss alone
            for parameter in itertools.chain(*self.trained.values()):
                parameter.grad = self.trainer.strategy.reduce(parameter.grad, reduce_op="mean")
        for one, parameters in zip(optimizers, self.trained.values(), strict=True):
            if self.settings.clip:
                clip_gradients(parameters, self.settings.clip)
            one.step()
        return losses

    def on_train_epoch_end(self) -> None:
        # Of all processes: they must agree on whether the training diverged, or one would wait for
        # ever for the others.
        names, streams = sorted(self._sums), sorted(self._examples)
        loss_sum = self._sums["loss"]
        counted = [*map(self._examples.get, streams), time.process_time() - self._computed]
        *sums, computed = self.trainer.strategy.reduce(
            torch.stack([*(self._sums[name] for name in names), *map(loss_sum.new_tensor, counted)]), reduce_op="sum"
        ).tolist()
        read = dict(zip(streams, sums[len(names) :], strict=True))
        examples = read["labelled"]
        means = {name: total / max(1, read.get(name, examples)) for name, total in zip(names, sums, strict=False)}
        loss = means.pop("loss")
        trained = time.perf_counter()
        if not math.isfinite(loss):
            raise Diverged(f"training loss is {loss} after epoch {self.current_epoch + 1} at learning rate {self.lr}")
        if self.sharded:
            self.unshard()  # type: ignore[operator]
        exchange(self.average, self.model)
        groups = self.dev_split.groups if self.whole_groups else None
        predictions, dev_loss = predict_with_loss(
            self.model, self.dev_split, self.settings.batch_size, self.device, groups
        )
        try:
            scores = score(self.metrics, predictions, self.dev_split.rows, self.dev_split.target.label_tree)
        except NoNumber as error:  # by weights of the last step, of which the loss of training knows nothing
            raise Diverged(f"after epoch {self.current_epoch + 1} at learning rate {self.lr}, dev: {error}") from error
        # The first process's, whose weights are kept: running means (batch norm) are its own, and
        # all must choose the same epoch and rate.
        quality = selection(self.main_metric, scores[self.main_metric], dev_loss)
        self.selection = self.trainer.strategy.broadcast(quality)
        earlier = self.best is not None and not self.in_last_phase(self.best["epoch"])
        if not self.pilot and (self.best is None or earlier or self.selection > self.best["selection"]):
            weights = self.trainer.strategy.lightning_module_state_dict()
            weights = {name: value.to("cpu", copy=True) for name, value in weights.items()}
            self.best = {"epoch": self.current_epoch + 1, "selection": self.selection, "weights": weights}
        exchange(self.average, self.model)
        if self.sharded:
            self.reshard()  # type: ignore[operator]
        self._slow_down()
        ended = time.perf_counter()
        self.seconds["train"] += trained - self._began
        self.seconds["train_processor"] += computed
        self.seconds["dev"] += ended - trained
        row: dict[str, Any] = {"epoch": self.current_epoch + 1, "train_loss": loss}
        row["dev_loss"] = dev_loss if math.isfinite(dev_loss) else None  # a record has no other numbers
        row |= {f"train_{name}": value for name, value in means.items() if math.isfinite(value)}
        self.curve.append(row | scores | {"seconds": ended - self._began})
        rate = examples * self.splits["labelled"].share / max(1e-9, trained - self._began)
        if self.global_rank == 0:
            told = f"dev {self.main_metric} {scores[self.main_metric]:.4f}, {rate:,.0f} examples/s"
            print(f"epoch {row['epoch']}: train loss {loss:.4f}, {told}")

    def in_last_phase(self, epoch: int) -> bool:
        """True for an epoch, counted from 1, that ends in the objective's last phase."""
        return epoch > self.objective.settled_after * self.epochs

    def _slow_down(self) -> None:
        """Lower the rate of schedule ``plateau`` after an epoch that was not the best so far."""
        best = self.best is not None and self.best["epoch"] == self.current_epoch + 1
        if self.settings.lr_schedule == "plateau" and not self.pilot and not best:
            self.plateau *= self.settings.factor
            for one in _listed(self.optimizers(use_pl_optimizer=False)):
                for group in one.param_groups:  # the next step's rate is set already
                    group["lr"] *= self.settings.factor

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        for name in RESUMED:
            checkpoint[name] = getattr(self, name)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        for name in RESUMED:
            setattr(self, name, checkpoint[name])
        self.earlier = dict(self.seconds)


def _listed(values: Any) -> list[Any]:
    """One or several things that Lightning gives, as a list."""
    return values if isinstance(values, list) else [values]


def _detached(state: Any) -> Any:
    """The same state without the graph that computed it."""
    return tree_map(lambda value: value.detach() if isinstance(value, Tensor) else value, state)

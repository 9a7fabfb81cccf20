"""Training one model by Lightning, to early stopping, on one or several devices."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.strategies import ModelParallelStrategy, Strategy

from harness.training.checkpoints import CheckpointNewestEpoch, StreamingCheckpointIO, newest, stopped
from harness.training.fit_module import FitModule


class _Patience(EarlyStopping):
    """Early stopping that does not count epochs before the smallest number of steps is made, nor
    those before the objective's last phase, whose scores it forgets."""

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        assert isinstance(module, FitModule)
        last = module.in_last_phase(module.current_epoch + 1)
        batches = (module.current_epoch + 1) * module.own_steps_per_epoch * trainer.world_size
        if not last or batches <= module.settings.min_steps:
            self.wait_count = -1  # what this epoch may add
        # All processes have the same. Lightning's own log would round it to float32, in which an
        # epoch that is kept as better may be none.
        trainer.callback_metrics["selection"] = torch.tensor(module.selection, dtype=torch.float64)
        super().on_train_epoch_end(trainer, module)
        if not last:
            self.best_score = torch.full_like(self.best_score, -torch.inf)


def fit(
    training: FitModule,
    folder: Path,
    devices: int,
    strategy: str,
    precision: str,
    max_epochs: int,
    pilot: bool = False,
    callbacks: Sequence[pl.Callback] = (),
) -> dict[str, Any]:
    """Train to early stopping, resuming from the last checkpoint in ``folder``; the model ends with
    the weights of its best dev epoch.

    A ``pilot`` runs on few examples and keeps no checkpoint. ``callbacks`` are further ones of
    Lightning's, such as one that sets ``trainer.should_stop``. Returns best epoch, number of
    epochs, whether the last was the best, the passes of an epoch where they are several, and how
    several processes shared the work; in all but the first of them, nothing.
    """
    stop = _Patience("selection", mode="max", patience=training.settings.patience, check_on_train_epoch_end=True)
    last = folder / "last.ckpt"
    whole = (
        copy.deepcopy(training.model) if strategy == "fsdp" else training.model
    )  # for scoring, which one process does alone
    training.pilot, training.epochs = pilot, training.settings.epochs if pilot else max_epochs
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        trainer = pl.Trainer(
            accelerator="auto",
            devices=devices,
            strategy=_strategy(strategy, devices),
            # In a job of SLURM or torchrun, Lightning would leave it to them to start the
            # processes, who know nothing of this cell.
            plugins=[LightningEnvironment(), StreamingCheckpointIO()],
            precision=cast(Any, precision),  # one of many literals, which Lightning checks
            max_epochs=1 if pilot else max_epochs,
            callbacks=[*callbacks] if pilot else [CheckpointNewestEpoch(last), stop, *callbacks],
            reload_dataloaders_every_n_epochs=1,
            use_distributed_sampler=False,
            enable_checkpointing=not pilot,
            enable_progress_bar=False,
            enable_model_summary=False,
            logger=False,
            num_sanity_val_steps=0,
        )
        checkpoint = None if pilot else newest(last)
        if checkpoint is None:
            trainer.fit(training)
        elif stopped(checkpoint):
            training.on_load_checkpoint(checkpoint)
        else:
            del checkpoint  # four times the weights, which Lightning reads by itself
            trainer.fit(training, ckpt_path=str(last), weights_only=True)
    if pilot or training.global_rank > 0:
        return {}
    assert training.best is not None, "dev is scored after each epoch"
    training.model = whole
    training.load_state_dict(training.best["weights"])
    best, epochs = training.best["epoch"], len(training.curve)
    kept = {"best_epoch": best, "epochs": epochs, "rising": best == epochs}
    if training.passes_per_epoch > 1:
        kept["passes_per_epoch"] = training.passes_per_epoch
    return kept | _sharing(training.settings.batch_size, devices, strategy)


def part() -> None:
    """Part from the other processes of a training on several devices, if there are any, after the
    last :func:`fit` that they share.

    A process that ends as a member of the group is sometimes aborted by gloo, whose threads are
    still at work; Lightning takes that for a crash and kills the first process while it scores.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def _strategy(name: str, devices: int) -> str | Strategy:
    """Lightning's strategy for one of :data:`harness.running.request.STRATEGIES`."""
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
    """Fields of a record about training on several devices; nothing for one."""
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

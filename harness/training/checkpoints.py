"""Checkpoints of a fit, from which it goes on when it was cut."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint
from pytorch_lightning.plugins import TorchCheckpointIO

from harness.files import taking_the_place_of

RESUMED = ("curve", "seconds", "best", "plateau", "average")
"""Attributes of a fit that a checkpoint holds beside weights and optimisers."""
SAVING_SHARE = 0.01
"""Of the time of a fit: what may go into checkpoints to resume from. A cut fit repeats so many
times longer than one takes to write."""


class StreamingCheckpointIO(TorchCheckpointIO):
    """Writes checkpoints into a file that then takes its place; Lightning's own builds them in
    memory first, where tables are large."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        with taking_the_place_of(Path(path)) as part:
            torch.save(checkpoint, part)


class CheckpointNewestEpoch(Checkpoint):
    """Writes the newest epoch's checkpoint, from which a cut fit goes on, unless that would take
    more than a small share of the time."""

    def __init__(self, file: Path):
        self.file, self._next = file, 0.0

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        began = time.perf_counter()
        due = began >= self._next or trainer.should_stop or trainer.current_epoch + 1 == trainer.max_epochs
        if trainer.strategy.broadcast(due):  # all processes write it together, and their clocks may disagree
            trainer.save_checkpoint(self.file, weights_only=False)  # without it, Lightning says so in the log
            ended = time.perf_counter()
            self._next = ended + (ended - began) / SAVING_SHARE


def newest(file: Path) -> dict[str, Any] | None:
    """The checkpoint in a file; None where there is none, or a damaged one, which is named."""
    if not file.exists():
        return None
    try:
        with zipfile.ZipFile(file) as parts:
            if damaged := parts.testzip():  # torch does not look at the checksums that it wrote
                raise ValueError(f"{damaged} has another checksum")
        checkpoint: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        if missing := {"state_dict", "callbacks", *RESUMED}.difference(checkpoint):
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        return checkpoint
    except Exception as error:  # bytes that are no checkpoint may make the unpickler raise anything
        reason = (str(error).splitlines() or [""])[0][:200]
        print(f"{file.name} is damaged: training begins anew ({type(error).__name__}: {reason})")
        return None


def stopped(checkpoint: dict[str, Any]) -> bool:
    """True if early stopping had ended the fit whose last checkpoint this is."""
    return any(state.get("stopped_epoch", 0) > 0 for state in checkpoint["callbacks"].values())

"""A model for one task: word vectors, the architecture, and the head that its kind and the task's
type ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from harness.data.batches import length_buckets
from harness.data.corpus import Split
from harness.kinds import VECTORS, Encoder, Regime
from harness.objectives import Objective, RegimeLoss, Supervised
from harness.problems.base import Batch, Head, Problem, Target
from harness.settings import TrainingSettings
from harness.views.base import View


class WordTable(nn.Module):
    """Word vectors of a vocabulary, put into any batch that has ``ids`` and ``vectors``.

    Random ones are uniform in +-0.25 (Kim 2014); ``given`` (words, dims) starts from a file's. The
    padding row is zero and stays so. ``use`` is one of :data:`harness.kinds.VECTORS`.
    """

    def __init__(self, size: int, dims: int, use: str, given: Tensor | None = None):
        super().__init__()
        if use not in VECTORS:
            raise ValueError(f"vectors={use!r} is none of {', '.join(VECTORS)}")
        if use == "random":
            given = None
        fixed = use == "static" or (use == "fixed" and given is not None)
        weights = torch.empty(size, dims).uniform_(-0.25, 0.25) if given is None else given.clone()
        weights[0] = 0
        self.tuned = nn.Embedding.from_pretrained(weights, freeze=fixed, padding_idx=0)
        self.static = (
            nn.Embedding.from_pretrained(weights.clone(), freeze=True, padding_idx=0) if use == "multichannel" else None
        )

    def forward(self, batch: Any) -> Any:
        batch = batch._replace(vectors=self.tuned(batch.ids))
        return batch if self.static is None else batch._replace(static=self.static(batch.ids))


class Model(nn.Module):
    """Reads a batch's inputs, encodes them and answers."""

    def __init__(self, encoder: Encoder, head: Head, table: WordTable | None):
        super().__init__()
        self.encoder, self.head, self.table = encoder, head, table

    def read(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs with word vectors looked up."""
        return inputs if self.table is None else {field: self.table(batch) for field, batch in inputs.items()}

    def forward(self, inputs: dict[str, Any]) -> Any:
        return self.head(self.encoder, self.read(inputs))

    def loss(self, batch: Batch) -> Tensor:
        """Mean supervised loss of a batch, the encoder's terms included."""
        return self.loss_of(self.read(batch.inputs), batch.target)

    def loss_of(self, inputs: dict[str, Any], target: Any) -> Tensor:
        """As :meth:`loss`, of inputs whose vectors are already looked up."""
        return Supervised().at(self, inputs, target)["loss"]

    def predict(self, batch: Batch, split: Split) -> list[Any]:
        """Predictions of the batch's rows."""
        return self.head.decode(self.encoder, self(batch.inputs), batch, split)

    def predict_with_loss(self, batch: Batch, split: Split) -> tuple[list[Any], Tensor]:
        """Predictions of the batch's rows and the head's loss on them, from one pass."""
        outputs = self(batch.inputs)
        return self.head.decode(self.encoder, outputs, batch, split), self.head.loss(
            self.encoder, outputs, batch.target
        )


def on_device(batch: Any, device: torch.device | str) -> Any:
    """The batch's tensors moved to a device. On the CPU they are there: only to look through a
    batch takes a tenth of a millisecond."""
    from pytorch_lightning.utilities import move_data_to_device

    return batch if torch.device(device).type == "cpu" else move_data_to_device(batch, device)


def build(
    cls: type[Encoder],
    problem: Problem,
    settings: dict[str, Any],
    view: View,
    target: Target,
    dims: int,
    vectors: Tensor | None = None,
) -> Model:
    """The model of an architecture class for a problem.

    ``settings`` are its hyperparameters, ``dims`` is the width of word vectors, ``vectors``
    (words, dims) where they start; None is at random.
    """
    given = {"width": dims if view.embeds else view.width, "view": view}
    labels = getattr(target, "labels", None)
    if labels is not None:
        given |= {"classes": len(labels), "labels": len(labels), "answers": labels}
    elif hasattr(target, "symbols"):
        given |= {"labels": len(target), "symbols": len(target)}
    parameters = inspect.signature(cls).parameters
    encoder = cls(**{name: value for name, value in given.items() if name in parameters}, **settings)
    table = WordTable(view.width, dims, encoder.vectors, vectors) if view.embeds else None
    return Model(encoder, problem.head(encoder, target), table)


def objective_of(model: Model, settings: TrainingSettings, regime: Regime | None = None) -> Objective:
    """The objective with which a model is trained: the supervised loss, inside the encoder's own
    objective where it has one, inside the regime's where there is one."""
    objective: Objective = Supervised(model.encoder, model, settings)
    if model.encoder.trained_by is not None:
        objective = model.encoder.trained_by(model.encoder, model, objective)
    if regime is not None:
        objective = (regime.trained_by or RegimeLoss)(regime, model, objective)
    return objective


def predict(model: Model, split: Split, batch_size: int, device: torch.device | str = "cpu") -> list[Any]:
    """Predictions of a whole split in its row order, batched by length. Nothing but the inputs is
    looked at."""
    return _over_batches(model, split, batch_size, device, lambda batch: model.predict(batch, split))


def predict_with_loss(
    model: Model, split: Split, batch_size: int, device: torch.device | str = "cpu"
) -> tuple[list[Any], float]:
    """As :func:`predict`, with the mean loss."""
    losses: list[float] = []

    def answer(batch: Batch) -> list[Any]:
        predictions, loss = model.predict_with_loss(batch, split)
        losses.append(loss.item() * len(batch.rows))
        return predictions

    return _over_batches(model, split, batch_size, device, answer), sum(losses) / len(split)


def _over_batches(
    model: Model, split: Split, batch_size: int, device: torch.device | str, answer: Callable[[Batch], list[Any]]
) -> list[Any]:
    predictions: list[Any] = [None] * len(split)
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        for rows in length_buckets(split.padded_lengths, batch_size, None):
            batch = on_device(split.collate(rows), device)
            for row, prediction in zip(rows, answer(batch), strict=True):
                predictions[row] = prediction
    model.train(was_training)
    return predictions

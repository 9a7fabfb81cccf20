"""A model for one task: word vectors, the architecture, and the head that its kind and the task's
type ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness import registry
from harness.data.batches import length_buckets
from harness.data.corpus import Split
from harness.kinds import VECTORS, Encoder, InputSource, Regime
from harness.label_tree import LabelTree
from harness.layers.overlap import shared
from harness.objectives import Objective, RegimeLoss, Supervised
from harness.problems.base import Answer, Batch, Head, Problem, Target
from harness.settings import TrainingSettings
from harness.views.base import View
from harness.views.words import UNKNOWN

_PLAIN = TrainingSettings()


class WordTable(nn.Module):
    """Word vectors of a vocabulary, put into any batch that has ``ids`` and ``vectors``.

    Random ones are uniform in +-0.25 (Kim 2014); ``given`` (words, dims) starts from a file's. The
    padding row is zero and stays so. ``use`` is one of :data:`harness.kinds.VECTORS`. In training
    the words that ``once`` (words,) marks are read as the unknown one with probability
    ``unknown_rate``.
    """

    once: Tensor | None

    def __init__(
        self,
        size: int,
        dims: int,
        use: str,
        given: Tensor | None = None,
        once: Tensor | None = None,
        unknown_rate: float = 0.0,
    ):
        super().__init__()
        self.unknown_rate = unknown_rate
        self.register_buffer("once", once if unknown_rate else None, persistent=False)
        if use not in VECTORS:
            raise ValueError(f"vectors={use!r} is none of {', '.join(VECTORS)}")
        if use == "random":
            given = None
        fixed = use in ("static", "fixed") and given is not None
        weights = torch.empty(size, dims).uniform_(-0.25, 0.25) if given is None else given.clone()
        weights[0] = 0
        self.tuned = nn.Embedding.from_pretrained(weights, freeze=fixed, padding_idx=0)
        self.static = None
        if use == "multichannel":
            self.static = nn.Embedding.from_pretrained(weights.clone(), freeze=given is not None, padding_idx=0)

    def forward(self, batch: Any) -> Any:
        if self.training and self.once is not None:
            drawn = torch.rand(batch.ids.shape, device=batch.ids.device) < self.unknown_rate
            batch = batch._replace(ids=batch.ids.masked_fill(self.once[batch.ids] & drawn, UNKNOWN))
        batch = batch._replace(vectors=self.tuned(batch.ids))
        return batch if self.static is None else batch._replace(static=self.static(batch.ids))


class Model(nn.Module):
    """Reads a batch's inputs, encodes them and answers.

    The numbers of ``sources`` stand behind each word's vector, in the order of their names.
    ``marked`` are two inputs in each of whose words one more number says whether the other has it;
    in two inputs of another task it says so likewise, and in a single one it is 0.
    ``dropout`` acts on the vectors that the encoder reads.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: Head,
        table: WordTable | None,
        marked: tuple[str, ...] = (),
        dropout: float = 0.0,
        sources: Mapping[str, InputSource] = MappingProxyType({}),
    ):
        super().__init__()
        self.encoder, self.head, self.table = encoder, head, table
        self.sources = nn.ModuleDict(dict(sorted(sources.items())))
        self.marked, self.dropout = marked, dropout

    def read(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs with what the encoder reads of each word: its vector, the numbers of the
        sources, and the mark."""
        if self.table is None:
            return inputs
        words = {field: self.table(batch) for field, batch in inputs.items()}
        for source in self.sources.values():
            words = {field: _joined(batch, source(inputs[field])) for field, batch in words.items()}
        if self.dropout and self.training:
            words = {field: _changed(batch, self._dropped) for field, batch in words.items()}
        if self.marked:
            words = _marked(words, self.marked if {*self.marked} <= {*words} else tuple(words))
        return words

    def _dropped(self, vectors: Tensor) -> Tensor:
        return F.dropout(vectors, self.dropout, self.training)

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

    def answers(self, batch: Batch, split: Split) -> list[Answer]:
        """Predictions of the batch's rows with their probabilities."""
        return self.head.answers(self.encoder, self(batch.inputs), batch, split)

    def predict_with_loss(self, batch: Batch, split: Split) -> tuple[list[Any], Tensor]:
        """Predictions of the batch's rows and the head's loss on them, from one pass."""
        outputs = self(batch.inputs)
        return self.head.decode(self.encoder, outputs, batch, split), self.head.loss(
            self.encoder, outputs, batch.target
        )


def _changed(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The batch with other vectors, and other fixed ones where it has them."""
    batch = batch._replace(vectors=change(batch.vectors))
    return batch._replace(static=change(batch.static)) if getattr(batch, "static", batch.vectors[:0]).numel() else batch


def _joined(words: Any, numbers: Tensor) -> Any:
    """The batch with more numbers (B, T, n) in each vector, which are 0 at padding."""
    numbers = numbers * words.mask[..., None]
    return _changed(words, lambda vectors: torch.cat([vectors, numbers.to(vectors.dtype)], dim=-1))


def _marked(words: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """The inputs with one more number in each word of two of them; of one alone it is 0."""
    if len(fields) == 1:
        [field] = fields
        return {field: _joined(words[field], torch.zeros_like(words[field].mask)[..., None])}
    first, second = (words[field] for field in fields)
    return words | {fields[0]: _with_mark(first, second), fields[1]: _with_mark(second, first)}


def _with_mark(words: Any, other: Any) -> Any:
    """The batch with one more number in each vector: 1 where the word stands in the other text."""
    return _joined(words, shared(words, other)[..., None])


def on_device(batch: Any, device: torch.device | str) -> Any:
    """The batch's tensors moved to a device. On the CPU they are there: only to look through a
    batch takes a tenth of a millisecond."""
    if torch.device(device).type == "cpu":
        return batch
    from pytorch_lightning.utilities import move_data_to_device  # which takes a second to import

    return move_data_to_device(batch, device)


def in_format_of(model: nn.Module, batch: Batch) -> Batch:
    """The batch with the fractions of its inputs in the format of the model's parameters.

    Lightning changes the format of the parameters (64 bits, bfloat16 throughout), but of a batch it
    sees the row numbers alone. At 32 bits nothing is looked through.
    """
    parameter = next(model.parameters(), None)
    if parameter is None or parameter.dtype == torch.float32:
        return batch
    from lightning_utilities.core.apply_func import apply_to_collection

    def changed(numbers: Tensor) -> Tensor:
        return numbers.to(parameter.dtype) if numbers.is_floating_point() else numbers

    return batch._replace(inputs=apply_to_collection(batch.inputs, Tensor, changed))


def build(
    cls: type[Encoder],
    problem: Problem,
    settings: dict[str, Any],
    view: View,
    target: Target,
    dims: int,
    vectors: Tensor | None = None,
    training: TrainingSettings = _PLAIN,
    inputs: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Model:
    """The model of an architecture class for a problem.

    ``settings`` are its hyperparameters, ``dims`` is the width of word vectors, ``vectors``
    (words, dims) where they start; None is at random. ``training`` says what all encoders read
    otherwise, ``inputs`` which sources of further numbers, as a cell does
    (:attr:`harness.records.cell.Cell.inputs`).
    """
    texts = problem.entry.texts
    read_apart = len(texts) == 2 and {*texts} <= problem.fields(cls.output_form(), view).keys()
    marked = texts if training.shared_words and cls.reads_marks and view.embeds and read_apart else ()
    sources = {name: _source(name, settings, view) for name, settings in inputs.items()}
    read = dims + sum(source.size for source in sources.values()) + bool(marked)
    given = {"width": read if view.embeds else view.width, "view": view}
    labels = getattr(target, "labels", None)
    if labels is not None:
        given |= {"classes": len(labels), "labels": len(labels), "answers": labels}
        given |= {"tree": LabelTree(labels, target.label_tree)}
    elif hasattr(target, "symbols"):
        given |= {"labels": len(target), "symbols": len(target)}  # type: ignore[arg-type]
    parameters = inspect.signature(cls).parameters
    encoder = cls(**{name: value for name, value in given.items() if name in parameters}, **settings)
    table = None
    if view.embeds:
        once = torch.tensor(view.vocabulary.row_counts()) == 1  # type: ignore[attr-defined]
        table = WordTable(view.width, dims, encoder.vectors, vectors, once, training.unknown_rate)
    head = problem.head(encoder, target)
    head.dropout, head.stretch = training.dropout, training.stretch
    return Model(encoder, head, table, marked, training.dropout, sources)


def _source(name: str, settings: Mapping[str, Any], view: View) -> InputSource:
    """A fresh source with the settings that a cell gives it."""
    settings = {setting: value for setting, value in settings.items() if setting != "version"}
    return registry.load(registry.entry("inputs", name))(view=view, **settings)


def objective_of(model: Model, settings: TrainingSettings, regime: Regime | None = None) -> Objective:
    """The objective with which a model is trained: the supervised loss, inside the head's or the
    encoder's own objective where one has one, inside the regime's where there is one."""
    objective: Objective = Supervised(model.encoder, model, settings)
    if own := model.head.trained_by or model.encoder.trained_by:
        objective = own(model.encoder, model, objective)
    if regime is not None:
        objective = (regime.trained_by or RegimeLoss)(regime, model, objective)
    return objective


def predict(model: Model, split: Split, batch_size: int, device: torch.device | str = "cpu") -> list[Any]:
    """Predictions of a whole split in its row order, batched by length. Nothing but the inputs is
    looked at."""
    return _over_batches(model, split, batch_size, device, lambda batch: model.predict(batch, split))


def answers(model: Model, split: Split, batch_size: int, device: torch.device | str = "cpu") -> list[Answer]:
    """As :func:`predict`, with probabilities."""
    return _over_batches(model, split, batch_size, device, lambda batch: model.answers(batch, split))


def scored_vectors(model: Model, split: Split, batch_size: int, device: torch.device | str = "cpu") -> list[Tensor]:
    """The vector (size,) of each row of a split, in its row order, that the last layer of the head
    scores; the head must have such a layer, ``output``."""
    read: list[Tensor] = []
    last: Any = model.head.output
    handle = last.register_forward_pre_hook(lambda layer, inputs: read.append(inputs[0].float().cpu()))

    def asked(batch: Batch) -> list[Tensor]:
        read.clear()
        model(batch.inputs)
        return list(read[0])

    try:
        return _over_batches(model, split, batch_size, device, asked)
    finally:
        handle.remove()


def predict_with_loss(
    model: Model,
    split: Split,
    batch_size: int,
    device: torch.device | str = "cpu",
    groups: np.ndarray | None = None,
) -> tuple[list[Any], float]:
    """As :func:`predict`, with the mean loss. Rows of one of the ``groups`` (rows,) stay in one
    batch, as a loss that compares them wants it."""
    losses: list[float] = []

    def answer(batch: Batch) -> list[Any]:
        predictions, loss = model.predict_with_loss(batch, split)
        losses.append(loss.item() * len(batch.rows))
        return predictions

    return _over_batches(model, split, batch_size, device, answer, groups), sum(losses) / len(split)


def _over_batches(
    model: Model,
    split: Split,
    batch_size: int,
    device: torch.device | str,
    answer: Callable[[Batch], list[Any]],
    groups: np.ndarray | None = None,
) -> list[Any]:
    predictions: list[Any] = [None] * len(split)
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        for rows in length_buckets(split.padded_lengths, batch_size, None, groups):
            batch = in_format_of(model, on_device(split.collate(rows), device))
            for row, prediction in zip(rows, answer(batch), strict=True):
                predictions[row] = prediction
    model.train(was_training)
    return predictions

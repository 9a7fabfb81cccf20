"""Objectives: what a training minimises.

An architecture is trained by the supervised loss of its head unless its class names another
objective in ``trained_by``; a regime is an objective that wraps another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from harness.settings import TrainingSettings

Rows = TypeVar("Rows", bound="EncodedRows")

STREAMS = ("labelled", "unlabelled")
"""Streams of batches that the harness can feed to an objective."""

_terms: ContextVar[dict[str, Tensor] | None] = ContextVar("terms", default=None)
_choices: ContextVar[dict[str, list[Tensor]] | None] = ContextVar("choices", default=None)


@contextmanager
def collected_losses() -> Iterator[dict[str, Tensor]]:
    """Terms that encoders add to the training loss while the block runs, by name."""
    terms: dict[str, Tensor] = {}
    token = _terms.set(terms)
    try:
        yield terms
    finally:
        _terms.reset(token)


def add_loss(name: str, value: Tensor) -> None:
    """Add a term to the innermost :func:`collected_losses`; nothing happens outside of one."""
    terms = _terms.get()
    if terms is not None:
        terms[name] = terms[name] + value if name in terms else value


@contextmanager
def collected_choices() -> Iterator[dict[str, list[Tensor]]]:
    """Numbers that encoders tell of what they choose while the block runs, by name: one tensor (B,)
    for each pass."""
    choices: dict[str, list[Tensor]] = {}
    token = _choices.set(choices)
    try:
        yield choices
    finally:
        _choices.reset(token)


def tell_choice(name: str, values: Tensor) -> None:
    """Tell the innermost :func:`collected_choices` a number of each row (B,); nothing happens
    outside of one."""
    choices = _choices.get()
    if choices is not None:
        choices.setdefault(name, []).append(values.detach())


class Learner(Protocol):
    """A model as an objective asks for it (:class:`harness.training.model.Model`)."""

    encoder: Any
    head: Any

    def read(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs as the encoder reads them."""
        ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters of the model by name."""
        ...


class EncodedRows(Protocol):
    """Training rows as an objective asks for them (:class:`harness.data.corpus.Split`)."""

    def cut(self, longest: int) -> Self:
        """The rows in stretches of at most so many units."""
        ...

    def packed(self) -> Self:
        """The rows one behind another, in stretches as long as the view reads."""
        ...


@dataclass
class Step:
    """One step of a training, as an objective sees it.

    ``batches`` has a batch for each of the objective's streams, or for the one whose turn it is
    (:attr:`Objective.in_turn`), ``progress`` is the share of the
    training that is done (0 at the first step, below 1 at the last). ``state`` is what the step
    before left there, detached from its graph: None at the start of an epoch, and of each pass over
    rows that are read in their order. An objective that
    carries state from batch to batch sets it anew. ``seed`` is the cell's and ``passes`` the number
    of the pass over the rows, from 1: what an objective draws of a row may depend on these two and
    on the row, so that it is the same on one device and on several. In pass 0 it asks what
    evaluation asks.
    """

    batches: dict[str, Any]
    progress: float
    state: Any = None
    seed: int = 0
    passes: int = 0

    @property
    def batch(self) -> Any:
        """The labelled batch."""
        return self.batches["labelled"]


class Objective(nn.Module):
    """The losses that a training minimises, with the modules that they need.

    Its own modules (a generator, a decoder, a frozen teacher) are trained and checkpointed with the
    model and dropped when training ends: the model alone answers. ``owner`` is the encoder or
    regime that asked for it and holds its hyperparameters; ``inner`` is the objective that it
    wraps, by default the supervised loss. An objective keeps no reference to the model, which would
    be checkpointed twice.
    """

    streams: tuple[str, ...] = ("labelled",)
    """The batches that it reads at each step: some of :data:`STREAMS`, or the companions' tasks."""
    in_turn: ClassVar[bool] = False
    """True if a step has a batch of one of the streams alone: an epoch reads all rows of each, in a
    random order of the batches, so that a stream's turns are in proportion to its size."""
    sequential: ClassVar[bool] = False
    """True if rows are read in their order, as parallel streams: row t of each stream in batch t.
    Streams that end a step earlier are the last ones of a batch."""
    strategies: ClassVar[tuple[str, ...]] = ("ddp", "fsdp")
    """Strategies of several devices under which it is right; others are refused before the run."""
    last_phase: float = 0.0
    """Share of a training after which its last phase begins. The phases before it may leave the dev
    score as it is, or raise it without what the last one teaches: their epochs neither count for
    patience nor are kept where there is a later one."""
    whole_pilots: ClassVar[bool] = False
    """True if a pilot goes through all phases in little. Otherwise it makes the first tenth of the
    steps, which tells nothing of a rate where the phase that they belong to has no part in the
    answers."""

    def __init__(self, owner: Any, model: Learner | None, inner: Objective | None = None):
        super().__init__()
        self.inner = inner

    @property
    def name(self) -> str:
        """Name of the class, around that of the objective that it wraps."""
        own = type(self).__name__
        return own if self.inner is None else f"{own}({self.inner.name})"

    @property
    def settled_after(self) -> float:
        """Share of a training after which it is in the last phase, and so is what it wraps."""
        return max(self.last_phase, 0.0 if self.inner is None else self.inner.settled_after)

    @property
    def in_little(self) -> bool:
        """True if a pilot goes through all its phases, or those of what it wraps."""
        return self.whole_pilots or (self.inner is not None and self.inner.in_little)

    def begin(self, rows: Mapping[str, Any]) -> None:
        """Told the encoded training rows of each of its streams before the first step."""

    def portions(self, split: Rows, settings: TrainingSettings) -> Rows:
        """The training rows in the portions of which a step has a batch: by default as they
        are."""
        return split

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        """Losses of a step by name.

        ``loss`` is minimised, and so are those that :meth:`players` names; every other one is only
        a column of the curve.
        """
        raise NotImplementedError

    def players(self, model: Learner) -> dict[str, list[tuple[str, nn.Parameter]]]:
        """Named parameters by the loss that each of them minimises: one optimiser for each loss.

        By default all trained parameters minimise ``loss``. With several players each one's
        gradient is that of its own loss alone; all are computed before any of them moves.
        """
        own = [(f"objective.{name}", parameter) for name, parameter in self.named_parameters()]
        return {"loss": [*model.named_parameters(), *own]}

    def trained(self, model: Learner) -> dict[str, list[nn.Parameter]]:
        """The parameters of each player that have a gradient."""
        return {
            name: [parameter for _, parameter in parameters if parameter.requires_grad]
            for name, parameters in self.players(model).items()
        }


class Supervised(Objective):
    """The head's loss of the labelled batch, plus the terms that the encoder adds."""

    def __init__(self, owner: Any = None, model: Learner | None = None, settings: TrainingSettings | None = None):
        super().__init__(owner, model)
        self.reduction = "mean" if settings is None else settings.reduction

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        return self.at(model, model.read(step.batch.inputs), step.batch.target)

    def at(self, model: Learner, inputs: dict[str, Any], target: Any) -> dict[str, Tensor]:
        """Losses of inputs whose vectors are already looked up (a regime may have moved them):
        ``loss``, and where the encoder adds terms, ``task`` without them and each of them."""
        return self.with_outputs(model, inputs, target)[0]

    def with_outputs(self, model: Learner, inputs: dict[str, Any], target: Any) -> tuple[dict[str, Tensor], Any]:
        """As :meth:`at`, and the head's outputs."""
        with collected_losses() as terms:
            outputs = model.head(model.encoder, inputs)
            task = self.reduced(model, outputs, target)
            older = model.encoder.auxiliary_loss()
        if isinstance(older, Tensor) or older:
            terms["auxiliary"] = torch.as_tensor(older, dtype=task.dtype, device=task.device)
        if not terms:
            return {"loss": task}, outputs
        return {"loss": task + sum(terms.values()), "task": task} | terms, outputs

    def reduced(self, model: Learner, outputs: Any, target: Any) -> Tensor:
        """The head's loss, summed over what the settings say."""
        if self.reduction == "mean":
            return model.head.loss(model.encoder, outputs, target)
        losses = model.head.row_losses(model.encoder, outputs, target)
        return losses.sum() if self.reduction == "batch" else losses.mean()


class MultiTask(Objective):
    """The supervised loss of a batch of the cell's own task, or of one of its companions under a
    head of the companion's own.

    ``owner.companions`` are their ids, of which there may be none. The encoder is told whose batch
    it reads by its ``member``: 0 for its own task, k for the k-th companion.
    """

    in_turn = True

    def __init__(self, owner: Any, model: Learner, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.streams = ("labelled", *owner.companions)
        self.heads = nn.ModuleDict()
        self._encoder = (model.encoder,)  # in a tuple, where torch does not find and save it

    def begin(self, rows: Mapping[str, Any]) -> None:
        assert self.inner is not None
        self.inner.begin(rows)
        (encoder,) = self._encoder
        self.heads.update({task: rows[task].head(encoder) for task in self.streams[1:]})

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        assert self.inner is not None
        [(stream, batch)] = step.batches.items()
        encoder, head = model.encoder, self.head(model, stream)
        encoder.member = self.streams.index(stream)
        try:
            head.constrain(encoder)
            beside = _Beside(encoder, head, model.read, model.named_parameters)
            return self.inner.losses(beside, replace(step, batches={"labelled": batch}))
        finally:
            encoder.member = 0

    def head(self, model: Learner, stream: str) -> Any:
        """The head of a stream, with the settings that the model's has."""
        if stream == "labelled":
            return model.head
        head: Any = self.heads[stream]
        for name in ("dropout", "stretch", *(("label_smoothing",) if head.smooths_above(model.encoder) else ())):
            setattr(head, name, getattr(model.head, name))
        return head


@dataclass
class _Beside:
    """A model with another head."""

    encoder: Any
    head: Any
    read: Callable[[dict[str, Any]], dict[str, Any]]
    named_parameters: Callable[[], Iterator[tuple[str, nn.Parameter]]]


class Carried(Objective):
    """The supervised loss of texts that are read stretch by stretch, each from the state in which
    the stretch before it ended.

    No gradient goes from a stretch to the one before (truncated back-propagation through time).
    """

    sequential = True

    def portions(self, split: Rows, settings: TrainingSettings) -> Rows:
        return split.cut(settings.stretch)

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        assert isinstance(self.inner, Supervised)
        inputs = model.read(step.batch.inputs) | {"state": step.state}
        losses, outputs = self.inner.with_outputs(model, inputs, step.batch.target)
        step.state = outputs.state
        return losses


class RegimeLoss(Objective):
    """The loss of a regime that overrides :meth:`harness.kinds.Regime.loss`."""

    def __init__(self, owner: Any, model: Learner, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.regime = owner

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        return {"loss": self.regime.loss(model, step.batch)}

"""Pre-training: what an encoder of word pieces learns from plain text, and how well it has learnt
it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from harness.errors import ContractError
from harness.layers.noise import Noise
from harness.objectives import Learner, Objective, Step, Supervised
from harness.problems.base import Batch, EncodedSplit, Head, Inputs, NoTarget
from harness.problems.language_model import Surprise
from harness.ragged import Ragged
from harness.rows import in_parts
from harness.task import Row
from harness.views.base import words_of
from harness.views.subwords import SubwordBatch, Subwords

if TYPE_CHECKING:
    from harness.kinds import PretrainedEncoder
    from harness.settings import TrainingSettings


class Foretold(NamedTuple):
    """Natural log-probabilities (N,) of what was asked, and the text (N,) of each one's batch."""

    logs: Tensor
    texts: Tensor

    @classmethod
    def at(cls, logs: Tensor, asked: Tensor) -> Foretold:
        """Those (N,) of the places (B, T) where ``asked`` is true, in their order."""
        return cls(logs, asked.nonzero()[:, 0])


def summed(foretold: Foretold, texts: int) -> list[Surprise]:
    """The predictions of so many texts."""
    sums = torch.zeros(texts, dtype=torch.double).index_add(0, foretold.texts.cpu(), foretold.logs.double().cpu())
    counts = foretold.texts.bincount(minlength=texts)
    return [[total, count] for total, count in zip(sums.tolist(), counts.tolist(), strict=True)]


class TextObjective(nn.Module):
    """The questions on plain text from which an encoder learns.

    ``forward(encoder, read, noise)``, where a SubwordBatch is read, asks the encoder something of
    each text that the text itself answers, and returns how probable the answers were to it; further
    terms of the loss are added by :func:`harness.objectives.add_loss`. Whatever is drawn is drawn
    from ``noise``, so that a text is asked the same in any batch, in one process or several, and
    when a training goes on. In evaluation each text is asked one thing for ever, which is its
    score; systems with one ``unit`` and one vocabulary are asked the same.

    Its modules are trained with the encoder and kept in the head: whoever starts from the encoder's
    weights leaves them behind.
    """

    unit: ClassVar[str]
    """The name of what is asked for, such as "masked pieces"."""
    weight: float = 1.0
    """Factor on the mean surprise in the loss, where the paper has one beside its other terms; one
    that is not the same in all passes is set in each."""
    packs: ClassVar[bool] = True
    """True if the texts of training are put together to the full length, with a separator between
    them; False if each stays for itself, cut where it is too long."""
    last_phase: float = 0.0
    """Share of the training after which its last phase begins, as of an objective."""
    takes: ClassVar[tuple[str, ...]] = ()
    """Roles in which it is given a kept model that its encoder takes, such as a teacher."""
    pieces_per_word: float | None = None
    """Pieces of the training texts that a pass reads, for each of their words: another vocabulary
    reads as many of equally many words. None for all of them."""

    def __init__(self, encoder: PretrainedEncoder):
        super().__init__()

    def inherit(self, role: str, parent: Any) -> None:
        """Take what a kept model learnt, before training and after the encoder has. Without one it
        asks the texts alone; in evaluation, always."""

    def forward(self, encoder: Any, read: Any, noise: Noise) -> Foretold:
        raise NotImplementedError

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Predictions for the rows that need no learning, by a view that was fitted to the training
        rows."""
        raise NotImplementedError

    @classmethod
    def by_heart(cls, view: Subwords, rows: Sequence[Row]) -> list[Surprise]:
        """Predictions of who knows the rows by heart: certainty, unless what it sees of a text
        cannot tell which one it is."""
        return [[0.0, 1] for _ in rows]


class PieceTarget(NoTarget):
    """Texts without answers; ``counted`` says what the scores of a model count."""

    counted: dict[str, Any] | None = None


class FromText(Objective):
    """The training of a :class:`LearnText` head: each pass over the texts asks other things of
    them, which the seed, the number of the pass and the text alone decide."""

    def __init__(self, owner: Any, model: Learner | None, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.packs = model is not None and model.head.learns.packs
        self.pieces_per_word = None if model is None else model.head.learns.pieces_per_word
        self.last_phase = 0.0 if model is None else model.head.learns.last_phase
        self.asked = "" if model is None else type(model.head.learns).__name__

    @property
    def name(self) -> str:
        """Name of what is learnt from the texts."""
        return self.asked

    def portions(self, split: Any, settings: TrainingSettings) -> Any:
        read = split if self.pieces_per_word is None else limited(split, self.pieces_per_word)
        return read.packed() if self.packs else read.cut(read.view.room)

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        assert isinstance(self.inner, Supervised)
        anew = {"pass": (step.seed, step.passes), "progress": step.progress} if step.passes else {}
        return self.inner.at(model, model.read(step.batch.inputs) | anew, step.batch.target)


def limited(split: Any, pieces_per_word: float) -> Any:
    """Some texts of a split, each as probably as any other, which have together so many pieces for
    each word of all texts, or a text less, and are one at least; the separator behind each is a
    piece."""
    (columns,) = split.inputs.values()
    pieces = columns["ids"].lengths + 1
    words = sum(len(words_of(text)) for text in split.rows["text"])
    order = np.random.default_rng(0).permutation(len(pieces))
    count = np.searchsorted(pieces[order].cumsum(), pieces_per_word * words, "right")
    return split.of(np.sort(order[: max(1, count)]))


class LearnText(Head):
    """The head in which an encoder learns from plain text by the objective that it names.

    The loss is the mean surprise of what is asked for, in nats, times the objective's ``weight``.
    """

    from_text = True
    trained_by = FromText

    def __init__(self, encoder: Any, target: PieceTarget):
        super().__init__()
        self.target = target
        self.learns: TextObjective = encoder.learns(encoder)
        self.takes = self.learns.takes

    def inherit(self, role: str, parent: Any, rows: Sequence[Row]) -> None:
        self.learns.inherit(role, parent)

    @staticmethod
    def units(read: Any) -> Tensor:
        """Whole numbers (B, T) that tell a text from others, by which all is drawn that it is
        asked."""
        return read.ids

    def forward(self, encoder: Any, inputs: Inputs) -> tuple[Foretold, int]:
        read = inputs["text"]
        noise = Noise(self.units(read), read.mask, inputs.get("pass", ()), inputs.get("progress", 1.0))
        return self.learns(encoder, read, noise), len(read.mask)

    def loss(self, encoder: Any, outputs: tuple[Foretold, int], target: None) -> Tensor:
        logs = outputs[0].logs
        return -self.learns.weight * logs.sum() / max(1, len(logs))

    def row_losses(self, encoder: Any, outputs: tuple[Foretold, int], target: None) -> Tensor:
        (logs, texts), rows = outputs
        return -self.learns.weight * logs.new_zeros(rows).index_add(0, texts, logs)

    def decode(self, encoder: Any, outputs: tuple[Foretold, int], batch: Batch, split: EncodedSplit) -> list[Surprise]:
        return summed(*outputs)

    def evidence(self, encoder: Any, outputs: tuple[Foretold, int]) -> list[Tensor]:
        (logs, texts), rows = outputs
        return [logs[texts == row] for row in range(rows)]


def counted(unit: str, view: Subwords) -> dict[str, Any]:
    """The units of a score, as a record has them (:class:`harness.records.blocks.Tokens`)."""
    pieces = json.dumps(sorted(view.tokenizer.get_vocab().items()))
    digest = hashlib.sha256(pieces.encode()).hexdigest()
    return {"name": f"{unit} of {view.width:,}", "symbols": view.width, "artefact": digest}


def log_shares(view: Subwords, rows: Sequence[Row]) -> Tensor:
    """Natural logarithm of each piece's share (V,) of the pieces of texts, with a separator behind
    each text, every piece of the vocabulary counted once more."""
    ids = view.encode([row["text"] for row in rows])["ids"]
    assert isinstance(ids, Ragged)
    counts = 1 + np.bincount(ids.values, minlength=view.width)
    counts[view.separator] += len(rows)
    return torch.from_numpy(np.log(counts) - math.log(counts.sum()))


def batches(view: Subwords, rows: Sequence[Row], at_once: int = 64) -> Iterator[SubwordBatch]:
    """The batches of the rows in their order."""
    for part in in_parts(rows, at_once):
        columns = view.encode([row["text"] for row in part])
        yield view.collate(columns, np.arange(len(part)))


def require_logarithms(predict: Callable[[list[Row]], list[Surprise]], rows: Sequence[Row]) -> None:
    """Raise :class:`~harness.errors.ContractError` for a surprise that is none: a probability above
    1, or a text that is asked nothing."""
    for row, (log, count) in zip(rows, predict(list(rows)), strict=True):
        if count < 1 or not -math.inf < log <= 0:
            raise ContractError(
                f"the answers to {count} questions on row {row['id']} have the log-probability {log:.4g}; expected is"
                " at least one question, and a number that is not above 0"
            )

"""Kinds that read words: texts, trees, pairs, taggers, readers and answerers."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from harness import registry
from harness.kinds.base import Architecture
from harness.layers.pooling import pool
from harness.objectives import Objective, add_loss, tell_choice
from harness.registry import TaskEntry
from harness.task import Task
from harness.views.base import View
from harness.views.facts import Facts
from harness.views.frames import Frames
from harness.views.words import Words

VECTORS = ("tuned", "static", "fixed", "multichannel", "random")
"""Uses of word vectors: ``tuned`` in training; ``fixed`` (``static``, an older name), not tuned;
``multichannel``, a tuned and a fixed copy; ``random``, tuned, and given ones are not read. Where
none are given all are tuned: fixed ones would be noise for ever."""


class Encoder(Architecture, nn.Module):
    """A trained architecture.

    ``vectors`` is the use of word vectors for a view that embeds, one of :data:`VECTORS`.
    ``head_bias`` and ``head_max_norm`` shape the layer that the
    harness puts on top: whether it has a bias, and the norm to which its rows are rescaled after
    each step.
    """

    vectors: str = "tuned"
    head_bias: bool = True
    head_max_norm: float | None = None
    ordinary_dropouts: ClassVar[tuple[str, ...]] = ("dropout",)
    """Hyperparameters that protocol ``equal`` sets to 0, since it has a dropout of its own for all
    encoders of a task. One that is the mechanism itself, as a DAN's of words, is not among them."""
    unused: ClassVar[tuple[str, ...]] = ()
    """Name prefixes of parameters that may stay without a gradient, each for a reason given beside
    it."""

    cut: str = ""
    """The reason why its gradient is not the slope of its loss, where that is on purpose: which
    path lets none through, or another one, and who wants it so, the paper or its authors' code."""

    trained_by: ClassVar[type[Objective] | None] = None
    """The objective with which it is trained instead of the supervised loss alone."""

    keeps_head: ClassVar[bool] = False
    """True where the layers on top go on too from those of a parent in the role ``weights``, which
    was trained to answer alike."""

    reads_marks: ClassVar[bool] = True
    """False for one whose vector of a text is asked for later, where it has no other text beside
    it: protocol ``equal`` then marks no word of a pair that the other text has."""

    member: int = 0
    """The task whose batch it reads while training on several: 0 is the cell's own, k its k-th
    companion (:class:`harness.objectives.MultiTask`)."""

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Loss of class scores (B, classes), which the architecture's own last layer gave, against
        labels (B,)."""
        return F.cross_entropy(scores, labels)

    def set_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Loss of each text (B,) where it has any number of labels, of what :meth:`forward` gave
        against labels (B, classes) in 0/1."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it learns sets of labels")

    def set_probabilities(self, outputs: Tensor) -> Tensor:
        """Probability (B, classes) of each label by itself, of what :meth:`forward` gave: a label
        is said above 0.5. By default the sigmoid of scores."""
        return outputs.sigmoid()

    def add_loss(self, name: str, value: Tensor) -> None:
        """Add a term, such as a penalty, to the training loss of the pass that is running.

        Call it from ``forward``. Terms of one name are summed and have a column of the curve;
        outside training the call does nothing.
        """
        add_loss(name, value)

    def tell_choice(self, name: str, values: Tensor) -> None:
        """Tell a number of each row (B,) that says what was chosen in the pass that is running,
        such as the share of words that were read: a record has the means over test.

        Call it from ``forward``. Where nobody asks, the call does nothing.
        """
        tell_choice(name, values)

    def auxiliary_loss(self) -> Tensor | float:
        """A term that the last forward pass adds to the training loss: an older form of
        :meth:`add_loss`, for plugins that override it."""
        return 0.0


class SequenceEncoder(Encoder):
    """Vectors (B, T, width) and mask (B, T) to states (B, T, ``size``); never sees what the vectors
    stand for.

    ``pooling`` is how a task that needs one vector gets it; an architecture with a pooling of its
    own overrides :meth:`pooled`.
    """

    gives = "states"
    size: int
    pooling: str = "max"

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        """A fresh view for texts in ``column``: the class's own, or else the usual one."""
        own = super().reads(column, hyperparameters)
        return {"text": Words(), "audio": Frames()}.get(column) if own is None else own

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        raise NotImplementedError

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """Vector (B, size) of the whole text."""
        return pool(states, mask, self.pooling)


class TextEncoder(Encoder):
    """One text, as the batch of its view, to a vector (B, ``size``).

    An encoder whose own last layer scores the classes takes ``classes`` in its constructor and
    returns scores (B, classes) itself. One that overrides :meth:`set_losses` also learns sets of
    labels by them.
    """

    gives = "vector"
    size: int

    @classmethod
    def output_form(cls) -> str:
        if cls.set_losses is not Encoder.set_losses:
            return "label scores" if cls.gives == "vector" else cls.gives
        return "class scores" if "classes" in inspect.signature(cls).parameters else cls.gives


class TreeEncoder(TextEncoder):
    """A text with its tree: :meth:`nodes` gives a state per node, from which root and node labels
    are predicted."""

    gives = "node states"

    def nodes(self, trees: Any) -> Tensor:
        """States (N, size) of all nodes of the batch."""
        raise NotImplementedError

    def forward(self, trees: Any) -> Tensor:
        return self.nodes(trees)[trees.roots]


class PairEncoder(Encoder):
    """Two texts to a vector (B, ``size``), or to a score (B,) when ``scores`` is true (then it
    ranks but does not classify)."""

    gives = "pair vector"
    size: int
    scores: ClassVar[bool] = False
    whole_groups: ClassVar[bool] = False
    """True when the ranking loss needs a question's candidates in one batch."""

    @classmethod
    def output_form(cls) -> str:
        return "pair score" if cls.scores else cls.gives

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        """Loss of scores (B,) against labels (B,) in 0/1; ``groups`` (B,) numbers the question of
        each pair. Default: pointwise."""
        return F.binary_cross_entropy_with_logits(scores, labels.to(scores.dtype))


class Tagger(Encoder):
    """Words, in their own case, to emission scores (B, T, labels); ``decoder`` is ``softmax`` (each
    word alone) or ``crf``. For ``pair_crf`` the scores are (B, T, (labels + 1) * labels), those of
    each label behind each other one and, last, at the beginning.

    ``scheme`` ("BIO" or "BIOES") forbids a ``crf`` to decode labels that break it.
    """

    gives = "emissions"
    view = Words(lower=False)
    decoder: str = "softmax"
    scheme: str = ""

    @classmethod
    def scores_per_word(cls, labels: int) -> int:
        """Numbers that the decoder reads of each word."""
        return (labels + 1) * labels if cls.decoder == "pair_crf" else labels


class SpanScores(NamedTuple):
    """Scores of the answer's first and last word, ``start`` and ``end`` (B, T), -inf at padding.

    ``no_answer`` is the score of having none, where there is one: (B,), the same beside the starts
    and the ends, or (B, 2), one for each.
    """

    start: Tensor
    end: Tensor
    no_answer: Tensor | None = None


class Reader(Encoder):
    """Passage and question to :class:`SpanScores`."""

    gives = "spans"


class Answerer(Encoder):
    """Facts and question (two FactBatches) to a vector (B, ``size``), or to scores (B, answers) of
    the words that can be the answer.

    A constructor with a parameter ``answers`` is given these words; the last, empty one stands for
    every answer that training never showed.
    """

    gives = "fact vector"
    view = Facts()


class SupportedAnswerer(Answerer):
    """Facts and question to whatever has ``scores`` (B, answers), for an architecture that is shown
    in training which facts support an answer.

    Its registration says ``sees=("supporting facts",)``. Its :meth:`objective` reads its output and
    the pair of answers (B,) and support (B, K), and gives a loss for each row (B,). The support are
    the numbers of the facts, from 1, and 0 behind them; all are 0 for rows other than training's.
    """

    gives = "chosen facts"

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        if registry.load(task).support is Task.support:
            return f"is shown in training which facts support an answer, which {task.id} does not say"
        return super().unfit(task, hyperparameters)

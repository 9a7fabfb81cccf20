"""The contract between an architecture and the harness: one base class per kind.

A constructor's first parameter is ``width``, the size of one input vector (or, for a view that
indexes a table of the architecture's own, the number of its rows). One that also has a parameter
``classes``, ``labels`` or ``symbols`` is given the number of classes to score, of labels (tagging,
CTC) or of output symbols (generation), one with ``answers`` the words that can be the answer or
the names of the classes, one with ``tree`` the :class:`~harness.label_tree.LabelTree` of the
classes, which has no edges where the task declares no tree; one with ``view`` is given the fitted
view. All other parameters are hyperparameters with the paper's
values as defaults.

A class that is trained on further tasks beside that of the cell names them as the default of a
parameter ``companions``, a tuple of task ids, and :class:`~harness.objectives.MultiTask` or one
derived from it as ``trained_by``. It is given them without the cell's own task.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness import registry
from harness.layers.pooling import pool
from harness.objectives import Carried, Objective, add_loss, tell_choice
from harness.registry import TaskEntry
from harness.task import Row, Task
from harness.views.base import View
from harness.views.facts import Facts
from harness.views.frames import Frames
from harness.views.stream import Stream
from harness.views.subwords import SubwordBatch, Subwords
from harness.views.words import WordBatch, Words
from harness.views.words_and_characters import WordCharacterBatch

Prediction = Any


OUTPUTS = {
    "states": "a state per position",
    "frame states": "a state per frame of a recording",
    "vector": "a vector per text",
    "class scores": "scores of the classes of one text",
    "label scores": "scores of the classes of one text, or of labels of which it has any number",
    "label sets": "a vector per text, from which the encoder itself says a set of labels",
    "node states": "a state per node of a tree",
    "pair vector": "a vector per pair of texts",
    "pair score": "a similarity per pair of texts",
    "emissions": "label scores per word",
    "spans": "start and end scores of a span",
    "fact vector": "a vector per story and question",
    "chosen facts": "facts of a story, one after another, and scores of the answers",
    "frame labels": "label scores per frame",
    "frame labels and states": "label scores per frame, or those of states to which frames are aligned",
    "next symbols": "scores of the next symbol",
    "symbols and copies": "scores of the next symbol, words of the source among them",
    "next words": "the probability of each word of a text, given those before it",
    "joined states": "a state per piece of the joined texts",
    "predictions": "answers without gradient training",
}
"""Outputs of an architecture (:meth:`Architecture.output_form`), in words."""


class Parent(Protocol):
    """A model from which an architecture starts, as it asks for it
    (:class:`harness.saved_models.base.KeptModel`)."""

    model: Any
    """The trained model with its ``encoder`` and ``head``; None for a system without gradient
    training."""
    view: View | None
    """The view that reads for it; None for such a system."""

    estimator: Estimator | None
    """The fitted system; None for a model that was trained by gradients."""

    def answers(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The prediction of each row with its probabilities, where the model gives some."""
        ...

    def word_vectors(self) -> Mapping[str, np.ndarray] | None:
        """The vector of each word that the model knows; None for a model without any."""
        ...

    def tokenizer(self) -> str | None:
        """The tokenizer that the model learnt; None for a model that learnt none."""
        ...


class Architecture:
    """Base class of all kinds: the view that it reads, the output that it gives, and the tasks that
    it cannot run on."""

    gives: ClassVar[str]
    """Its output, one of :data:`OUTPUTS`, by which a problem chooses the head."""

    @classmethod
    def output_form(cls) -> str:
        """The output of this class."""
        return cls.gives

    view: ClassVar[View | None] = Words()
    view_settings: ClassVar[dict[str, str]] = {}
    """Fields of the view that a hyperparameter sets: the field's name to the hyperparameter's."""

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        """A fresh view for a task whose texts stand in ``column``; None when this architecture
        cannot read such a column."""
        if cls.view is None or cls.view.column != column:
            return None
        chosen = {field: hyperparameters[name] for field, name in cls.view_settings.items() if name in hyperparameters}
        return dataclasses.replace(copy.deepcopy(cls.view), **chosen)  # type: ignore[type-var]

    @classmethod
    def view_for(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> View | None:
        """A fresh view for the first of the task's inputs that this architecture can read; None
        when it can read none."""
        views = (cls.reads(column, hyperparameters) for column in registry.load(task).inputs)
        return next((view for view in views if view is not None), None)

    needs_label_tree: ClassVar[bool] = False
    """True for one that runs on no task without :attr:`~harness.task.Task.label_tree`."""

    takes: ClassVar[tuple[str, ...]] = ()
    """Roles in which it takes a kept model (:data:`harness.settings.ROLES`). Word vectors need no
    word here: whatever embeds words takes them."""

    @classmethod
    def roles(cls, type: str) -> tuple[str, ...]:
        """Those of its roles in which it takes one on tasks of a type: by default all."""
        return cls.takes

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        """Take what a kept model learnt. Called once for each role, after the constructor and
        before training; ``rows`` are the training rows without their answers, and none where a kept
        child is loaded. Whatever it raises ends the cell as failed."""

    @classmethod
    def default_parents(cls, parents: dict[str, str], hyperparameters: dict[str, Any]) -> dict[str, str]:
        """Those of its registered parents, by role, from which it starts with these
        hyperparameters."""
        return parents

    @classmethod
    def inherited_view(cls, view: View, role: str, parent: Parent) -> View:
        """The view with what a kept model gives to the reading of texts, such as a tag for each
        word. Called once for each role, before the view is fitted or restored."""
        return view

    @classmethod
    def reader(cls, hyperparameters: dict[str, Any]) -> tuple[type[Architecture], dict[str, Any]] | None:
        """The class whose view reads the texts, and its hyperparameters; None for a system that
        reads the rows themselves."""
        return cls, hyperparameters

    @classmethod
    def reader_and_view(
        cls, task: TaskEntry, hyperparameters: dict[str, Any]
    ) -> tuple[type[Architecture], View | None] | tuple[None, None]:
        """The class whose view reads the texts of a task, and that view; None for what is not."""
        found = cls.reader(hyperparameters)
        return (found[0], found[0].view_for(task, found[1])) if found else (None, None)

    @classmethod
    def reason_to_skip(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        """The reason why this architecture cannot run on a task, or None: the task's type decides
        first, then :meth:`unfit`."""
        if not cls.can_answer(task.type):
            types = _types_answered(cls, tuple(registry.entries("problems")))
            given = OUTPUTS.get(cls.output_form(), cls.output_form())
            return f"gives {given}: runs on {', '.join(types) or 'nothing'}; {task.id} is of type {task.type}"
        if cls.needs_label_tree and not registry.load(task).label_tree:
            return f"needs a tree over the labels, and {task.id} declares none"
        return cls.unfit(task, hyperparameters)

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True if tasks of a type can be answered from what this architecture gives."""
        return cls.output_form() in registry.load(registry.entry("problems", type)).heads

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        """The reason why this architecture cannot run on a task whose type it fits, or None."""
        columns = registry.load(task).inputs
        if cls.view_for(task, hyperparameters) is not None:
            return None
        wanted = getattr(cls.view, "column", "text")
        return f"reads {wanted}, but {task.id} offers {' and '.join(columns)}"


@functools.cache
def _types_answered(cls: type[Architecture], types: tuple[str, ...]) -> tuple[str, ...]:
    """The task types that a class can answer; a grid asks for each of its pairs that do not fit."""
    return tuple(type for type in types if cls.can_answer(type))


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
        return {"text": Words(), "audio": Frames()}.get(column)

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
    word alone) or ``crf``.

    ``scheme`` ("BIO" or "BIOES") forbids a CRF to decode labels that break it.
    """

    gives = "emissions"
    view = Words(lower=False)
    decoder: str = "softmax"
    scheme: str = ""


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


class FrameEncoder(Encoder):
    """Frames (a FrameBatch) to label scores (B, T', labels), label 0 the blank, and the lengths
    (B,) in T'."""

    gives = "frame labels"
    view = Frames()
    beam: int = 1
    """Width of the prefix beam search; 1 is best path."""


class AligningEncoder(FrameEncoder):
    """Frames to scores of the states in which a model of words may be, once somebody ``aligns`` the
    training recordings for it, and to label scores until then.

    ``transcript_losses(logs, lengths, frames, transcripts)`` gives a loss for each recording (B,)
    and ``transcribed(logs, lengths, frames)`` the transcripts, of log-probabilities (B, T',
    states), their lengths and the batch of frames.
    """

    gives = "frame labels and states"
    aligns: bool = False

    def transcript_losses(self, logs: Tensor, lengths: Tensor, frames: Any, transcripts: Sequence[str]) -> Tensor:
        raise NotImplementedError

    def transcribed(self, logs: Tensor, lengths: Tensor, frames: Any) -> list[str]:
        raise NotImplementedError


class Generator(Encoder):
    """Source vectors and a target prefix to next-symbol scores.

    ``forward(vectors (B,S,width), mask (B,S), prefix (B,U)) -> (B,U,symbols)`` under teacher
    forcing; ``start(vectors, mask) -> state`` and ``step(symbols (B,), state) -> (log-probabilities
    (B,symbols), state)`` for decoding with ``beam`` hypotheses.
    """

    gives = "next symbols"
    beam: int = 1

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        return SequenceEncoder.reads(column, hyperparameters)

    def start(self, vectors: Tensor, mask: Tensor) -> Any:
        raise NotImplementedError

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        raise NotImplementedError


class CopyingGenerator(Generator):
    """A generator whose output vocabulary each source extends by its own words.

    ``forward`` and ``start`` have a third parameter, ``source`` (B,S): the number of each source
    word among the symbols, or, for one that is none of them, ``symbols`` plus the first place where
    it stands. Prefixes hold such numbers too, and log-probabilities are (B, U, symbols + S) of
    ``forward``, (B, symbols + S) of ``step``; whatever is neither a symbol nor in the source has a
    probability of about 0.
    """

    gives = "symbols and copies"

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        return Words() if column == "text" else None


class LanguageModel(Encoder):
    """The words before each word of a text to the probability of the word itself.

    Texts are read stretch by stretch. ``forward(words, state)`` is given the word before each word
    of a stretch, its vectors (B, T, width), and what the stretch before left behind; it returns
    ``states`` (B, T, size), from which the words are scored, and the state that it leaves. A state
    is a tensor with the texts in its first dimension, or a tuple or dict of such tensors;
    :meth:`start` gives that of a text's beginning. A constructor with a parameter ``symbols`` is
    given the number of words that can come.
    """

    gives = "next words"
    view = Stream()
    trained_by = Carried
    window: int | None = None
    """Number of words before a word on which its probability depends; None for all of them."""

    def start(self, texts: int) -> Any:
        """State before the first word of so many texts: none, for a network that sees nothing but
        the stretch."""
        return ()

    def forward(self, words: WordBatch, state: Any) -> tuple[Tensor, Any]:
        raise NotImplementedError

    def scores(self, states: Tensor) -> Tensor:
        """Scores (..., symbols) of all words behind states (..., size), before the softmax."""
        raise NotImplementedError

    def log_probabilities(self, states: Tensor, words: Tensor) -> Tensor:
        """Natural log-probability of one word for each of the states; by default by a softmax over
        the :meth:`scores`."""
        scores = self.scores(states).flatten(0, -2)
        return -F.cross_entropy(scores, words.flatten(), reduction="none").view_as(words)


class PretrainedEncoder(Encoder):
    """Sub-words (a SubwordBatch, two texts joined with segments) to states (B, T, ``size``);
    ``pooled(states)`` is the text's vector, ``word_states(states)`` what words are labelled by.

    One that takes a ``teacher`` learns from it on plain text, and goes on from its own weights
    elsewhere.
    """

    gives = "joined states"
    size: int
    view = Subwords()
    takes = ("weights",)
    learns: ClassVar[Any] = None
    """The objective by which it learns from plain text, made of the encoder
    (:class:`harness.problems.text_objective.TextObjective`); None for one that does not."""

    @classmethod
    def can_answer(cls, type: str) -> bool:
        heads = registry.load(registry.entry("problems", type)).heads
        head = heads.get(cls.output_form())
        return head is not None and (cls.learns is not None or not head.from_text)

    @classmethod
    def roles(cls, type: str) -> tuple[str, ...]:
        """All of them on plain text, and all but a teacher on other tasks."""
        return tuple(role for role in cls.takes if role != "teacher" or type == "text")

    @classmethod
    def inherited_view(cls, view: View, role: str, parent: Parent) -> View:
        """A view with the tokenizer of a model whose weights it takes, or which teaches it."""
        reads_alike = role in cls.takes and role in ("weights", "teacher")
        if reads_alike and isinstance(view, Subwords) and parent.view is not None:
            view.learnt = parent.view.state()
        return view

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        """Begin with the weights of an encoder of the same names and sizes, and not with those of
        its head."""
        if role == "weights":
            self.load_state_dict(parent.model.encoder.state_dict())

    def vector(self, pieces: SubwordBatch) -> Tensor:
        """Vector (B, size) for the whole input."""
        return self.pooled(self(pieces))

    def pooled(self, states: Tensor) -> Tensor:
        """The same from its states."""
        return states[:, 0]

    def pair_layer(self, classes: int) -> nn.Module | None:
        """A layer of its own for the relation of two joined texts, which gives scores (B, classes)
        of their states (B, T, size) and pieces; None for a linear layer on :meth:`pooled`."""
        return None

    def verified(self, scores: SpanScores) -> SpanScores:
        """The scores of spans of a question's windows with what else it knows of their having an
        answer: by default nothing."""
        return scores

    def word_states(self, states: Tensor) -> Tensor:
        """States (B, W, size) of words, as the layer that labels them reads them."""
        return states


class AudioEncoder(SequenceEncoder):
    """Frames of recordings alone to states (B, T, ``size``): one that learns from plain recordings
    first, by the objective that it names in ``learns``
    (:class:`harness.problems.audio.AudioObjective`).

    From a model in the role ``weights`` it also takes the reading: the same frames of the same
    rate, divided by the same deviations.
    """

    gives = "frame states"
    view: ClassVar[View | None] = Frames()
    takes = ("weights",)
    learns: ClassVar[Any] = None

    @classmethod
    def reads(cls, column: str, hyperparameters: dict[str, Any]) -> View | None:
        return super(SequenceEncoder, cls).reads(column, hyperparameters)

    @classmethod
    def inherited_view(cls, view: View, role: str, parent: Parent) -> View:
        read: Any = copy.deepcopy(parent.view)
        if role != "weights" or read is None:
            return view
        read.learnt = read.state()
        return read

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        """Begin with the weights of an encoder of the same names and sizes."""
        self.load_state_dict(parent.model.encoder.state_dict())


class InputSource(nn.Module):
    """Further numbers for each word, which an encoder reads behind the word's vector.

    It is registered by :func:`harness.registry.register_input`, made anew for each model that
    ``--inputs`` gives it to, and trained with it. ``forward`` is given words without their vectors
    and returns numbers (B, T, ``size``); those at padding are not read. The constructor is given
    the fitted ``view``, a :class:`~harness.views.words_and_characters.WordsAndCharacters`; all its
    other parameters are hyperparameters with the paper's values as defaults.
    """

    size: int
    ordinary_dropouts: ClassVar[tuple[str, ...]] = ("dropout",)
    """Hyperparameters that protocol ``equal`` sets to 0, as those of an :class:`Encoder`."""
    spells: ClassVar[bool] = True
    """True for one that reads the characters of words, and so tells unknown ones apart."""
    takes: ClassVar[tuple[str, ...]] = ()
    """Roles in which it takes a kept model: those of the ``parents`` of its registration."""

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        """Take what a kept model learnt, as :meth:`Architecture.inherit`."""

    def forward(self, words: WordCharacterBatch) -> Tensor:
        raise NotImplementedError


class Estimator(Architecture):
    """A system without gradient training: counts, a convex solver, a graph over the corpus.

    ``task_types`` are the types it runs on; a constructor with a parameter ``task_type`` is given
    that of the task. A ``transductive`` one is also given the test rows without their answers; the
    leaderboard says so.
    """

    gives = "predictions"
    task_types: ClassVar[tuple[str, ...]] = ("classify",)
    transductive: ClassVar[bool] = False
    from_dev: ClassVar[tuple[str, ...] | None] = None
    """Parts of :meth:`fitted_state` that depend on dev, such as a setting that is chosen there; all
    others are the same whatever dev is. None, which a plugin of an older version has, says
    nothing; of a class of this package it means that no part does."""
    deterministic: bool | None = None
    """True where equal seeds give equal bits, False where they do not, as with threads that write
    over each other's numbers; None where a system does not say."""
    parameter_count: int = 0
    flops_per_example: float | None = None
    """Floating-point operations of one answer, where the system is one of matrix products; known
    once it is fitted."""

    @classmethod
    def can_answer(cls, type: str) -> bool:
        return type in cls.task_types

    @classmethod
    def reader(cls, hyperparameters: dict[str, Any]) -> None:
        return None

    def __init__(self, seed: int = 0):
        self.seed = seed

    def prepare(self) -> None:
        """Do what a process does once, before its first fit, such as compiling: no measured time
        counts it."""

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        """Learn from training rows; ``dev`` is for choosing settings, which :attr:`from_dev`
        names, ``unlabelled`` the test texts of a transductive system."""
        raise NotImplementedError

    def predict(self, rows: Sequence[Row]) -> list[Prediction]:
        """The prediction of each row, in the task type's format."""
        raise NotImplementedError

    def answers(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The prediction of each row for a user (:data:`harness.problems.base.Answer`); a system
        that knows how sure it is says so beside it."""
        return [{"prediction": prediction} for prediction in self.predict(rows)]

    def chosen_on_dev(self) -> dict[str, Any]:
        """The hyperparameters that :meth:`fit` chose on dev: with them a fit without dev chooses
        nothing. Who wants a model for use has it learn from dev's rows too then."""
        return {}

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        """Bytes of memory that a fit takes, about: ``size`` are those of its training rows as Arrow
        holds them. A cell for which the machine has less is skipped.

        By default what rows as Python objects and counts of words and pairs of words take.
        """
        return 30.0 * size

    def word_vectors(self) -> Mapping[str, np.ndarray] | None:
        """The vector of each word that it learnt, which others start from in the role ``vectors``;
        None for a system without any."""
        return None

    def tokenizer(self) -> str | None:
        """The tokenizer by which it divides words into pieces, as the library tokenizers writes
        one, and by which others read in the role ``tokens``; None for a system without any."""
        return None

    def fitted_state(self) -> dict[str, Any]:
        """All that :meth:`predict` needs beside what the constructor is given.

        By default all attributes. Values are numbers, texts, bytes, numpy arrays, tensors, sparse
        matrices, and lists, tuples, sets, dicts and counters of them
        (:mod:`harness.saved_models.values`). A system with other objects, such as scikit-learn's,
        gives what these learnt.
        """
        return dict(vars(self))

    def restore_fitted(self, state: dict[str, Any]) -> None:
        """Undo :meth:`fitted_state`, in a fresh system with the same settings."""
        vars(self).update(state)


def made(cls: type[Estimator], task_type: str, seed: int, settings: dict[str, Any]) -> Estimator:
    """A fresh system; one whose constructor asks for the task's type is given it."""
    given = {"task_type": task_type} if "task_type" in inspect.signature(cls).parameters else {}
    return cls(seed=seed, **given, **settings)


class Regime(Architecture):
    """A way of training that wraps another architecture (hyperparameter ``wraps``) and changes its
    loss: by an objective of its own (``trained_by``), or by overriding :meth:`loss`.

    It fits the tasks that the wrapped one fits, unless :meth:`unfit` says more.
    """

    gives = "predictions"
    wraps: str
    trained_by: ClassVar[type[Objective] | None] = None

    @classmethod
    def reason_to_skip(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        if reason := registry.load(wrapped).reason_to_skip(task, wrapped.hyperparameters):
            return f"wraps {wrapped.id}: {reason}"
        return cls.unfit(task, hyperparameters)

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return None

    @classmethod
    def reader(cls, hyperparameters: dict[str, Any]) -> tuple[type[Architecture], dict[str, Any]] | None:
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        return registry.load(wrapped).reader(dict(wrapped.hyperparameters))

    def apply(self, model: nn.Module, view: View) -> None:
        """Prepare a fresh model that reads ``view``."""
        self.prepare(model, torch.tensor(view.vocabulary.row_counts(), dtype=torch.float) if view.embeds else None)

    def prepare(self, model: nn.Module, counts: Tensor | None) -> None:
        """Change the model before training; ``counts`` are the training frequencies of its word
        table's rows."""

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """Training loss of a batch."""
        raise NotImplementedError

"""The base of a problem, and the parts that it puts together: targets and heads."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.errors import ContractError
from harness.kinds import Architecture, Prediction
from harness.objectives import Objective
from harness.ragged import Columns, Ragged
from harness.records.outcomes import Slice
from harness.registry import ProblemEntry
from harness.task import Row
from harness.views.base import View, words_of

Inputs = dict[str, Any]
Fields = dict[str, Callable[[Row], Any]]
Answer = dict[str, Any]
"""A prediction for a user: ``prediction``, and how sure the model is of it by further names, such
as ``probability`` (of this prediction) and ``probabilities`` (of all classes, by name)."""
Properties = dict[str, tuple[Callable[[Row], str], Sequence[str]]]
"""Properties of a test unit: how each is read from a row, and its values in the order to show."""
IGNORED = -100
"""Label of a position that has none (padding, an answer beyond the cut): no loss there."""

UNKNOWN_WORD = "Qzxv"
"""A word that no training text has."""


class Batch(NamedTuple):
    """A batch as a model sees it: ``inputs`` by field, the ``target`` (None without labels), the
    row numbers in the split, and the number of units (words, ...) that they hold."""

    inputs: Inputs
    target: Any
    rows: np.ndarray
    units: int


class EncodedSplit(Protocol):
    """A split as a head asks for it (:class:`harness.data.corpus.Split`): its rows, the view that
    read them, and the target's columns."""

    rows: Any
    view: View
    targets: Columns


class Target:
    """Gold answers as flat arrays, fitted on the training rows, and as a batch's tensors.

    ``label_tree`` is the task's (:attr:`harness.task.Task.label_tree`), where it has one."""

    label_tree: Mapping[str, str] = {}

    def fit(self, rows: Sequence[Row]) -> None:
        """Learn the label set from the training rows."""

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        """Flat arrays of the rows' answers."""
        raise NotImplementedError

    def collate(self, columns: Columns, rows: np.ndarray) -> Any:
        """Tensors for the given rows."""
        raise NotImplementedError

    def places(self, rows: Sequence[Row], view: View) -> Columns:
        """Columns that decoding reads beside the inputs, of rows without answers: the places of
        their words, for one that copies them."""
        return {}

    def state(self) -> dict[str, Any]:
        """Results of :meth:`fit`, as JSON values: by default all attributes."""
        return dict(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        """Undo :meth:`state`."""
        vars(self).update(state)


class NoTarget(Target):
    """The target of rows without labels: None."""

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        return {}

    def collate(self, columns: Columns, rows: np.ndarray) -> None:
        return None


class Head(nn.Module):
    """The layers between an encoder and an answer, with their loss.

    ``target`` says what is predicted. A head calls the encoder on the inputs (a dict from field to
    batch), gives a loss for the target, and decodes predictions.
    """

    target: Any
    trained_by: ClassVar[type[Objective] | None] = None
    """The objective with which the encoder is trained under this head, instead of its own."""
    from_text: ClassVar[bool] = False
    """True if the encoder learns by an objective of its own from plain text."""
    smooths: ClassVar[bool] = False
    """True if its own loss is a cross-entropy, which can smooth labels."""
    label_smoothing: float = 0.0
    dropout: float = 0.0
    """Probability with which :meth:`drop` leaves out a number."""
    stretch: int = 35
    """Number of words that a head whose encoder carries a state gives it at once."""
    takes: tuple[str, ...] = ()
    """Roles in which it is given a kept model that its encoder takes."""

    def inherit(self, role: str, parent: Any, rows: Sequence[Row]) -> None:
        """Take what a kept model learnt (:meth:`harness.kinds.Architecture.inherit`), after the
        encoder has: the weights of its head, where the encoder keeps them
        (:attr:`harness.kinds.Encoder.keeps_head`)."""
        self.load_state_dict(parent.model.head.state_dict())

    def drop(self, values: Tensor) -> Tensor:
        """The numbers that a layer of this head reads, some of them left out in training."""
        return F.dropout(values, self.dropout, self.training)

    def forward(self, encoder: Any, inputs: Inputs) -> Any:
        """The outputs that :meth:`loss` and :meth:`decode` read."""
        raise NotImplementedError

    def loss(self, encoder: Any, outputs: Any, target: Any) -> Tensor:
        """Mean training loss of a batch."""
        raise NotImplementedError

    def row_losses(self, encoder: Any, outputs: Any, target: Any) -> Tensor:
        """Training loss of each row (B,), summed over its words or symbols."""
        raise NotImplementedError(f"{type(self).__name__} has no loss of single rows")

    def decode(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[Any]:
        """Predictions of the batch's rows, in the problem's format."""
        raise NotImplementedError

    def answers(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[Answer]:
        """Predictions of the batch's rows, with what the model gives of probabilities."""
        return with_probability(self.decode(encoder, outputs, batch, split))

    def evidence(self, encoder: Any, outputs: Any) -> list[Tensor]:
        """The numbers behind each row's prediction, without padding: they must not depend on the
        other rows of the batch."""
        return list(outputs)

    def knows_none(self, gold: Tensor) -> bool:
        """True for a batch of dev whose every label is one that training never showed: a mean over
        none would be no number. Training is not asked, where it cannot be and a GPU would wait."""
        return not self.training and bool((gold == IGNORED).all())

    def smooths_above(self, encoder: Any) -> bool:
        """True if its loss of what this encoder gives is one that can smooth labels."""
        return self.smooths

    def constrain(self, encoder: Any) -> None:
        """Bring parameters back into their allowed set after a step."""

    @property
    def smoothing(self) -> float:
        """Share of probability that the classes share: in training alone."""
        return self.label_smoothing if self.training else 0.0


def shown_id(id: str) -> str:
    """A name of a row that says nothing: the ids of a corpus are file names as often as not, and
    those of reviews, messages and recordings hold the answer."""
    return hashlib.blake2b(id.encode(), digest_size=8).hexdigest()


def with_probability(predictions: Sequence[Any], probabilities: Sequence[Any] | None = None) -> list[Answer]:
    """An answer for each prediction; ``probabilities`` are the predictions' own."""
    if probabilities is None:
        return [{"prediction": prediction} for prediction in predictions]
    pairs = zip(predictions, probabilities, strict=True)
    return [{"prediction": prediction, "probability": probability} for prediction, probability in pairs]


def f1_by_kind(pairs: Iterable[tuple[Set[tuple[Any, ...]], Set[tuple[Any, ...]]]]) -> list[Slice]:
    """F1 of each kind, with the number of actual things of it. A pair is what was said and what is
    so of a row, tuples that end in their kind."""
    right, predicted, actual = Counter[str](), Counter[str](), Counter[str]()
    for ours, theirs in pairs:
        for counts, part in ((right, ours & theirs), (predicted, ours), (actual, theirs)):
            counts.update(kind for *_, kind in part)
    scores = {kind: 2 * right[kind] / (predicted[kind] + actual[kind]) for kind in {*predicted, *actual}}
    return [(kind, actual[kind], scores[kind]) for kind in sorted(scores)]


class Problem:
    """The question that tasks of one type ask of an architecture.

    The literals of the decorator are in ``entry``: ``columns`` that every row has, ``inputs`` (what
    a system reads; everything else in a row is an answer or a note), ``texts`` (the inputs that are
    texts), ``unit_texts`` (the columns in whose words a unit's length is counted), ``cluster`` (the
    column that dependent rows share, such as a speaker), ``metrics`` that fit its predictions, and
    ``unit`` (what a score is a mean over).
    """

    heads: ClassVar[dict[str, type[Head]]] = {}
    """The head for each output of an encoder (:data:`harness.kinds.OUTPUTS`)."""

    learnt_by_heart: ClassVar[str | None] = None
    """Metric that is perfect for whoever knows the answers, where a task's main metric need not be
    (ranks of equal numbers); None for the main metric."""

    def __init__(self, entry: ProblemEntry):
        self.entry = entry

    # Reading.

    def input_row(self, row: Row) -> Row:
        """A row as a system may see it before it is scored: the inputs, and a :func:`shown_id`."""
        visible = {"id": shown_id(row["id"])} | {name: row[name] for name in self.entry.inputs if name in row}
        if "audio" in visible:  # a recording's file name may say what is spoken
            visible["audio"] = visible["audio"] | {"path": visible["id"]}
        return visible

    def input_rows(self, rows: Sequence[Row]) -> list[Row]:
        """Rows as a system may see them before it is scored."""
        return [self.input_row(row) for row in rows]

    def learnt_rows(self, rows: Sequence[Row]) -> list[Row]:
        """Rows as a system learns from them: with their answers, and with the id under which it
        would be asked about them."""
        return [row | {"id": shown_id(row["id"])} for row in rows]

    def fields(self, gives: str, view: View) -> Fields:
        """The input fields of a batch, each with its reader of a row, for an architecture that
        ``gives`` that output from that view."""
        return {"text": lambda row: row[view.column]}

    def whole_words(self, gives: str) -> str | None:
        """The reason why an architecture that ``gives`` that output must read words as they are,
        and not in pieces; None where it need not."""
        return None

    # Answering.

    def target(self, gives: str) -> Target:
        """A fresh target for an architecture that gives that output."""
        raise NotImplementedError

    def head(self, encoder: Any, target: Target) -> Head:
        """The head on top of an encoder."""
        head = self.heads[encoder.output_form()](encoder, target)
        if encoder.keeps_head:
            head.takes = (*head.takes, "weights")
        return head

    floor_names: ClassVar[tuple[str, ...]] = ()
    """Names of the :meth:`floors`."""

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[Prediction]]:
        """Predictions that need no learning, by name. They read nothing of ``rows`` but the
        inputs."""
        raise NotImplementedError

    def floors_of(
        self, system: type[Architecture], train: Sequence[Row], rows: Sequence[Row], view: View | None = None
    ) -> dict[str, list[Prediction]]:
        """The :meth:`floors` that a system must beat: those whose scores count the same units.
        ``view`` is what it reads by, fitted to the training rows, where there is one already."""
        return self.floors(train, rows)

    def floor(self, train: Sequence[Row], rows: Sequence[Row]) -> list[Prediction]:
        """The first of the :meth:`floors`, which a model must beat."""
        return next(iter(self.floors(train, rows).values()))

    def right(self, row: Row) -> Prediction:
        """The prediction that is right for a row, one of them where several are: the value of the
        column that is no input, where there is one such column."""
        answers = self.entry.answer_columns
        if len(answers) != 1:
            raise NotImplementedError(f"{type(self).__name__} does not say which prediction is right")
        return row[answers[0]]

    def by_heart(self, rows: Sequence[Row], encoder: Any) -> list[Prediction]:
        """Predictions of a model with this encoder that knows the rows by heart: the right ones,
        unless what it sees cannot tell them."""
        return [self.right(row) for row in rows]

    def tokens(self, system: Any) -> dict[str, Any] | None:
        """The division of texts into tokens that the scores of a system count, as a record has it
        (:class:`harness.records.blocks.Tokens`); None where scores count none. ``system`` is one
        that was fitted, or the target of one that is trained by gradients."""
        return None

    def sound(self, system: Any, predict: Callable[[list[Row]], list[Prediction]], train: Sequence[Row]) -> None:
        """Raise :class:`~harness.errors.ContractError` for a system (as in :meth:`tokens`) whose
        predictions break a rule that no metric can see; ``predict`` asks it."""

    # Rows that a contract check makes.

    def shortened(self, row: Row) -> Row:
        """The row with one word in each text, and an answer that fits it."""
        return row | {name: _first_word(row[name]) for name in self.entry.texts if name in row}

    def with_unknown_words(self, row: Row) -> Row:
        """The row with every word of its texts replaced by one that no training text has."""
        return row | {name: unknown(row[name]) for name in self.entry.texts if name in row}

    def flipped(self, rows: Sequence[Row]) -> list[Row] | None:
        """The rows with wrong answers, each kind of answer turned into another one wherever it
        stands, so that a system which learns from them learns to be wrong. None where an answer
        depends on the row's own text (a span, a transcript) and has no kinds."""
        return None

    # Looking at results.

    def words(self, row: Row) -> list[str] | None:
        """Lower-case words of a unit's own texts; None for a row without text (a recording)."""
        if not all(column in row for column in self.unit_texts):
            return None
        return [word.lower() for column in self.unit_texts for word in words_of(row[column])]

    @property
    def unit_texts(self) -> tuple[str, ...]:
        """Columns in whose words the length of a unit is counted."""
        return self.entry.texts if self.entry.unit_texts is None else self.entry.unit_texts

    def cluster(self, row: Row) -> str:
        """Name of the group of dependent rows that a row belongs to; its id where it has none."""
        found = row.get(self.entry.cluster) if self.entry.cluster else None
        return row["id"] if found in (None, "") else str(found)

    def properties(self, rows: Sequence[Row]) -> Properties:
        """Properties of a unit by which errors are counted beside length and unknown words: how
        each is read from a row, and its values in the order to show."""
        return {}

    def slices(self, metric: str, predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, list[Slice]]:
        """Scores of parts that are smaller than a row."""
        return {}

    def confusion(self, predictions: Sequence[Any], rows: Sequence[Row]) -> tuple[list[str], list[list[int]]] | None:
        """Class names, and counts by actual (rows) and predicted (columns) class; None without
        classes."""
        return None


def numbers_of(column: Ragged | np.ndarray, rows: np.ndarray) -> Tensor:
    """The numbers of the given rows in a column that has one for each row."""
    assert isinstance(column, np.ndarray)
    return torch.from_numpy(column[rows])


def padded(column: Ragged | np.ndarray, rows: np.ndarray, value: int) -> tuple[Tensor, Tensor]:
    """The given rows of a column of lists (B, longest), ``value`` behind their ends, and their
    lengths."""
    assert isinstance(column, Ragged)
    numbers, lengths = column.pad(rows, value)
    return torch.from_numpy(numbers).long(), torch.from_numpy(lengths)


def size_of(encoder: Any) -> int:
    """Size of the vectors that an encoder gives; :class:`ContractError` when it does not say."""
    if not hasattr(encoder, "size"):
        raise ContractError(
            f"{type(encoder).__name__} does not set self.size, the size of the vectors that its forward returns"
            " (one that scores the classes itself takes `classes` in its constructor)"
        )
    return encoder.size


def majority_and_random(answers: Iterable[str], count: int) -> dict[str, list[str]]:
    """Two floors for ``count`` rows: the commonest of the training answers, and answers drawn as
    often as training shows them."""
    counts = Counter(answers)
    shares = np.array(list(counts.values())) / counts.total()
    drawn = np.random.default_rng(0).choice(list(counts), size=count, p=shares)
    return {"majority": [counts.most_common(1)[0][0]] * count, "random": drawn.tolist()}


def _first_word(text: str | list[str]) -> str | list[str]:
    return text[:1] if isinstance(text, list) else words_of(text)[0]


def unknown(text: str | list[str]) -> str | list[str]:
    """As many words as the text has, none of which training knows."""
    return [UNKNOWN_WORD] * len(text) if isinstance(text, list) else " ".join([UNKNOWN_WORD] * len(words_of(text)))


def turned(labels: Iterable[str]) -> dict[str, str]:
    """Another label for each: the next one in their order, and the first for the last."""
    names = sorted(set(labels))
    return dict(zip(names, [*names[1:], *names[:1]], strict=True))


def numbers(labels: Sequence[str]) -> dict[str, int]:
    """Number of each label."""
    return {label: number for number, label in enumerate(labels)}

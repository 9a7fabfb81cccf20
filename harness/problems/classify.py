"""Classification: one label for a text or a recording."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.errors import DataError
from harness.kinds import Encoder, PretrainedEncoder, SequenceEncoder, TreeEncoder
from harness.problems.base import (
    IGNORED,
    UNKNOWN_WORD,
    Answer,
    Batch,
    EncodedSplit,
    Head,
    Inputs,
    Problem,
    Properties,
    Target,
    majority_and_random,
    numbers,
    numbers_of,
    size_of,
    turned,
    with_probability,
)
from harness.ragged import Columns
from harness.registry import register_problem
from harness.task import Row
from harness.views.base import View, words_of
from harness.views.tree import ABSENT, without_labels


class ClassTarget(Target):
    """One class per row: int64 (B,). A label that training never showed is ignored; scoring still
    counts it, as an error of every system."""

    labels: list[str]

    def fit(self, rows: Sequence[Row]) -> None:
        self.labels = sorted({row["label"] for row in rows})

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        known = numbers(self.labels)
        return {"label": np.array([known.get(row["label"], IGNORED) for row in rows], dtype=np.int64)}

    def collate(self, columns: Columns, rows: np.ndarray) -> Tensor:
        return numbers_of(columns["label"], rows)


def text_vector(encoder: Encoder, text: Any) -> Tensor:
    """The vector (B, size) of one text, whatever the encoder's kind."""
    if isinstance(encoder, SequenceEncoder):
        return encoder.pooled(encoder(text.vectors, text.mask), text.mask)
    if isinstance(encoder, PretrainedEncoder):
        return encoder.vector(text)
    return encoder(text)


def scores_itself(encoder: Any) -> bool:
    """True for an encoder without a size whose constructor asks what there is to score."""
    if hasattr(encoder, "size"):
        return False
    asked = inspect.signature(type(encoder)).parameters
    return "classes" in asked or "answers" in asked


class Classify(Head):
    """Vector of a text, one linear layer, softmax; an encoder that scores the classes itself gets
    no layer."""

    target: ClassTarget
    smooths = True
    output: Any
    """The layer on the encoder's vector; None above an encoder that scores the classes itself."""

    def __init__(self, encoder: Any, target: ClassTarget):
        super().__init__()
        self.target = target
        self.output = None if scores_itself(encoder) else self.layer(encoder, len(target.labels))

    def layer(self, encoder: Any, classes: int) -> nn.Module:
        """The layer from the encoder's vector to the scores."""
        return nn.Linear(size_of(encoder), classes, bias=encoder.head_bias)

    def forward(self, encoder: Any, inputs: Inputs) -> Any:
        vector = text_vector(encoder, inputs["text"])
        return vector if self.output is None else self.output(self.drop(vector))

    def loss(self, encoder: Any, outputs: Any, target: Tensor) -> Tensor:
        if self.knows_none(target):
            return outputs.new_zeros(())
        if not self.training:  # training knows all of its labels, and an own objective need not know IGNORED
            outputs, target = outputs[target != IGNORED], target[target != IGNORED]
        if self.output is None and not self.smoothing:
            return encoder.objective(outputs, target)
        return F.cross_entropy(outputs, target, label_smoothing=self.smoothing)

    def row_losses(self, encoder: Any, outputs: Any, target: Tensor) -> Tensor:
        if self.output is None and not self.smoothing:
            return torch.stack([encoder.objective(*row) for row in zip(outputs[:, None], target[:, None], strict=True)])
        return F.cross_entropy(outputs, target, label_smoothing=self.smoothing, reduction="none")

    def smooths_above(self, encoder: Any) -> bool:
        return self.smooths and not self.own_loss(encoder)

    def own_loss(self, encoder: Any) -> bool:
        """True above an encoder whose scores have a loss of its own, for which they need be no
        logarithms of probabilities."""
        return self.output is None and type(encoder).objective is not Encoder.objective

    def decode(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[Any]:
        return [self.target.labels[i] for i in self.class_scores(outputs).argmax(-1).tolist()]

    def class_scores(self, outputs: Any) -> Tensor:
        """Scores (B, classes) of what :meth:`forward` gave."""
        return outputs

    def evidence(self, encoder: Any, outputs: Any) -> list[Tensor]:
        return list(self.class_scores(outputs))

    def answers(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[Answer]:
        """The softmax of the scores; ``scores`` themselves of an encoder with a loss of its own."""
        labels, scores = self.target.labels, self.class_scores(outputs).double()
        predictions = self.decode(encoder, outputs, batch, split)
        if self.own_loss(encoder):
            found = zip(with_probability(predictions), scores.tolist(), strict=True)
            return [answer | {"scores": dict(zip(labels, row, strict=True))} for answer, row in found]
        shares = scores.softmax(-1)
        sure = with_probability(predictions, shares.amax(-1).tolist())
        found = zip(sure, shares.tolist(), strict=True)
        return [answer | {"probabilities": dict(zip(labels, row, strict=True))} for answer, row in found]

    def constrain(self, encoder: Any) -> None:
        if self.output is not None and encoder.head_max_norm is not None:
            with torch.no_grad():
                weight = self.output.weight
                rows = (
                    weight.to_local() if hasattr(weight, "to_local") else weight
                )  # those of this process, where FSDP shares them out
                rows.copy_(torch.renorm(rows, p=2, dim=0, maxnorm=encoder.head_max_norm))


class ClassifyTree(Classify):
    """As :class:`Classify`, with the loss at every node whose label the task knows (Socher et al.
    2013)."""

    def forward(self, encoder: TreeEncoder, inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
        trees = inputs["text"]
        return self.output(self.drop(encoder.nodes(trees))), trees.roots, trees.labels

    def loss(self, encoder: Any, outputs: tuple[Tensor, Tensor, Tensor], target: Tensor) -> Tensor:
        scores, roots, labels = outputs
        labels = self._gold(labels, roots, target)
        if self.knows_none(labels):
            return scores.new_zeros(())
        return F.cross_entropy(scores, labels, ignore_index=IGNORED, label_smoothing=self.smoothing)

    def row_losses(self, encoder: Any, outputs: tuple[Tensor, Tensor, Tensor], target: Tensor) -> Tensor:
        scores, roots, labels = outputs
        losses = F.cross_entropy(
            scores,
            self._gold(labels, roots, target),
            ignore_index=IGNORED,
            label_smoothing=self.smoothing,
            reduction="none",
        )
        text = torch.bucketize(torch.arange(len(losses), device=losses.device), roots)  # roots are the last nodes
        return torch.zeros_like(target, dtype=losses.dtype).index_add(0, text, losses)

    def _gold(self, labels: Tensor, roots: Tensor, target: Tensor) -> Tensor:
        """Class of every node (N,): its label's, and the text's own at the root."""
        return node_classes(labels, len(self.target.labels), self.target.labels).index_copy(0, roots, target)

    def class_scores(self, outputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        return outputs[0][outputs[1]]


SENTIMENTS = ("very negative", "negative", "neutral", "positive", "very positive")
"""Names of the node labels 0 to 4 of sentiment trees."""
SIDES = ("negative", "negative", "neutral", "positive", "positive")
"""Names of the same labels where a task tells the two sides apart alone."""


def node_classes(labels: Tensor, classes: int, names: list[str]) -> Tensor:
    """Node labels 0-4 as the task's classes: by name for five classes; for others, each side of
    neutral (without such a class neutral nodes have none).

    :class:`DataError` for other labels, and where nodes have labels and the classes other names.
    """
    if bool((labels >= len(SENTIMENTS)).any()):
        raise DataError(f"a node of a tree has the label {int(labels.max())}; expected are sentiments from 0 to 4")
    wanted, known = SENTIMENTS if classes == len(SENTIMENTS) else SIDES, numbers(names)
    if not {*wanted} - {"neutral"} <= {*known} and bool((labels != ABSENT).any()):
        raise DataError(
            f"the task's classes are {', '.join(names)}, and the nodes of its trees have labels, which are sentiments"
            f" from 0 to 4; expected are the classes {', '.join(SENTIMENTS)}, or negative and positive, or nodes"
            " without labels, as in ( ( a) ( tree))"
        )
    order = [known.get(name, IGNORED) for name in wanted]
    table = torch.tensor([*order, IGNORED], device=labels.device)
    return table[labels]


@register_problem(
    "classify",
    name="Classification",
    columns=("label",),
    inputs=("text", "tree", "audio"),
    texts=("text",),
    metrics=("accuracy", "macro_f1"),
    cluster="speaker",
    stratum="label",
    forms={"label": "name", "tree": "string", "audio": "audio"},
)
class ClassifyProblem(Problem):
    """A text, a tree or a recording has one of a few labels; a prediction is the label."""

    heads: ClassVar = {
        "states": Classify,
        "frame states": Classify,
        "vector": Classify,
        "class scores": Classify,
        "label scores": Classify,
        "node states": ClassifyTree,
        "joined states": Classify,
    }

    def input_row(self, row: Row) -> Row:
        """The row without its label, and its tree without those of the nodes."""
        visible = super().input_row(row)
        return visible | {"tree": without_labels(visible["tree"])} if "tree" in visible else visible

    def target(self, gives: str) -> Target:
        return ClassTarget()

    floor_names = ("majority", "random")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[str]]:
        """The commonest label, and labels drawn as often as training shows them."""
        return majority_and_random((row["label"] for row in train), len(rows))

    def shortened(self, row: Row) -> Row:
        short = super().shortened(row)
        return short | {"tree": f"(2 {words_of(row['text'])[0]})"} if "tree" in row else short

    def with_unknown_words(self, row: Row) -> Row:
        strange = super().with_unknown_words(row)
        return strange | {"tree": f"(2 (2 {UNKNOWN_WORD}) (2 {UNKNOWN_WORD}))"} if "tree" in row else strange

    def flipped(self, rows: Sequence[Row]) -> list[Row]:
        other = turned(row["label"] for row in rows)
        trees = [{"tree": without_labels(row["tree"])} if "tree" in row else {} for row in rows]
        return [row | {"label": other[row["label"]]} | tree for row, tree in zip(rows, trees, strict=True)]

    def properties(self, rows: Sequence[Row]) -> Properties:
        return {"class": (lambda row: row["label"], sorted({row["label"] for row in rows}))}

    def confusion(self, predictions: Sequence[str], rows: Sequence[Row]) -> tuple[list[str], list[list[int]]]:
        actual = [row["label"] for row in rows]
        labels = sorted({*actual, *predictions})
        number = numbers(labels)
        counts = np.zeros((len(labels), len(labels)), dtype=int)
        for a, p in zip(actual, predictions, strict=True):
            counts[number[a], number[p]] += 1
        return labels, counts.tolist()

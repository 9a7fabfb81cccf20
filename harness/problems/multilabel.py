"""Multi-label classification: any number of labels for a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.metrics.label_sets import chosen
from harness.problems.base import (
    Answer,
    Batch,
    EncodedSplit,
    Problem,
    Properties,
    Slice,
    Target,
    f1_by_kind,
    numbers,
    padded,
)
from harness.problems.classify import Classify
from harness.ragged import Columns, Ragged
from harness.registry import register_problem
from harness.task import Row
from harness.views.base import View

Probabilities = dict[str, float]
MOST_PROBABLE = 5
"""Labels that a prediction has in any case, most probable first: as many as P@5 looks at."""


class LabelSetTarget(Target):
    """One for each label that a row has, else zero: float32 (B, labels). A label that training
    never showed has no place; scoring still counts it, as an error of every system."""

    labels: list[str]

    def fit(self, rows: Sequence[Row]) -> None:
        self.labels = sorted({label for row in rows for label in row["labels"]})

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        known = numbers(self.labels)
        return {"labels": Ragged.of([known[label] for label in row["labels"] if label in known] for row in rows)}

    def collate(self, columns: Columns, rows: np.ndarray) -> Tensor:
        places, _ = padded(columns["labels"], rows, len(self.labels))
        return torch.zeros(len(rows), len(self.labels) + 1).scatter_(1, places, 1.0)[:, :-1]


class LabelSet(Classify):
    """Vector of a text, one linear layer, and a sigmoid for each label by itself.

    The loss of a text is the sum of its labels' losses: the mean would leave little of each where
    labels are many.
    """

    target: Any
    smooths = False

    def loss(self, encoder: Any, outputs: Tensor, target: Tensor) -> Tensor:
        return self.row_losses(encoder, outputs, target).mean()

    def row_losses(self, encoder: Any, outputs: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(outputs, target, reduction="none").sum(1)

    def probabilities(self, encoder: Any, outputs: Tensor) -> Tensor:
        """Probability (B, labels) of each label, of what :meth:`forward` gave."""
        return outputs.double().sigmoid()

    def decode(self, encoder: Any, outputs: Tensor, batch: Batch, split: EncodedSplit) -> list[Probabilities]:
        return self._said(self.probabilities(encoder, outputs))

    def answers(self, encoder: Any, outputs: Tensor, batch: Batch, split: EncodedSplit) -> list[Answer]:
        """With the probabilities of all labels, each by itself."""
        shares, labels = self.probabilities(encoder, outputs), self.target.labels
        found = zip(self._said(shares), shares.double().tolist(), strict=True)
        return [{"prediction": said, "probabilities": dict(zip(labels, row, strict=True))} for said, row in found]

    def _said(self, shares: Tensor) -> list[Probabilities]:
        """The labels above 0.5 and the most probable ones, rounded to a millionth."""
        rounded = shares.double().cpu().numpy().round(6).tolist()
        return [probable(dict(zip(self.target.labels, row, strict=True))) for row in rounded]


class OwnLabelSet(LabelSet):
    """Loss of each text and probabilities as an encoder makes them of its own last layer."""

    def row_losses(self, encoder: Any, outputs: Tensor, target: Tensor) -> Tensor:
        return encoder.set_losses(outputs, target)

    def probabilities(self, encoder: Any, outputs: Tensor) -> Tensor:
        return encoder.set_probabilities(outputs)


def probable(probabilities: Probabilities) -> Probabilities:
    """The labels above 0.5 and the :data:`MOST_PROBABLE` ones, with all that are as probable as the
    last of these; by falling probability."""
    order = sorted(probabilities, key=lambda label: (-probabilities[label], label))
    least = min([0.5, *(probabilities[label] for label in order[:MOST_PROBABLE])])
    return {label: probabilities[label] for label in order if probabilities[label] >= least}


@register_problem(
    "multilabel",
    name="Multi-label classification",
    columns=("text", "labels"),
    inputs=("text",),
    texts=("text",),
    metrics=("micro_f1", "macro_f1", "precision_at_1", "precision_at_3", "precision_at_5"),
    answers="harness.problems.answers.label_sets:LabelSets",
    forms={"labels": "names"},
)
class MultilabelProblem(Problem):
    """A text has any number of labels; a prediction is the probable ones with their probabilities,
    of which those above 0.5 are said."""

    heads: ClassVar = {
        "states": LabelSet,
        "vector": LabelSet,
        "label scores": OwnLabelSet,
        "label sets": OwnLabelSet,
        "joined states": LabelSet,
    }

    def target(self, gives: str) -> Target:
        return LabelSetTarget()

    floor_names = ("majority", "random")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[Probabilities]]:
        """The commonest set of labels, behind it the commonest other labels; and sets drawn as
        often as training shows them."""
        sets = [tuple(sorted(row["labels"])) for row in train]
        counts = Counter(label for labels in sets for label in labels)
        shares = {label: count / (2 * len(sets)) for label, count in counts.items()}  # never said
        commonest = probable(shares | dict.fromkeys(Counter(sets).most_common(1)[0][0], 1.0))
        drawn = np.random.default_rng(0).integers(len(sets), size=len(rows))
        return {
            "majority": [commonest] * len(rows),
            "random": [dict.fromkeys(sets[place], 1.0) for place in drawn],
        }

    def right(self, row: Row) -> Probabilities:
        return dict.fromkeys(row["labels"], 1.0)

    def flipped(self, rows: Sequence[Row]) -> list[Row]:
        """Each row has the labels that it lacks."""
        known = sorted({label for row in rows for label in row["labels"]})
        return [row | {"labels": [label for label in known if label not in row["labels"]]} for row in rows]

    def properties(self, rows: Sequence[Row]) -> Properties:
        counts = sorted({len(row["labels"]) for row in rows})
        return {"number of labels": (lambda row: str(len(row["labels"])), list(map(str, counts)))}

    def slices(self, metric: str, predictions: Sequence[Probabilities], rows: Sequence[Row]) -> dict[str, list[Slice]]:
        """F1 of each label, with the number of texts that have it."""
        if metric != "micro_f1":
            return {}
        both = ((chosen(prediction), row["labels"]) for prediction, row in zip(predictions, rows, strict=True))
        pairs = (({(label,) for label in ours}, {(label,) for label in theirs}) for ours, theirs in both)
        return {"label": f1_by_kind(pairs)}

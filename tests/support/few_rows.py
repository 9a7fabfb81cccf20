"""Training rows of which few have a label, as an objective is told them, and their batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from datasets import Dataset
from torch import Tensor, nn

from harness.data.corpus import Split
from harness.kinds import TextEncoder
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import NoTarget
from harness.problems.classify import ClassTarget
from harness.training.model import Model, build
from harness.views.words import Words

TEXTS = [
    ("a ball was kicked today", "games"),
    ("a bank lent money", "money"),
    ("the ball and the team won", ""),
    ("money of the bank is lent", ""),
    ("the team kicked a ball", "games"),
    ("a share fell and the bank lost money today", ""),
    ("a team won the games", ""),
    ("the share of a bank fell", "money"),
]
"""Texts with their labels, where these are known."""
DIMS = 6


class Summed(TextEncoder):
    """A smooth encoder that drops half of its numbers where ``dropping``, and adds to the loss
    where ``penalised``."""

    dropping, penalised = False, False

    def __init__(self, width: int):
        super().__init__()
        self.hidden = nn.Linear(width, 5)
        self.size = 5

    def forward(self, words: Any) -> Tensor:
        if self.penalised:
            self.add_loss("penalty", torch.tensor(0.25))
        states = (torch.tanh(self.hidden(words.vectors)) * words.mask[..., None]).sum(1)
        return F.dropout(states, 0.5, self.training and self.dropping)


def splits(relabelled: bool = False) -> dict[str, Split]:
    """The rows by stream; ``relabelled`` are all labels turned."""
    other = {"games": "money", "money": "games"}
    rows = [{"id": f"row-{number}", "text": text, "label": label} for number, (text, label) in enumerate(TEXTS)]
    kept = [row | {"label": other[row["label"]] if relabelled else row["label"]} for row in rows if row["label"]]
    view, target = Words(min_count=1), ClassTarget()
    view.fit([row["text"] for row in rows])
    target.fit(kept)
    texts = Dataset.from_list([{"id": row["id"], "text": row["text"]} for row in rows])
    inputs = [{"text": view.encode([row["text"] for row in each])} for each in (kept, rows)]
    return {
        "labelled": Split(Dataset.from_list(kept), view, target, inputs[0], target.encode(kept, view)),
        "unlabelled": Split(texts, view, NoTarget(), inputs[1], {}),
    }


def model_of(rows: dict[str, Split], seed: int = 0) -> Model:
    """A model in double precision whose answers differ from text to text."""
    torch.manual_seed(seed)
    labelled = rows["labelled"]
    model = build(Summed, problem("classify"), {}, labelled.view, labelled.target, DIMS)
    with torch.no_grad():
        model.table.tuned.weight.mul_(6)
    return model.double()


def step_of(rows: dict[str, Split], progress: float, plain: tuple[int, ...] = (2, 0, 5), seed: int = 3) -> Step:
    """A step with a batch of each stream."""
    batches = {"labelled": rows["labelled"].collate(np.array([0, 1, 3])), "unlabelled": rows["unlabelled"]}
    batches["unlabelled"] = batches["unlabelled"].collate(np.array(plain))
    return Step(batches, progress, None, seed, 1)


def logs_of(model: Model, words: Any) -> Tensor:
    """Logarithms (B, classes) of the probabilities of texts, by the parameters alone."""
    own = dict(model.named_parameters())
    states = torch.tanh(
        own["table.tuned.weight"][words.ids] @ own["encoder.hidden.weight"].T + own["encoder.hidden.bias"]
    )
    states = torch.stack([each[:length].sum(0) for each, length in zip(states, words.lengths.tolist(), strict=True)])
    scores = states @ own["head.output.weight"].T + own["head.output.bias"]
    return scores - scores.exp().sum(1, keepdim=True).log()


def assert_same_gradients(model: Model, found: Tensor, expected: Tensor) -> None:
    """Two losses, and their slopes at all parameters but the vector of padding."""
    torch.testing.assert_close(found, expected)
    parameters = list(model.parameters())
    gradients = [
        torch.autograd.grad(each, parameters, retain_graph=True, materialize_grads=True) for each in (found, expected)
    ]
    for (name, _), one, other in zip(model.named_parameters(), *gradients, strict=True):
        rows = slice(1, None) if name.startswith("table") else slice(None)
        torch.testing.assert_close(one.to_dense()[rows], other.to_dense()[rows])

"""Snorkel MeTaL: a network taught by sources of labels that are weighed by how often they agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks import label_model
from architectures.blocks.classes_of_words import classes_of_words_missing
from architectures.blocks.few_labels import known_classes
from architectures.blocks.label_sources import votes
from harness.kinds import Regime
from harness.objectives import STREAMS, Objective, Step, collected_losses
from harness.ragged import Ragged
from harness.registry import Recipe, TaskEntry, register
from harness.training.model import Model


class SoftLabelLoss(Objective):
    """Cross-entropy of the answers to texts with the probabilities that a label model gives them.

    A text whose label is known has that alone, and one of which no source says anything does not
    count.
    """

    streams = STREAMS

    def begin(self, rows: Mapping[str, Any]) -> None:
        labelled, texts = rows["labelled"], rows["unlabelled"]
        classes, number = labelled.targets["label"], len(labelled.target.labels)
        known = known_classes(labelled, texts)
        targets = F.one_hot(torch.tensor(known).clamp(min=0), number).double()
        counted = torch.tensor(known >= 0)
        unknown = np.flatnonzero(known < 0)
        if len(unknown):
            asked = Ragged.of(texts.inputs["text"]["ids"][row] for row in unknown)
            said = votes(labelled.inputs["text"]["ids"], classes, number, asked, texts.view.width)
            targets[unknown], counted[unknown] = modelled(torch.tensor(said), classes, number)
        self.register_buffer("targets", targets.float())
        self.register_buffer("counted", counted)

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        plain = step.batches["unlabelled"]
        rows = torch.from_numpy(plain.rows).to(self.targets.device)
        with collected_losses() as terms:
            logs = model.head.class_scores(model(plain.inputs)).log_softmax(-1)
        counted = self.counted[rows]
        losses = -(self.targets[rows].to(logs) * logs).sum(-1)
        soft = (losses * counted).sum() / counted.sum().clamp(min=1)
        return {"loss": soft + sum(terms.values()), "task": soft} | terms


def modelled(said: Tensor, classes: np.ndarray, number: int) -> tuple[Tensor, Tensor]:
    """Probabilities (N, classes) of the classes by the votes (N, sources), and true (N,) where
    there is a vote; ``classes`` are those of the labelled texts, whose shares are those of all."""
    balance = torch.tensor(np.bincount(classes, minlength=number) / len(classes))
    mu = label_model.fitted(said, balance)
    return label_model.posterior(said, mu, balance), (said >= 0).any(1)


@register(
    "snorkel_metal",
    name="Snorkel MeTaL, one task",
    kind="regime",
    paper="Ratner et al. 2019",
    source="M-T1[219]",
    year=2019,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=10, min_steps=2000, clip=1.0),
    sees=("texts without labels",),
    deviations=(
        (
            "The survey's figure for SST-2 is that of another system, a pre-trained transformer that learns many tasks;"
            " the paper that it refers to has this one, on other tasks."
        ),
        (
            "The sources of labels are four small classifiers, each taught by a quarter of the labelled texts; the"
            " paper's are rules that people write, and other weak signs."
        ),
        "Texts whose label is known keep it in training; the paper's have none.",
        "There is one task, and no others that share the network and the label model.",
        "Sources count as independent of one another given the class; the paper's are told which ones are not.",
        (
            "The label model is fitted by L-BFGS, from sources that are right seven times in ten; the authors' program"
            " makes 100 steps of SGD from a multiple of that by chance."
        ),
        "The shares of the classes are those among the labelled texts.",
        "The network is `bilstm` with a recipe of its own.",
    ),
)
class SnorkelMetal(Regime):
    """Trains a network on the soft labels that a model of several sources of labels gives to texts.

    Four sources vote on each text or abstain: naive Bayes, the nearest text, the nearest mean of a
    class, and words that tell most of a class
    (:mod:`~architectures.blocks.label_sources`), taught by disjoint parts of the texts with labels.
    How often each is right follows from how often they agree
    (:mod:`~architectures.blocks.label_model`); what they say together is the soft label. ``wraps``
    is any classifier of words.
    """

    trained_by = SoftLabelLoss

    def __init__(self, wraps: str = "bilstm"):
        self.wraps = wraps

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return classes_of_words_missing(task, hyperparameters, "counts words")

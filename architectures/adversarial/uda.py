"""Unsupervised data augmentation: the same answer to a text and to the text with words replaced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.classes_of_words import classes_of_words_missing
from architectures.blocks.moved_vectors import divergence
from architectures.blocks.word_replacement import WordReplacement
from harness.kinds import Regime
from harness.layers.noise import Noise
from harness.objectives import STREAMS, Objective, Step, Supervised
from harness.registry import Recipe, TaskEntry, register
from harness.training.model import Model

SCHEDULES: dict[str, Callable[[float], float]] = {
    "linear": lambda done: done,
    "log": lambda done: 1 - math.exp(-5 * done),
    "exp": lambda done: math.exp(5 * (done - 1)),
    "none": lambda done: 1.0,
}
"""The way of the threshold of labelled texts from chance (0) to certainty (1), by the share of the
training that is done."""


class ConsistencyLoss(Objective):
    """The loss of the labelled texts that are not yet known too well, plus ``weight`` times the
    mean divergence of the answers to texts with words replaced from the sharpened ones to the texts
    as they are."""

    streams = STREAMS
    replacement: WordReplacement

    def __init__(self, owner: DataAugmentation, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.owner = owner

    def begin(self, rows: Mapping[str, Any]) -> None:
        texts = rows["unlabelled"]
        self.replacement = WordReplacement(self.owner.rate, texts.view.vocabulary, texts.inputs["text"]["ids"])

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        inputs, target = model.read(step.batch.inputs), step.batch.target
        losses, outputs = self.inner.with_outputs(model, inputs, target)
        known = self.annealed(model.head.class_scores(outputs), target, step.progress, model.head.label_smoothing)
        penalties = losses["loss"] - losses.get("task", losses["loss"])
        consistency = self.consistency(model, step.batches["unlabelled"].inputs["text"], (step.seed, step.passes))
        total = known + penalties + self.owner.weight * consistency
        return {"loss": total, "task": known, "consistency": consistency}

    def annealed(self, scores: Tensor, labels: Tensor, done: float, smoothing: float = 0.0) -> Tensor:
        """Mean loss of the texts whose class has not yet a probability above the threshold, which
        grows from chance to 1; ``smoothing`` of labels is in the loss alone."""
        losses = F.cross_entropy(scores, labels, reduction="none", label_smoothing=smoothing)
        chance = 1 / scores.shape[1]
        threshold = chance + (1 - chance) * SCHEDULES[self.owner.schedule](done)
        kept = (-F.cross_entropy(scores, labels, reduction="none")).exp() <= threshold
        return (losses * kept).sum() / kept.sum().clamp(min=1)

    def consistency(self, model: Model, words: Any, key: tuple[int, int]) -> Tensor:
        """Mean divergence of the texts with words replaced, 0 for a text whose answer is unsure."""
        with torch.no_grad():
            scores = self.scores(model, words)
            wanted = (scores / self.owner.temperature).log_softmax(-1)
            sure = scores.softmax(-1).amax(-1) > self.owner.confidence
        found = self.scores(model, self.replacement(words, Noise(words.ids, words.mask, key))).log_softmax(-1)
        return (divergence(wanted, found) * sure).mean()

    @staticmethod
    def scores(model: Model, words: Any) -> Tensor:
        """Scores (B, classes) of texts whose words are not yet looked up."""
        return model.head.class_scores(model({"text": words}))


@register(
    "uda",
    name="UDA",
    kind="regime",
    paper="Xie et al. 2019",
    source="M-T1[220]",
    year=2019,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, clip=1.0),
    sees=("texts without labels",),
    deviations=(
        "It trains `bilstm` from random weights; the paper fine-tunes BERT, with another recipe.",
        "Answers are sharpened and unsure ones left out, as the paper has it for images; the authors' scripts for texts"
        " and for CIFAR-10 do neither.",
        (
            "Words are replaced by their TF-IDF, the paper's way for topics; for sentiment it translates texts into"
            " French and back, for which there is no model here."
        ),
        "A batch has as many texts without labels as labelled ones; the authors' program has three times as many.",
        "Texts without labels are the training texts alone.",
        "Other words are replaced in each pass; the authors make one copy of each text.",
    ),
)
class DataAugmentation(Regime):
    """The loss of labelled texts, plus ``weight`` times the mean of KL(p(x) || p(x')) over all
    training texts, x' being x with about ``rate`` of its words replaced
    (:class:`~architectures.blocks.word_replacement.WordReplacement`).

    p(x) is a constant, sharpened by a ``temperature``; a text counts where its unsharpened
    probability of a class is above ``confidence``. A labelled text is left out while the
    probability of its class is above a threshold that grows from chance to 1 by ``schedule``
    (training signal annealing): few labels are then not learnt by heart before the other texts have
    spread them. ``wraps`` is any classifier of words.
    """

    trained_by = ConsistencyLoss

    def __init__(
        self,
        wraps: str = "bilstm",
        weight: float = 1.0,
        rate: float = 0.7,
        temperature: float = 0.4,
        confidence: float = 0.8,
        schedule: str = "linear",
    ):
        if schedule not in SCHEDULES:
            raise ValueError(f"schedule={schedule!r} is none of {', '.join(SCHEDULES)}")
        self.wraps, self.weight, self.rate = wraps, weight, rate
        self.temperature, self.confidence, self.schedule = temperature, confidence, schedule

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return classes_of_words_missing(task, hyperparameters, "replaces words")

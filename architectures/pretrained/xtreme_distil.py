"""XtremeDistil: a small classifier that learns in stages from a tuned teacher."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.held_still import held_still
from architectures.blocks.moved_vectors import probabilities_missing
from harness import registry
from harness.kinds import Regime
from harness.objectives import STREAMS, Objective, Step, Supervised
from harness.problems.classify import text_vector
from harness.registry import Recipe, TaskEntry, register
from harness.saved_models.base import KeptModel
from harness.saved_models.parents import class_probabilities
from harness.saved_models.teachers import text_vectors
from harness.task import Row
from harness.training.model import Model

SURE = 1e-6
"""The smallest probability of a class with which a teacher is heard: 0 has no logarithm."""
HEIGHTS = {"head": 3, "encoder": 2, "sources": 1, "table": 0}
"""Parts of a model, the higher the nearer to the answer."""


class Lesson(NamedTuple):
    """A teacher's opinion of texts: natural logarithms (texts, classes) of the probabilities of
    classes, and the vectors (texts, size) from which it scores them, where it has some."""

    scores: Tensor
    vectors: Tensor | None


def layers(model: nn.Module) -> list[tuple[str, ...]]:
    """Names of the parameters of each layer, from the top: the head, the parts of the encoder, the
    last one first and each part's numbered layers for themselves, and the vectors of words."""
    found: dict[tuple[int, int, int], list[str]] = {}
    order: list[str] = []
    for name, _ in model.named_parameters():
        top, part, *path = name.split(".")
        order += [part] if part not in order else []
        number = next((int(step) for step in path if step.isdigit()), 0)
        place = (HEIGHTS[top], order.index(part), number) if top == "encoder" else (HEIGHTS[top], 0, 0)
        found.setdefault(place, []).append(name)
    return [tuple(found[place]) for place in sorted(found, reverse=True)]


class Stages(Objective):
    """The teacher's vectors of texts without labels, then the logarithms of its probabilities, both
    by the mean squared error, then the labels.

    In the first stage a linear layer, which is dropped afterwards, maps the student's vector of a
    text to the teacher's, and everything below learns. Behind it all layers of the student but the
    highest are held still, and let go one after another from the top; behind the second stage
    again. A teacher without vectors has no first stage, and the second one begins at once. Without
    a teacher, or where no share of the training is a stage of its, the labels alone teach, and
    nothing is held still.
    """

    streams = STREAMS
    whole_pilots = True

    def __init__(self, owner: XtremeDistil, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.owner = owner
        self.classes, self.size = model.head.target.labels, model.encoder.size
        self.projection: nn.Linear | None = None
        self.register_buffer("scores", None, persistent=False)
        self.register_buffer("vectors", None, persistent=False)

    def begin(self, rows: Mapping[str, Any]) -> None:
        lesson = self.owner.lesson(rows["unlabelled"].rows, self.classes)
        if lesson is None:
            return
        self.last_phase = self.owner.states + self.owner.soft
        self.scores, self.vectors = lesson
        if self.vectors is not None:
            self.projection = nn.Linear(self.size, self.vectors.shape[1])

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        assert isinstance(self.inner, Supervised)
        if self.scores is None:
            return self.inner.losses(model, step)
        states = 0.0 if self.vectors is None else self.owner.states
        texts = step.batches["unlabelled"]
        rows = torch.as_tensor(texts.rows, device=self.scores.device)
        if step.progress < states:
            vector = model.head.drop(text_vector(model.encoder, model.read(texts.inputs)["text"]))
            found = F.mse_loss(self.projection(vector), self.vectors[rows])
            return {"loss": found, "states": found}
        begun = states if step.progress < self.last_phase else self.last_phase
        with held_still(model, self.still(model, step.progress - begun)):
            if begun == self.last_phase:
                return self.inner.losses(model, step)
            found = F.mse_loss(model.head.class_scores(model(texts.inputs)), self.scores[rows])
            return {"loss": found, "soft targets": found}

    def still(self, model: nn.Module, passed: float) -> tuple[str, ...]:
        """Names of the parameters that are held still when that share of the training has passed
        since the stage began."""
        names = layers(model)
        free = 1 + math.floor(passed / self.owner.thawing * (len(names) - 1) + 1e-6)
        return tuple(name for layer in names[free:] for name in layer)


@register(
    "xtreme_distil",
    name="Distilled PLM student",
    kind="regime",
    paper="Tang et al. 2019; Mukherjee & Awadallah 2020; Sanh et al. 2019",
    source="M3[183,184]",
    year=2020,
    version=2,
    parents={"teacher": "bert"},
    recipe=Recipe(
        optimizer="adam", lr=0.001, batch_size=32, patience=20, clip=1.0, lr_schedule="cosine", lowest=0.00001
    ),
    sees=("texts without labels",),
    deviations=(
        (
            "The student is `bilstm` on word vectors that begin at random; the paper's reads word pieces, whose vectors"
            " are the teacher's, compressed."
        ),
        "The teacher is our own small BERT, tuned on the same labels.",
        "A batch has 32 texts, and gradients are clipped; the paper's has 512.",
        "Texts without labels are the training texts alone; the paper has many more of them than labelled ones.",
        (
            "Stages are shares of one training, and dev chooses among the passes of the last one; the paper ends each"
            " stage by itself when it gains no more."
        ),
        (
            "Vectors are compared through a linear layer by the squared error, as in the authors' later program; the"
            " paper prints a divergence behind GELU."
        ),
        (
            "The vector is the one from which the teacher scores classes, and the layer that maps to it is dropped; the"
            " paper takes that of the seventh of twelve layers, and the authors' student keeps the layer."
        ),
        "Its logits are the logarithms of the teacher's probabilities, less by a number that is one for all classes.",
        "It learns classes of texts alone, and not tags of words, which are the paper's task.",
        "No further texts are made of the training texts, as Tang et al. do by masks and exchanged words.",
    ),
)
class XtremeDistil(Regime):
    """A small model that learns from a tuned teacher what it thinks of texts without labels, in
    stages, and from labels last (:class:`Stages`).

    ``states`` and ``soft`` are the shares of the training in which it learns the teacher's vectors
    and its probabilities; with both 0 it is trained as ever. In the stages behind the first, layers
    are let go over a share ``thawing``. ``wraps`` is the student, any architecture that makes a
    vector of a text; the teacher is one that gives probabilities.
    """

    trained_by = Stages
    takes = ("teacher",)
    teacher: KeptModel | None = None
    known: Lesson | None = None

    def __init__(self, wraps: str = "bilstm", states: float = 0.15, soft: float = 0.2, thawing: float = 0.1):
        if min(states, soft) < 0 or states + soft >= 1:
            raise ValueError(f"states={states} and soft={soft}: expected are shares whose sum is below 1")
        if thawing <= 0:
            raise ValueError(f"thawing={thawing}: expected is a share of the training above 0")
        self.wraps, self.states, self.soft, self.thawing = wraps, states, soft, thawing

    @classmethod
    def default_parents(cls, parents: dict[str, str], hyperparameters: dict[str, Any]) -> dict[str, str]:
        return parents if hyperparameters["states"] + hyperparameters["soft"] else {}

    def inherit(self, role: str, parent: Any, rows: Sequence[Row]) -> None:
        self.teacher, self.known = parent, None

    def lesson(self, texts: Sequence[Row], classes: Sequence[str]) -> Lesson | None:
        """The teacher's opinion of the texts without labels of a training, which are the same
        whenever it is asked; None without one, or where no share of the training is its.
        :class:`~harness.errors.ModelError` for a teacher of other classes."""
        if self.teacher is None or not self.states + self.soft:
            return None
        if self.known is None:
            rows = self.teacher.problem.input_rows(texts)
            scores = class_probabilities(self.teacher, rows, classes).clamp(min=SURE).log()
            self.known = Lesson(scores, text_vectors(self.teacher, rows))
        return self.known

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        student = registry.load(wrapped)
        if task.type != "classify":
            return f"learns classes of texts, and a task of type {task.type} has none"
        if student.output_form() not in ("states", "vector", "joined states"):
            return f"learns the vectors of a teacher, and {wrapped.id} makes none of a text"
        return probabilities_missing(student, wrapped.id)

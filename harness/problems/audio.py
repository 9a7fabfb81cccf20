"""Plain recordings without transcripts: what an encoder of frames learns from them alone."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from harness.kinds import Architecture
from harness.problems.base import Head, Problem
from harness.problems.language_model import Surprise
from harness.problems.text_objective import FromText, LearnText, PieceTarget, TextObjective, require_logarithms
from harness.registry import register_problem
from harness.settings import TrainingSettings
from harness.task import Row
from harness.views.base import View
from harness.views.frames import FrameBatch

OFFERED = 11
"""Frames of a recording among which the one that comes is to be found, by those who are asked for
it."""


class AudioObjective(TextObjective):
    """The questions on recordings from which an encoder of frames learns.

    As a :class:`~harness.problems.text_objective.TextObjective`, of a
    :class:`~harness.views.frames.FrameBatch`: an answer is one of :meth:`choices`.
    """

    packs = False

    @classmethod
    def choices(cls, view: Any) -> int:
        """Number of answers among which the right one is to be found."""
        raise NotImplementedError

    @classmethod
    def floor(cls, view: Any, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """All answers alike, which is as much of any number of questions."""
        return [[-math.log(cls.choices(view)), 1] for _ in rows]


class FromAudio(FromText):
    """The training of a :class:`LearnAudio` head, which reads recordings whole."""

    def portions(self, split: Any, settings: TrainingSettings) -> Any:
        return split


class LearnAudio(LearnText):
    """The head in which an encoder learns from recordings by the objective that it names."""

    trained_by = FromAudio

    @staticmethod
    def units(read: FrameBatch) -> Tensor:
        """A sum of the bits of each frame's numbers, at 32 bits whatever the training's are."""
        return read.vectors.float().contiguous().view(torch.int32).long().sum(2)


@register_problem(
    "audio",
    name="Plain recordings",
    columns=("audio",),
    inputs=("audio",),
    texts=(),
    cluster="speaker",
    metrics=("nats_per_token", "perplexity"),
    forms={"audio": "audio"},
    answers="harness.problems.answers.surprises:Surprises",
)
class AudioProblem(Problem):
    """A recording answers questions on itself, such as which of some frames comes next.

    A prediction is the sum of the natural log-probabilities of the right answers, and their number.
    The encoder's objective (:class:`AudioObjective`) says what is asked; scores of another one
    count other things.
    """

    heads: ClassVar[dict[str, type[Head]]] = {"frame states": LearnAudio}

    def target(self, gives: str) -> PieceTarget:
        return PieceTarget()

    def head(self, encoder: Any, target: Any) -> Head:
        """The head, which tells the target what scores count."""
        head: Any = super().head(encoder, target)
        view, learns = encoder.view, head.learns
        digest = hashlib.sha256(json.dumps(view.settings(), sort_keys=True).encode()).hexdigest()
        target.counted = {"name": learns.unit, "symbols": learns.choices(view), "artefact": digest}
        return head

    floor_names = ("uniform",)

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[Surprise]]:
        """All of :data:`OFFERED` frames alike; an encoder that is asked for something else has a
        floor of its own."""
        return {"uniform": [[-math.log(OFFERED), 1] for _ in rows]}

    def floors_of(
        self, system: type[Architecture], train: Sequence[Row], rows: Sequence[Row], view: View | None = None
    ) -> dict[str, list[Surprise]]:
        read: Any = view or system.reads("audio", {})
        if view is None:
            read.fit([row["audio"] for row in train])
        learns: type[AudioObjective] = system.learns  # type: ignore[attr-defined]
        return {learns.unit: learns.floor(read, train, rows)}

    def by_heart(self, rows: Sequence[Row], encoder: Any) -> list[Surprise]:
        return encoder.learns.by_heart(encoder.view, rows)

    def tokens(self, system: Any) -> dict[str, Any] | None:
        return system.counted if isinstance(system, PieceTarget) else {"name": "frames", "symbols": OFFERED}

    def right(self, row: Row) -> Surprise:
        """Certainty of one answer."""
        return [0.0, 1]

    def sound(self, system: Any, predict: Callable[[list[Row]], list[Surprise]], train: Sequence[Row]) -> None:
        """Raise :class:`~harness.errors.ContractError` for a surprise that is none."""
        require_logarithms(predict, train)

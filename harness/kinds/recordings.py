"""Kinds that hear: frames of recordings, whose labels are read off or aligned."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from harness.kinds.base import Parent
from harness.kinds.encoders import Encoder, SequenceEncoder
from harness.kinds.plain_data import PlainDataEncoder
from harness.views.base import View
from harness.views.frames import Frames


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


class AudioEncoder(PlainDataEncoder, SequenceEncoder):
    """Frames of recordings alone to states (B, T, ``size``): one that learns from plain recordings
    first, by the objective that it names in ``learns``
    (:class:`harness.problems.audio.AudioObjective`).

    From a model in the role ``weights`` it also takes the reading: the same frames of the same
    rate, divided by the same deviations.
    """

    gives = "frame states"
    view: ClassVar[View | None] = Frames()

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

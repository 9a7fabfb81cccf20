"""Contrastive predictive coding: vectors of a recording that foretell what comes, and labels read
from them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.objectives.frames_ahead import FramesAhead
from architectures.blocks.recurrent import Recurrent
from architectures.blocks.waves import WaveConvolutions
from harness.kinds import AudioEncoder, Parent
from harness.registry import Recipe, register
from harness.task import Row
from harness.views.frames import FrameBatch, Samples


class Listener(KeptStill):
    """Samples (B, T, 160) to z (B, T, ``size``) by convolutions, and z to c (B, T, ``context``) by
    a GRU, which has read what comes before and nothing that comes behind."""

    def __init__(self, size: int, context: int):
        super().__init__()
        self.convolutions = WaveConvolutions(size)
        self.recurrence = Recurrent("gru", size, context)

    def forward(self, samples: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        z = self.convolutions(samples)
        return z, self.recurrence(z, mask)


@register(
    "cpc_speech",
    name="Contrastive predictive coding",
    kind="ctc",
    paper="Oord et al. 2018",
    source="X4.6",
    year=2018,
    parents={"weights": "cpc_speech@audio_mix"},
    recipe=Recipe(optimizer="adam", lr=0.0002, batch_size=8, epochs=100, patience=10),
    tiny={"size": 24, "context": 32},
    deviations=(
        "128 channels, not 512; 54 minutes of recordings of 8 kHz, a vector for 20 ms of them, not a hundred hours of"
        " 16 kHz with one for 10 ms: twelve steps reach 240 ms ahead.",
        "The others among which a frame is found are ten of the same recording, one of the ways that the paper"
        " compares.",
        "A layer norm follows each convolution, of which the paper says nothing.",
        "Whole recordings are read, not windows of 1.3 seconds.",
        "The paper has the vectors classified into phones and speakers; here CTC reads characters from them.",
        "It makes 100 passes at most; the paper some 300,000 steps.",
    ),
)
class CPC(AudioEncoder):
    """c of each block of 160 samples (:class:`Listener`), which has learnt from plain recordings to
    foretell the next twelve z (:class:`FramesAhead`), and stays as it is where labels are learnt: a
    linear layer on c is all that is trained then.

    Without a parent all of it is trained by the labels.
    """

    view = Samples()
    learns = FramesAhead

    def __init__(self, width: int, view: Samples, size: int = 128, context: int = 256):
        super().__init__()
        self.view, self.frame, self.context, self.size = view, size, context, context
        self.listener = Listener(size, context)

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        super().inherit(role, parent, rows)
        self.listener.keep_still()

    def ahead(self, frames: FrameBatch) -> tuple[Tensor, Tensor]:
        """z (B, T, frame) and c (B, T, context)."""
        return self.listener(frames.vectors, frames.mask)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.listener(vectors, mask)[1]

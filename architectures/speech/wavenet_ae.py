"""Features that convolutions learn from the samples of plain recordings, read in the place of a
filter bank."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.objectives.frames_ahead import FramesAheadOneByOne
from architectures.blocks.recurrent import Recurrent
from architectures.blocks.waves import WaveConvolutions
from harness.kinds import AudioEncoder, Parent
from harness.registry import Recipe, register
from harness.saved_models.parents import copy_weights
from harness.task import Row
from harness.views.frames import FrameBatch, Samples


class Aggregator(nn.Module):
    """Vectors (B, T, size) to vectors of what each of them and those before say together, by
    ``layers`` causal convolutions of ``width`` with a layer norm and ReLU each."""

    def __init__(self, size: int, layers: int, width: int):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(size, size, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(layers))
        self.before = width - 1
        for convolution in self.convolutions:
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")

    def forward(self, states: Tensor) -> Tensor:
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            states = F.relu(norm(convolution(F.pad(states.mT, (self.before, 0))).mT))
        return states


class WaveFeatures(KeptStill):
    """Samples (B, T, 160) to z (B, T, ``size``) by convolutions, and z to c (B, T, ``size``) by an
    :class:`Aggregator`."""

    def __init__(self, size: int, layers: int, width: int):
        super().__init__()
        self.convolutions = WaveConvolutions(size)
        self.aggregator = Aggregator(size, layers, width)

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        z = self.convolutions(samples)
        return z, self.aggregator(z)


@register(
    "wavenet_ae_contrastive",
    name="Learnt features of speech (wav2vec)",
    kind="ctc",
    paper="Schneider et al. 2019",
    source="X4.5.2",
    year=2019,
    parents={"weights": "wavenet_ae_contrastive@audio_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=8, epochs=100, patience=10, clip=5.0),
    tiny={"size": 32, "layers": 2, "hidden": 128, "recurrences": 1},
    deviations=(
        "128 channels, not 512; 54 minutes of recordings of 8 kHz, a vector for 20 ms of them, not 960 hours of 16 kHz"
        " with one for 10 ms: twelve steps reach 240 ms ahead.",
        "A layer norm of each vector takes the place of a group norm over the whole recording, which would tell a"
        " vector of what comes behind it.",
        "W_k c has no constant beside it, as in contrastive predictive coding.",
        "The labels are read from the features by a BiLSTM with CTC; the paper has a convolutional model and a language"
        " model of words.",
        "The recipe is ours: in the authors' program the rate rises to 0.005 in 500 steps, and falls by a cosine.",
        "The authors' program takes log(1 + z) of the vectors, and adds to what a layer of the aggregator says what it"
        " read, times the root of a half; here is neither.",
    ),
)
class Wav2Vec(AudioEncoder):
    """Features of samples in the place of a filter bank: c of each block of 160 samples
    (:class:`WaveFeatures`), which has learnt from plain recordings to tell the next twelve z from
    others, each judged by itself (:class:`FramesAheadOneByOne`), and stays as it is. A BiLSTM reads
    it where labels are learnt.

    Without a parent all of it is trained by the labels.
    """

    view = Samples()
    learns = FramesAheadOneByOne
    unused = ("recurrence",)  # plain recordings are read by the other part alone

    def __init__(
        self,
        width: int,
        view: Samples,
        size: int = 128,
        layers: int = 9,
        reach: int = 3,
        hidden: int = 250,
        recurrences: int = 2,
    ):
        super().__init__()
        self.view, self.frame, self.context = view, size, size
        self.features = WaveFeatures(size, layers, reach)
        self.recurrence = Recurrent("lstm", size, hidden, recurrences, bidirectional=True)
        self.size = self.recurrence.size

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        copy_weights(parent, self.features, "encoder.features")
        self.features.keep_still()

    def ahead(self, frames: FrameBatch) -> tuple[Tensor, Tensor]:
        """z and c (B, T, size)."""
        return self.features(frames.vectors)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.recurrence(self.features(vectors)[1], mask)

"""HuBERT and WavLM: a transformer that has learnt the codes of frames which it did not hear."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_codes import MaskedCodes, MaskedCodesOfMixtures
from architectures.blocks.transformer import Transformer
from harness.kinds import AudioEncoder
from harness.registry import Recipe, register
from harness.views.coded_frames import CodedFrames


class RelativePlaces(nn.Module):
    """The place of each frame as those around it tell it, (B, T, size): a convolution of ``width``
    in ``groups``, through GELU."""

    def __init__(self, size: int, width: int, groups: int):
        super().__init__()
        self.convolution = nn.Conv1d(size, size, width, padding=width // 2, groups=groups)
        nn.init.normal_(self.convolution.weight, std=(4 / (width * size)) ** 0.5)
        nn.init.zeros_(self.convolution.bias)

    def forward(self, states: Tensor) -> Tensor:
        found = self.convolution(states.mT)[:, :, : states.shape[1]]  # an even width gives one place more
        return F.gelu(found).mT


@register(
    "hubert",
    name="HuBERT, small",
    kind="ctc",
    paper="Hsu et al. 2021",
    source="X4.6",
    year=2021,
    parents={"weights": "hubert@audio_mix"},
    recipe=Recipe(
        optimizer="adam",
        betas=(0.9, 0.98),
        lr=0.0005,
        batch_size=8,
        epochs=100,
        patience=10,
        lr_schedule="linear",
        warmup_share=0.08,
    ),
    recipes={
        "audio": Recipe(
            optimizer="adamw",
            betas=(0.9, 0.98),
            eps=0.000001,
            lr=0.0005,
            batch_size=8,
            epochs=100,
            patience=10,
            weight_decay=0.01,
            clip=10.0,
            lr_schedule="linear",
            warmup_share=0.08,
        ),
    },
    tiny={"size": 48, "heads": 2, "layers": 1, "inner": 96},
    deviations=(
        "Frames are log-mel bands every 20 ms, not vectors that convolutions learn from samples; the penalty on those"
        " and the slower learning of them fall away.",
        "4 layers of 128 with 4 heads, not 12 of 768; 54 minutes of recordings, not 960 hours.",
        "One round: codes are clusters of cepstra. The paper clusters states of the first model for a second one.",
        "Where labels are learnt, no frames are masked, and the transformer is trained from the first step on.",
        (
            "Where labels are learnt, the rate is that of pre-training, and rises and falls likewise; in the authors'"
            " program it is a 25th of it, which so small a model would not learn by, and rises over 8,000 of 25,000"
            " steps."
        ),
        (
            "The convolution that tells places has no weight norm, and no layer is left out; in the authors' program"
            " one of twenty is, of ten where labels are learnt."
        ),
        "The vectors of the codes are 256 wide, as in the paper.",
        "A span begins at each frame with a probability of 0.08, one in a recording at least; the authors' program"
        " draws a number of spans, two at least, and masks equally many frames in all recordings of a batch.",
        "Where labels are learnt, dropout stays as it was; in the authors' program it acts behind the activations"
        " alone.",
    ),
)
class HuBERT(AudioEncoder):
    """Frames, of which some are masked, to states by a transformer whose layers have their norms
    behind them.

    A frame is normed and mapped to ``size`` numbers; a masked one is a learnt vector. What
    :class:`RelativePlaces` say is added and normed. It learns from plain recordings to tell the
    codes of masked frames (:class:`MaskedCodes`), and goes on with a linear layer for labels.
    """

    view = CodedFrames()
    learns = MaskedCodes
    unused = ("masked",)  # where labels are learnt, nothing is masked
    pooling = "mean"

    def __init__(
        self,
        width: int,
        view: CodedFrames,
        size: int = 128,
        heads: int = 4,
        layers: int = 4,
        inner: int = 512,
        reach: int = 128,
        groups: int = 16,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.view, self.size = view, size
        self.norm, self.project = nn.LayerNorm(width), nn.Linear(width, size)
        self.masked = nn.Parameter(torch.rand(size))
        self.places, self.places_norm = RelativePlaces(size, reach, groups), nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)
        self.body = Transformer(size, heads, inner, layers, dropout, activation=nn.GELU)

    def states(self, vectors: Tensor, mask: Tensor, hidden: Tensor | None = None) -> Tensor:
        """States (B, T, size) of frames, of which those in ``hidden`` (B, T) are masked."""
        frames = self.dropout(self.project(self.norm(vectors)))
        if hidden is not None:
            frames = torch.where(hidden[..., None], self.masked.to(frames.dtype), frames)
        frames = frames * mask[..., None]
        return self.body(self.dropout(self.places_norm(frames + self.places(frames))), mask)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.states(vectors, mask)

    def scale(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and deviation (width,) of the logarithms that the frames stand for."""
        mean, deviation = (like.new_tensor(each) for each in (self.view.mean, self.view.deviation))
        return mean.repeat(self.view.stack), deviation.repeat(self.view.stack)


@register(
    "wavlm",
    name="WavLM, small",
    kind="ctc",
    paper="Chen et al. 2022",
    source="X4.6",
    year=2022,
    parents={"weights": "wavlm@audio_mix"},
    recipe=Recipe(
        optimizer="adam",
        betas=(0.9, 0.98),
        lr=0.0005,
        batch_size=8,
        epochs=100,
        patience=10,
        lr_schedule="linear",
        warmup_share=0.08,
    ),
    recipes={
        "audio": Recipe(
            optimizer="adamw",
            betas=(0.9, 0.98),
            eps=0.000001,
            lr=0.0005,
            batch_size=8,
            epochs=100,
            patience=10,
            weight_decay=0.01,
            clip=10.0,
            lr_schedule="linear",
            warmup_share=0.08,
        ),
    },
    tiny={"size": 48, "heads": 2, "layers": 1, "inner": 96},
    deviations=(
        "As HuBERT here.",
        "The other voice is the same recording turned round in time, so that what a recording is asked does not depend"
        " on its batch; no other noise is laid over it.",
        "Places are told by the convolution alone; the paper adds a gated bias of relative positions.",
    ),
)
class WavLM(HuBERT):
    """HuBERT that has learnt from recordings over which another voice is laid
    (:class:`MaskedCodesOfMixtures`)."""

    learns = MaskedCodesOfMixtures

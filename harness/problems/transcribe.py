"""Transcription: the words of a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.layers.ctc import best_path, prefix_beam_search
from harness.problems.base import Answer, Batch, EncodedSplit, Head, Inputs, Problem, size_of, with_probability
from harness.problems.symbols import Generate, SymbolTarget
from harness.ragged import Ragged
from harness.registry import register_problem
from harness.task import Row


class Transcribe(Head):
    """A linear layer on every frame and CTC (Graves et al. 2006); symbols are characters, 0 the
    blank."""

    def __init__(self, encoder: Any, target: SymbolTarget):
        super().__init__()
        self.target = target
        self.build(encoder)

    def build(self, encoder: Any) -> None:
        """Layers on top of the encoder."""
        self.output = nn.Linear(size_of(encoder), len(self.target))

    def scores(self, encoder: Any, frames: Any) -> tuple[Tensor, Tensor]:
        """Label scores (B, T, labels) and their lengths (B,)."""
        return self.output(self.drop(encoder(frames.vectors, frames.mask))), frames.lengths

    def forward(self, encoder: Any, inputs: Inputs) -> tuple[Tensor, Tensor]:
        scores, lengths = self.scores(encoder, inputs["text"])
        # CTC is not defined for half the bits.
        return scores.to(torch.promote_types(scores.dtype, torch.float32)).log_softmax(-1), lengths

    def loss(self, encoder: Any, outputs: tuple[Tensor, Tensor], target: tuple[Tensor, Tensor]) -> Tensor:
        log_probabilities, lengths = outputs
        symbols, counts = target
        return F.ctc_loss(log_probabilities.transpose(0, 1), symbols, lengths, counts, blank=0, zero_infinity=True)

    def row_losses(self, encoder: Any, outputs: tuple[Tensor, Tensor], target: tuple[Tensor, Tensor]) -> Tensor:
        log_probabilities, lengths = outputs
        symbols, counts = target
        return F.ctc_loss(
            log_probabilities.transpose(0, 1), symbols, lengths, counts, reduction="none", zero_infinity=True
        )

    def decode(self, encoder: Any, outputs: tuple[Tensor, Tensor], batch: Batch, split: EncodedSplit) -> list[str]:
        return [self.target.join(symbols) for symbols in self.found(encoder, outputs)]

    @staticmethod
    def found(encoder: Any, outputs: tuple[Tensor, Tensor]) -> list[list[int]]:
        """The symbols of each recording."""
        beam = getattr(encoder, "beam", 1)
        return best_path(*outputs) if beam == 1 else prefix_beam_search(*outputs, beam=beam)

    def answers(self, encoder: Any, outputs: tuple[Tensor, Tensor], batch: Batch, split: EncodedSplit) -> list[Answer]:
        """The probability of a transcript, all its paths together."""
        found, (scores, lengths) = self.found(encoder, outputs), outputs
        symbols = Ragged.of(found, np.int64).pad(np.arange(len(found)))
        numbers, counts = (torch.from_numpy(each).to(scores.device) for each in symbols)
        losses = self.row_losses(encoder, (scores.double(), lengths), (numbers, counts))
        return with_probability(list(map(self.target.join, found)), (-losses).exp().tolist())

    def evidence(self, encoder: Any, outputs: tuple[Tensor, Tensor]) -> list[Tensor]:
        return [scores[:length] for scores, length in zip(*outputs, strict=True)]


class TranscribeFrames(Transcribe):
    """An architecture that scores the labels of every frame itself."""

    def build(self, encoder: Any) -> None:
        pass

    def scores(self, encoder: Any, frames: Any) -> tuple[Tensor, Tensor]:
        return encoder(frames)


class TranscribeAligned(TranscribeFrames):
    """An architecture that learns from the place of each word in the recording, and finds the words
    itself, where ``encoder.aligns``; CTC where it has nobody who knows the places.

    Outputs are those of CTC and the batch of frames.
    """

    def forward(self, encoder: Any, inputs: Inputs) -> Any:
        return *super().forward(encoder, inputs), inputs["text"]

    def loss(self, encoder: Any, outputs: Any, target: tuple[Tensor, Tensor]) -> Tensor:
        if encoder.aligns:
            return self.row_losses(encoder, outputs, target).mean()
        return super().loss(encoder, outputs[:2], target)

    def row_losses(self, encoder: Any, outputs: Any, target: tuple[Tensor, Tensor]) -> Tensor:
        if not encoder.aligns:
            return super().row_losses(encoder, outputs[:2], target)
        symbols, counts = (each.tolist() for each in target)
        texts = [self.target.join(row[:count]) for row, count in zip(symbols, counts, strict=True)]
        return encoder.transcript_losses(*outputs, texts)

    def decode(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[str]:
        return encoder.transcribed(*outputs) if encoder.aligns else super().decode(encoder, outputs[:2], batch, split)

    def answers(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[Answer]:
        if encoder.aligns:
            return with_probability(self.decode(encoder, outputs, batch, split))
        return super().answers(encoder, outputs[:2], batch, split)

    def evidence(self, encoder: Any, outputs: Any) -> list[Tensor]:
        return super().evidence(encoder, outputs[:2])


@register_problem(
    "transcribe",
    name="Transcription",
    columns=("audio", "transcript"),
    inputs=("audio",),
    texts=(),
    unit_texts=("transcript",),
    cluster="speaker",
    metrics=("wer", "cer"),
    survey="speech",
    forms={"audio": "audio", "transcript": "string"},
)
class TranscribeProblem(Problem):
    """A recording is written down; a prediction is the transcript. ``audio`` is {"bytes": a WAV
    file, "path": its name}. Length and unknown words are those of the transcript."""

    heads: ClassVar = {
        "states": Transcribe,
        "frame states": Transcribe,
        "frame labels": TranscribeFrames,
        "frame labels and states": TranscribeAligned,
        "next symbols": Generate,
    }

    def target(self, gives: str) -> SymbolTarget:
        """Characters: behind the blank for CTC, behind padding, start, end and unknown
        otherwise."""
        return SymbolTarget(reserved=4 if gives == "next symbols" else 1, by_word=False)

    floor_names = ("nothing", "majority")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[str]]:
        """Nothing, and the commonest transcript."""
        commonest = Counter(row["transcript"] for row in train).most_common(1)[0][0]
        return {"nothing": [""] * len(rows), "majority": [commonest] * len(rows)}

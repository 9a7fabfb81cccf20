"""Hybrid of a deep BiLSTM and hidden Markov models: the network says how probable each state is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from architectures.classical.hmm_gmm import HMMRecogniser
from harness.errors import ModelError
from harness.kinds import AligningEncoder, Parent
from harness.ragged import Columns, Ragged
from harness.registry import Recipe, register
from harness.task import Row
from harness.views.frames import Audio, Frames


class BothFrames(NamedTuple):
    """Frames of B recordings as in a :class:`~harness.views.frames.FrameBatch`, with those that
    the hidden Markov models read: ``heard`` (B, T', 39) and their ``heard_lengths`` (B,)."""

    vectors: Tensor
    mask: Tensor
    lengths: Tensor
    heard: Tensor
    heard_lengths: Tensor


@dataclass
class FramesOfBoth(Frames):
    """Frames, and beside them those of the hidden Markov models."""

    def encode(self, texts: Sequence[Audio]) -> Columns:
        heard = Ragged.of((HMMRecogniser.frames(audio) for audio in texts), np.float32)
        return {**super().encode(texts), "heard": heard}

    def collate(self, columns: Columns, rows: np.ndarray) -> BothFrames:  # type: ignore[override]
        column = columns["heard"]
        assert isinstance(column, Ragged)
        heard, lengths = column.pad(rows)
        return BothFrames(*super().collate(columns, rows), torch.from_numpy(heard), torch.from_numpy(lengths))


@register(
    "dblstm_hmm",
    name="Deep BiLSTM-HMM hybrid",
    kind="ctc",
    paper="Graves et al. 2013a",
    source="X4.6",
    year=2013,
    parents={"inputs": "hmm_gmm"},
    recipe=Recipe(
        optimizer="sgd", lr=0.0001, momentum=0.9, batch_size=1, epochs=100, patience=20, reduction="sentence"
    ),
    tiny={"hidden": 96, "layers": 1, "limit": 0.2},
    deviations=(
        "States are those of whole words (six each), as the first recogniser has them, not of three parts of a phone in"
        " its surroundings.",
        "A state is told for two or three frames together; its scores count for each of them.",
        "No noise is added to the weights, and the recordings are aligned once.",
        "Without a parent there is no alignment: then it is a deep BiLSTM with CTC.",
        "The paper's is one of words of the Wall Street Journal, with a language model of three words; here it is that"
        " of pairs of words of the first recogniser.",
        "Three levels have 500 units in each direction; the paper's network for this corpus has five.",
        "Gradients are not cut; in the author's library the errors of each gate are kept within +-1.",
        "A gate has two biases, as PyTorch's fused layer does, and does not read the memory cell; the author's do.",
        "Training ends after 100 epochs, or 20 without a better dev score; the paper gives no limit.",
    ),
)
class HybridRecogniser(AligningEncoder):
    """A stacked BiLSTM over filter-bank frames and a softmax over the states of an
    :class:`~architectures.classical.hmm_gmm.HMMRecogniser`, which has aligned the training
    recordings: each frame is to be told the state in which it most probably is.

    To decode, the probability of a state is divided by its share of all frames, as the recogniser's
    last round of Baum and Welch expects them, with one more for each state. That gives what the
    density of a frame is in proportion to; the paths are those of the recogniser. All weights start
    uniform within +- ``limit``.
    """

    view = FramesOfBoth(deltas=2)
    takes = ("inputs",)

    def __init__(
        self, width: int, labels: int, view: FramesOfBoth, hidden: int = 500, layers: int = 3, limit: float = 0.1
    ):
        super().__init__()
        self.stack, self.limit = view.stack, limit
        self.recurrence = Recurrent("lstm", width, hidden, layers, bidirectional=True)
        self.output = nn.Linear(self.recurrence.size, labels)
        self.hmm: HMMRecogniser | None = None
        self.found: dict[tuple[str, bytes], np.ndarray | None] = {}
        self.begin(self)

    def begin(self, part: nn.Module) -> None:
        for parameter in part.parameters():
            nn.init.uniform_(parameter, -self.limit, self.limit)

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        if not isinstance(parent.estimator, HMMRecogniser):
            raise ModelError("it is no recogniser of hidden Markov models, which alone has states to align with")
        self.hmm = parent.estimator
        self.output = nn.Linear(self.recurrence.size, len(self.hmm.shares))
        self.begin(self.output)

    @property
    def aligns(self) -> bool:  # type: ignore[override]
        return self.hmm is not None

    def forward(self, frames: BothFrames) -> tuple[Tensor, Tensor]:
        return self.output(self.recurrence(frames.vectors, frames.mask)), frames.lengths

    def transcript_losses(
        self, logs: Tensor, lengths: Tensor, frames: BothFrames, transcripts: Sequence[str]
    ) -> Tensor:
        """Negative log-probability of the state of each frame, summed; 0 for a transcript that the
        recording cannot be aligned with, as one with a word that training never had."""
        losses = []
        for heard, log, transcript in zip(self.heard(frames), logs, transcripts, strict=True):
            states = self.aligned(heard, transcript)
            if states is None:
                losses.append(0 * log.sum())
            else:
                losses.append(F.nll_loss(log[: len(states)], torch.from_numpy(states).to(log.device), reduction="sum"))
        return torch.stack(losses)

    def aligned(self, heard: np.ndarray, transcript: str) -> np.ndarray | None:
        """The state of the first of each ``stack`` frames, which is found once."""
        assert self.hmm is not None
        key = transcript, hashlib.sha256(heard.tobytes()).digest()  # frames are a hundred kilobytes and more
        if key not in self.found:
            states = self.hmm.aligned(heard, transcript.split())
            self.found[key] = None if states is None else states[:: self.stack].copy()
        return self.found[key]

    def transcribed(self, logs: Tensor, lengths: Tensor, frames: BothFrames) -> list[str]:
        """The words of the most probable paths, by p(state | frame) / p(state)."""
        assert self.hmm is not None
        found = []
        for heard, log in zip(self.heard(frames), logs.detach().double().cpu().numpy(), strict=True):
            scaled = np.repeat(log - self.hmm.shares, self.stack, axis=0)[: len(heard)]
            found.append(" ".join(self.hmm.decoded(scaled)))
        return found

    @staticmethod
    def heard(frames: BothFrames) -> list[np.ndarray]:
        """The frames (T', 39) of each recording that the recogniser reads."""
        arrays = zip(frames.heard.cpu().numpy(), frames.heard_lengths.tolist(), strict=True)
        return [heard[:length].astype(np.float64) for heard, length in arrays]

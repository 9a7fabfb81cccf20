"""Frames of recordings with the number of the cluster that each of them falls into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans
from torch import Tensor

from harness.ragged import Columns, Ragged
from harness.views.frames import Audio, Frames, cepstra


class CodedBatch(NamedTuple):
    """Frames of B recordings as in a :class:`~harness.views.frames.FrameBatch`, with ``codes`` (B,
    T)."""

    vectors: Tensor
    mask: Tensor
    lengths: Tensor
    codes: Tensor


@dataclass
class CodedFrames(Frames):
    """Frames and their codes: the nearest of ``codes`` centres to which k-means has come on the
    cepstra of the training recordings (Hsu et al. 2021).

    Of the frames that are stacked into one the first is coded.
    """

    codes: int = 100

    def cepstra(self, audio: Audio) -> np.ndarray:
        """Cepstra of each stack of frames (T, 39), which are clustered."""
        return cepstra(audio, self.rate, self.window_ms, self.step_ms)[:: self.stack]

    def fit(self, texts: Sequence[Audio]) -> None:
        super().fit(texts)
        if self.learnt is not None:
            return
        points = np.concatenate([self.cepstra(audio) for audio in texts])
        clusters = min(self.codes, len(np.unique(points, axis=0)))
        found = MiniBatchKMeans(clusters, batch_size=4096, n_init=3, random_state=0).fit(points)
        self.centres = found.cluster_centers_.astype(np.float64)
        self.counts = np.bincount(self.nearest(points), minlength=self.codes)

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """Numbers (T,) of the centres that are nearest to points (T, 39)."""
        return ((self.centres**2).sum(1) - 2 * points @ self.centres.T).argmin(1)

    def encode(self, texts: Sequence[Audio]) -> Columns:
        codes = Ragged.of((self.nearest(self.cepstra(audio)) for audio in texts), np.int64)
        return {**super().encode(texts), "codes": codes}

    def collate(self, columns: Columns, rows: np.ndarray) -> CodedBatch:  # type: ignore[override]
        column = columns["codes"]
        assert isinstance(column, Ragged)
        codes, _ = column.pad(rows)
        return CodedBatch(*super().collate(columns, rows), torch.from_numpy(codes))

    def state(self) -> dict[str, Any]:
        return {**super().state(), "centres": self.centres.tolist(), "counts": self.counts.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.centres, self.counts = np.array(state["centres"]), np.array(state["counts"])

"""Recordings as log-mel frames."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy  # its parts load when they are first asked for: who reads texts needs none
import soundfile
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from harness.files import RATES
from harness.ragged import Columns, Ragged, mask_of
from harness.views.base import View

Audio = dict[str, Any]
"""``{"bytes": a WAV file, "path": its name}``."""

PRE_EMPHASIS = 0.97
SILENCE = 1e-10
"""Least power: the logarithm of digital silence is that of this."""
_UNKNOWN_SIZE = 0x7FFFF000
"""Programs that write a WAV file into a pipe put this size or more into its header."""


def decode(audio: Audio, rate: int) -> np.ndarray:
    """Samples (n,) at ``rate`` per second, channels averaged; ``ValueError`` with the path of a
    damaged recording, and of one whose own rate is none of :data:`harness.files.RATES`."""
    data = audio["bytes"] or b""
    declared = int.from_bytes(data[4:8], "little") + 8 if data[:4] == b"RIFF" else 0
    if len(data) < declared < _UNKNOWN_SIZE:  # libsndfile would read what there is without a word
        raise ValueError(f"{audio['path']}: the recording is cut off: {len(data)} of {declared} bytes")
    try:
        samples, found_rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    except soundfile.SoundFileError as error:
        raise ValueError(f"{audio['path']}: not a readable recording ({len(data)} bytes): {error}") from error
    if not len(samples):
        raise ValueError(f"{audio['path']}: the recording holds no samples")
    if found_rate not in RATES:
        expected = f"{RATES[0]:,} to {RATES[-1]:,}"
        raise ValueError(f"{audio['path']}: the recording has {found_rate:,} samples a second, expected {expected}")
    mono = samples.mean(axis=1)
    if found_rate == rate:
        return mono
    common = math.gcd(rate, found_rate)
    return scipy.signal.resample_poly(mono, rate // common, found_rate // common)


def mel_filters(mels: int, points: int, rate: int) -> np.ndarray:
    """Triangles (mels, points // 2 + 1), evenly spaced from 0 to half the rate on the scale mel =
    2595 log10(1 + Hz / 700)."""
    top = 2595 * np.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, mels + 2) / 2595) - 1)
    frequency = np.arange(points // 2 + 1) * rate / points
    rising = (frequency - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequency) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


def differences(frames: np.ndarray) -> np.ndarray:
    """Slope of each feature over five frames, the outer ones repeated at the ends: (T, F) as
    ``frames``."""
    padded = np.pad(frames, ((2, 2), (0, 0)), mode="edge")
    return (2 * (padded[4:] - padded[:-4]) + padded[3:-1] - padded[1:-3]) / 10


def cepstra(audio: Audio, rate: int, window_ms: int = 25, step_ms: int = 10) -> np.ndarray:
    """13 coefficients of the cosine transform of 24 log-mel bands, their slopes and the slopes of
    these, of a window every ``step_ms``: (T, 39)."""
    bands = Frames(rate=rate, mels=24, energy=False, stack=1, window_ms=window_ms, step_ms=step_ms).features(audio)
    found = scipy.fft.dct(bands, norm="ortho")[:, :13]
    slopes = differences(found)
    return np.concatenate([found, slopes, differences(slopes)], axis=1)


class FrameBatch(NamedTuple):
    """Frames of B recordings, T at most: ``vectors`` (B, T, F), ``mask`` (B, T) true at frames,
    ``lengths`` (B,)."""

    vectors: Tensor
    mask: Tensor
    lengths: Tensor


@dataclass
class Recordings(View):
    """Recordings as rows of numbers, which a view gives (:meth:`features`), each number with the
    training mean 0 and variance 1."""

    rate: int = 8000
    column: ClassVar[str] = "audio"
    learnt: ClassVar[dict[str, Any] | None] = None
    """The :meth:`state` of a model to go on from, which :meth:`fit` keeps."""

    def features(self, audio: Audio) -> np.ndarray:
        """Rows (T, features) of one recording before normalisation."""
        raise NotImplementedError

    def fit(self, texts: Sequence[Audio]) -> None:
        if self.learnt is not None:
            return self.restore(self.learnt)
        frames, total, squares = 0, np.zeros(1), np.zeros(1)
        for audio in texts:
            features = self.features(audio).astype(np.float64)
            frames, total, squares = (
                frames + len(features),
                total + features.sum(axis=0),
                squares + (features**2).sum(axis=0),
            )
        self.mean = total / frames
        # A band that never changes stays at 0 and is not divided by rounding errors.
        self.deviation = np.sqrt(np.maximum(squares / frames - self.mean**2, 1e-6))

    def normalised(self, audio: Audio) -> np.ndarray:
        """Rows (T, features) of one recording."""
        return (self.features(audio) - self.mean) / self.deviation

    def encode(self, texts: Sequence[Audio]) -> Columns:
        return {"vectors": Ragged.of((self.normalised(audio) for audio in texts), np.float32)}

    def lengths(self, columns: Columns) -> np.ndarray:
        return columns["vectors"].lengths

    def collate(self, columns: Columns, rows: np.ndarray) -> FrameBatch:
        vectors, lengths = columns["vectors"].pad(rows)
        return FrameBatch(torch.from_numpy(vectors), mask_of(lengths, vectors.shape[1]), torch.from_numpy(lengths))

    def state(self) -> dict[str, Any]:
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        self.mean, self.deviation = np.array(state["mean"]), np.array(state["deviation"])


@dataclass
class Frames(Recordings):
    """Log-mel filter bank, log ``energy`` and ``deltas`` rounds of differences.

    A window of ``window_ms`` every ``step_ms``: n samples give 1 + (n - window) // step frames, one
    where they do not fill a window. Then ``stack`` frames are joined into one (the last repeated to
    fill it), so that fewer steps remain for a recurrent network.
    """

    mels: int = 40
    energy: bool = True
    deltas: int = 0
    stack: int = 2
    window_ms: int = 25
    step_ms: int = 10
    may_be_zero: ClassVar[tuple[str, ...]] = ("deltas",)

    def __post_init__(self) -> None:
        if not 0 <= self.deltas <= 2:
            raise ValueError(f"deltas={self.deltas}: 0, 1 (slopes) or 2 (slopes and their slopes) are expected")

    @property
    def width(self) -> int:
        return (self.mels + self.energy) * (1 + self.deltas) * self.stack

    def features(self, audio: Audio) -> np.ndarray:
        """Frames (T, features) of one recording before normalisation and stacking."""
        window, step = self.rate * self.window_ms // 1000, self.rate * self.step_ms // 1000
        samples = decode(audio, self.rate)
        samples = np.pad(samples, (0, max(0, window - len(samples))))
        emphasised = np.append(samples[:1], samples[1:] - PRE_EMPHASIS * samples[:-1])
        points = 2 ** math.ceil(math.log2(window))
        windows = sliding_window_view(emphasised, window)[::step] * np.hanning(window).astype(np.float32)
        power = np.abs(np.fft.rfft(windows, points)).astype(np.float32) ** 2 / points
        bands = power @ mel_filters(self.mels, points, self.rate).T
        if self.energy:
            bands = np.column_stack([bands, power.sum(axis=1)])
        parts = [np.log(np.maximum(bands, SILENCE))]
        for _ in range(self.deltas):
            parts.append(differences(parts[-1]))
        return np.concatenate(parts, axis=1)

    def normalised(self, audio: Audio) -> np.ndarray:
        frames = super().normalised(audio)
        filled = np.pad(frames, ((0, -len(frames) % self.stack), (0, 0)), mode="edge")
        return filled.reshape(-1, self.width)


@dataclass
class Samples(Recordings):
    """The samples of a recording in blocks of ``block``, the last one filled with zeros."""

    block: int = 160

    @property
    def width(self) -> int:
        return self.block

    def features(self, audio: Audio) -> np.ndarray:
        samples = decode(audio, self.rate)
        return np.pad(samples, (0, -len(samples) % self.block)).reshape(-1, self.block)

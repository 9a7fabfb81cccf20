"""Codes of masked frames, against loops; spans of masks; mixtures with another voice."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from architectures.blocks.objectives.masked_codes import MaskedCodes, MaskedCodesOfMixtures, hidden_frames
from harness.layers.noise import Noise
from harness.views.coded_frames import CodedBatch
from tests.support.models import small
from tests.support.same import assert_same


def recordings(*lengths: int, width: int = 4) -> CodedBatch:
    generator = torch.Generator().manual_seed(0)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    vectors = torch.randn(*mask.shape, width, generator=generator) * mask[..., None]
    codes = torch.randint(5, mask.shape, generator=generator) * mask
    return CodedBatch(vectors, mask, torch.tensor(lengths), codes)


def noise(read: CodedBatch, *key: int) -> Noise:
    return Noise(read.vectors.view(torch.int32).long().sum(2), read.mask, key)


def test_spans_are_ten_frames_from_each_start():
    """From a start ten frames are hidden, one recording has one span at least, and about half of
    the frames are: with single frames masked the neighbours would tell the code."""
    read = recordings(400, 3, 120)
    for key in range(4):
        draws = noise(read, 1, key).uniform(400)
        found = hidden_frames(noise(read, 1, key), read.mask)
        for row, length in enumerate((400, 3, 120)):
            least = draws[row, :length].min()
            starts = [t for t in range(length) if draws[row, t] < 0.08 or draws[row, t] == least]
            expected = {t for start in starts for t in range(start, min(start + 10, length))}
            assert set(found[row].nonzero()[:, 0].tolist()) == expected and expected
    assert 0.4 < found[0].float().mean() < 0.7


class Encoder:
    """One that gives some states (B, T, 3) and remembers what it was given."""

    size, view = 3, SimpleNamespace(codes=5)

    def __init__(self, read: CodedBatch):
        generator = torch.Generator().manual_seed(1)
        self.given = torch.randn(*read.mask.shape, 3, generator=generator).requires_grad_()

    def states(self, vectors: Tensor, mask: Tensor, hidden: Tensor) -> Tensor:
        self.vectors, self.hidden = vectors, hidden
        return self.given

    def scale(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return like.new_tensor([1.0, -1.0, 0.5, 2.0]), like.new_tensor([2.0, 1.0, 0.5, 3.0])


def test_the_probability_of_a_code_is_the_softmax_of_ten_times_the_cosine():
    """Of the masked frames alone: those that are seen would be copied."""
    read = recordings(30, 8)
    encoder = Encoder(read)
    learns = small(MaskedCodes, encoder)
    found = learns(encoder, read, noise(read, 1, 1))
    assert encoder.vectors is read.vectors and torch.equal(encoder.hidden, hidden_frames(noise(read, 1, 1), read.mask))
    expected, rows = [], []
    for row, t in encoder.hidden.nonzero().tolist():
        o = learns.project.weight @ encoder.given[row, t] + learns.project.bias
        scores = torch.stack([(o @ e) / (o.norm() * e.norm()) / 0.1 for e in learns.codes])
        expected.append(scores[read.codes[row, t]] - scores.exp().sum().log())
        rows.append(row)
    assert found.texts.tolist() == rows
    assert_same(found.logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_the_floor_is_the_share_of_each_code():
    """Every code counted once more, so that none is impossible."""
    view = SimpleNamespace(
        counts=np.array([5, 0, 2]), cepstra=lambda audio: audio, nearest=lambda points: np.array(points)
    )
    (found,) = MaskedCodes.floor(view, [], [{"audio": [0, 0, 1]}])
    np.testing.assert_allclose(found, [2 * np.log(6 / 10) + np.log(1 / 10), 3])


def mixed(read: CodedBatch, *key: int) -> tuple[Tensor, list[set[int]]]:
    """What is heard, and the frames of each recording that are changed."""
    encoder = Encoder(read)
    heard = MaskedCodesOfMixtures(encoder).heard(encoder, read, noise(read, *key))
    changed = (heard != read.vectors).any(2)
    return heard, [set(row.nonzero()[:, 0].tolist()) for row in changed]


def test_another_voice_is_laid_over_half_of_a_fifth_of_the_recordings_at_most():
    """And over none in evaluation: scores would be those of other recordings."""
    read = recordings(*[40] * 300)
    _, changed = mixed(read, 1, 1)
    several = [frames for frames in changed if frames]
    assert 0.12 < len(several) / 300 < 0.28
    assert all(len(frames) <= 20 and max(frames) - min(frames) + 1 == len(frames) for frames in several)
    assert max(map(len, several)) > 17 and min(map(min, several)) < 3 and max(map(max, several)) > 36
    assert not any(mixed(read)[1])


def test_the_other_voice_may_end_with_the_recording():
    """The highest draws give half of the frames, the last ones."""
    read, encoder = recordings(10, 7), Encoder(recordings(10, 7))
    draws = torch.tensor([[0.0, 0.999, 0.999, 0.5]] * 2)
    fixed = SimpleNamespace(anew=True, uniform=lambda number: draws[:, :number])
    heard = MaskedCodesOfMixtures(encoder).heard(encoder, read, fixed)
    changed = (heard != read.vectors).any(2)
    assert [row.nonzero()[:, 0].tolist() for row in changed] == [[5, 6, 7, 8, 9], [4, 5, 6]]


def test_the_power_of_the_turned_recording_is_added():
    """Powers add up, not their logarithms; the ratio of both lies within five decibels."""
    read = recordings(*[12] * 60)
    heard, changed = mixed(read, 1, 1)
    mean, deviation = Encoder(read).scale(heard)
    ratios = []
    for row, frames in enumerate(changed):
        own, mixture = ((each[row] * deviation + mean).exp() for each in (read.vectors, heard))
        added = [(mixture[t] - own[t]) / own[11 - t] for t in frames]
        if added:
            ratio = torch.stack(added)
            torch.testing.assert_close(ratio, ratio[0, 0].expand_as(ratio), rtol=0.1, atol=0.01)
            ratios.append(float(ratio.mean().log10() * 10))
    assert -5.1 < min(ratios) < -1 and 1 < max(ratios) < 5.1


def test_what_is_heard_does_not_depend_on_the_batch():
    """In particular not on padding, behind which a shorter recording ends."""
    read = recordings(9, 30, 12)
    for key in range(40):
        heard, _ = mixed(read, 1, key)
        alone = CodedBatch(read.vectors[:1, :9].contiguous(), read.mask[:1, :9], read.lengths[:1], read.codes[:1, :9])
        torch.testing.assert_close(mixed(alone, 1, key)[0], heard[:1, :9])

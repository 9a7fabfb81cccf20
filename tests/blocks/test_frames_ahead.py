"""Frames that are foretold among others: against loops over frames, steps and offers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from architectures.blocks.objectives import frames_ahead
from architectures.blocks.objectives.frames_ahead import OTHERS, STEPS, FramesAhead, FramesAheadOneByOne, others
from harness.layers.noise import Noise
from harness.views.frames import FrameBatch
from tests.support.models import small
from tests.support.same import assert_same

LENGTHS = torch.tensor([6, 15, 2])


def frames() -> FrameBatch:
    vectors = torch.randn(3, 15, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(15) < LENGTHS[:, None]
    return FrameBatch(vectors * mask[..., None], mask, LENGTHS)


def noise(read: FrameBatch, *key: int) -> Noise:
    return Noise((1000 * read.vectors).long().sum(2), read.mask, key)


def encoder() -> tuple[SimpleNamespace, Tensor, Tensor]:
    """One that gives some z (3, 15, 2) and c (3, 15, 3)."""
    generator = torch.Generator().manual_seed(1)
    z, c = (torch.randn(3, 15, size, dtype=torch.double, generator=generator).requires_grad_() for size in (2, 3))
    return SimpleNamespace(frame=2, context=3, ahead=lambda read: (z, c)), z, c


def softmax(scores: list[Tensor]) -> Tensor:
    return scores[0] - torch.stack([score.exp() for score in scores]).sum().log()


def one_by_one(scores: list[Tensor]) -> Tensor:
    right, *wrong = (1 / (1 + (-score).exp()) for score in scores)
    return right.log() + torch.stack([(1 - share).log() for share in wrong]).sum()


@pytest.mark.parametrize(("objective", "log"), [(FramesAhead, softmax), (FramesAheadOneByOne, one_by_one)])
def test_answers_are_those_of_loops(objective, log):
    """A matrix for each step, the frame at t + k, offers from the same recording, no answer at
    padding: with an offset by one the encoder would learn to copy what it has seen."""
    read, (made, z, c) = frames(), encoder()
    learns = small(objective, made).double()
    found = learns(made, read, noise(read, 1, 1))
    drawn = others(noise(read, 1, 1), LENGTHS, 15)
    expected: dict[int, list[Tensor]] = {0: [], 1: [], 2: []}
    for row, length in enumerate(LENGTHS.tolist()):
        for k in range(1, STEPS + 1):
            for t in range(length - k):
                asked = learns.foretell[k - 1].weight @ c[row, t]
                offers = [z[row, t + k], *(z[row, place] for place in drawn[row, t + k])]
                expected[row].append(log([offer @ asked for offer in offers]))
    for row, logs in expected.items():
        assert (found.texts == row).sum() == len(logs) > 0
        assert_same(found.logs[found.texts == row].sort().values, torch.stack(logs).sort().values)


def test_others_are_of_the_recording_and_never_the_frame_itself():
    """One of padding would be told by its zeros; the right frame twice would punish who finds
    it."""
    read = frames()
    drawn = others(noise(read, 1, 1), LENGTHS, 15)
    assert drawn.shape == (3, 15, OTHERS)
    for row, length in enumerate(LENGTHS.tolist()):
        for place in range(length):
            assert set(drawn[row, place].tolist()) <= set(range(length)) - {place}
    assert set(drawn[1, :15].flatten().tolist()) == set(range(15))


def test_others_do_not_depend_on_the_batch_and_are_new_in_each_pass():
    """A resumed training would go on with other questions; the same ones for ever are learnt by
    heart."""
    read = frames()
    short = FrameBatch(read.vectors[:1, :6], read.mask[:1, :6], read.lengths[:1])
    assert torch.equal(others(noise(short, 1, 1), LENGTHS[:1], 6), others(noise(read, 1, 1), LENGTHS, 15)[:1, :6])
    assert not torch.equal(others(noise(read, 1, 1), LENGTHS, 15), others(noise(read, 1, 2), LENGTHS, 15))


def test_an_encoder_that_knows_nothing_is_at_the_floor():
    """The floor is what is reached without learning: log 11 by a softmax, and the entropy of one
    right frame in eleven one by one."""
    assert FramesAhead.floor(None, [], [{}, {}]) == [[pytest.approx(-math.log(1 + OTHERS)), 1]] * 2
    read, (made, _, _) = frames(), encoder()
    learns = FramesAhead(made).double()
    for layer in learns.foretell:
        torch.nn.init.zeros_(layer.weight)
    found = learns(made, read, noise(read))
    torch.testing.assert_close(found.logs, torch.full_like(found.logs, -math.log(11)))
    share = 1 / 11
    entropy = math.log(share) + 10 * math.log(1 - share)
    assert FramesAheadOneByOne.floor(None, [], [{}]) == [[pytest.approx(entropy), 1]]


def test_a_recording_of_one_frame_is_asked_nothing_and_ends_no_training():
    """Its one frame has none ahead."""
    made = SimpleNamespace(frame=2, context=3, ahead=lambda read: (torch.ones(2, 1, 2), torch.ones(2, 1, 3)))
    read = FrameBatch(torch.ones(2, 1, 4), torch.ones(2, 1, dtype=torch.bool), torch.tensor([1, 1]))
    found = FramesAhead(made)(made, read, noise(read))
    assert found.logs.tolist() == [0, 0] and found.texts.tolist() == [0, 1]


def test_the_numbers_of_others_and_steps_are_those_of_the_unit():
    """The unit stands on the pages."""
    assert (frames_ahead.STEPS, frames_ahead.OTHERS) == (12, 10)
    assert "10 others" in FramesAhead.unit and FramesAhead.unit != FramesAheadOneByOne.unit
    assert FramesAhead.choices(None) == 11

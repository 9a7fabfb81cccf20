"""The mechanism of Deep Speech: clipped rectifiers, frames in their context, and one recurrent
layer without gates whose directions are summed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from architectures.speech.deep_speech import DeepSpeech, clipped
from harness.views.frames import FrameBatch
from tests.support.batches import random_texts
from tests.support.pairs import dense, dropped, shipped
from tests.support.same import assert_same

WIDTH, LABELS = 3, 4


def frames(lengths: list[int]) -> FrameBatch:
    texts = random_texts(lengths, 1, WIDTH)
    return FrameBatch(texts.vectors, texts.mask, texts.lengths)


def model_of(stretch: float | None = 3.0, **options) -> DeepSpeech:
    sizes = {"hidden": 5, "context": 2} | options
    return shipped("deep_speech", WIDTH, labels=LABELS, stretch=stretch, **sizes)


def g(sums: Tensor) -> Tensor:
    """min(max(0, z), 20), number by number."""
    return torch.stack([min(max(z, torch.zeros(())), torch.full((), 20.0)) for z in sums])


def written_out(model: DeepSpeech, vectors: Tensor) -> Tensor:
    """Equations 1 to 3 and section 3.3 of one recording."""
    nothing, context = torch.zeros(WIDTH), model.context
    fed = []
    for middle in range(0, len(vectors), model.stride):
        places = range(middle - context, middle + context + 1)
        h = torch.cat([vectors[t] if 0 <= t < len(vectors) else nothing for t in places])
        for layer in model.before:
            h = g(dense(layer, h))
        fed.append(dense(model.shared, h))
    directions = []
    for layer, order in zip(model.recurrent, (fed, fed[::-1]), strict=True):
        h, states = torch.zeros(len(fed[0])), []
        for step in order:
            h = g(step + layer.weight @ h)
            states.append(h)
        directions.append(states)
    sums = [one + other for one, other in zip(directions[0], directions[1][::-1], strict=True)]
    return torch.stack([dense(model.output, g(dense(model.behind, h))) for h in sums])


@pytest.mark.parametrize(("stride", "expected"), [(1, [9, 4, 1]), (2, [5, 2, 1]), (3, [3, 2, 1])])
def test_each_recording_is_written_out(stride, expected):
    """Padding that reaches a window or the backward direction, frames joined in another order,
    directions joined or averaged, or a stride that begins elsewhere would show here."""
    model = model_of(stride=stride)
    batch = frames([9, 4, 1])
    found, lengths = model(batch)
    assert lengths.tolist() == expected and found.shape == (3, max(expected), LABELS)
    for row, length in enumerate(expected):
        whole = written_out(model, batch.vectors[row][batch.mask[row]])
        assert len(whole) == length
        assert_same(found[row, :length], whole, rtol=1e-4, atol=1e-4)


def test_frames_that_differ_are_told_apart_at_the_start():
    """With torch's start each layer halves what differs between frames: five layers on all frames
    look alike, and CTC never learns more than the blank."""
    torch.manual_seed(0)
    model = DeepSpeech(80, labels=30, hidden=128).eval()
    scores, _ = model(FrameBatch(torch.randn(1, 200, 80), torch.ones(1, 200, dtype=torch.bool), torch.tensor([200])))
    assert scores[0].std(0).mean() > 0.1  # .007 with torch's start


def test_nothing_is_below_zero_or_above_twenty():
    """Without the upper bound a recurrence of rectifiers grows without end."""
    assert clipped(torch.tensor([-3.0, 0.5, 19.0, 21.0])).tolist() == [0, 0.5, 19, 20]
    model = model_of()
    with torch.no_grad():
        for layer in model.recurrent:
            layer.weight.fill_(3.0)
        model.shared.bias.fill_(1.0)
    batch = frames([30])
    states = model.both_ways(torch.rand(1, 30, 5), torch.ones(1, 30, dtype=torch.bool))
    assert states.max() == 40
    assert model(batch)[0].isfinite().all()


def test_a_tenth_of_the_layers_without_a_recurrence_is_dropped():
    """Four times in training: after each of the first three layers and after the fifth."""
    model = model_of(hidden=40, stretch=None)
    given, read = [], []
    model.dropout.register_forward_hook(lambda _, inputs, output: given.append(inputs[0]))
    model.dropout.register_forward_hook(lambda _, inputs, output: read.append(output))
    model.train()
    for _ in range(20):
        model(frames([9, 9]))
    assert len(given) == 80
    for place in range(4):
        assert dropped(given[place::4], read[place::4]) == pytest.approx(0.1, abs=0.03)
    batch = frames([9])
    assert_same(model.eval()(batch)[0], model(batch)[0], rtol=0, atol=0)


def test_frames_are_eighty_filters_and_energy_of_twenty_milliseconds():
    view = DeepSpeech.view
    assert (view.width, view.window_ms, view.step_ms, view.stack) == (81, 20, 10, 1)

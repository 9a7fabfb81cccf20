"""The mechanism of the dilated time-delay network: which frames a score sees, and p-norm units."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from architectures.speech.tdnn_dilated import DilatedTimeDelayNetwork, Spliced
from harness.views.frames import FrameBatch
from tests.support.batches import random_texts
from tests.support.models import small
from tests.support.pairs import shipped
from tests.support.same import assert_same

WIDTH, LABELS, UNITS, GROUP = 3, 4, 5, 2
SPLICES = [(-2, -1, 0, 1, 2), (-1, 2), (-3, 3), (-7, 2)]
"""As in the authors' recipe for Switchboard."""


def frames(lengths: list[int]) -> FrameBatch:
    texts = random_texts(lengths, 1, WIDTH)
    return FrameBatch(texts.vectors, texts.mask, texts.lengths)


def model_of() -> DilatedTimeDelayNetwork:
    return shipped("tdnn_dilated", WIDTH, LABELS, UNITS, GROUP, stretch=2.0)


def written_out(model: DilatedTimeDelayNetwork, recording: Tensor) -> Tensor:
    """Scores (n, LABELS) of one recording for all of its frames, unit by unit."""
    last = len(recording) - 1
    states = {t: recording[min(max(t, 0), last)] for t in range(-13, last + 10)}
    for layer, splice in zip(model.layers, SPLICES, strict=True):
        weight, bias, above = layer.affine.weight, layer.affine.bias, {}
        for t in states:
            if all(t + offset in states for offset in splice):
                sums = sum(weight[:, :, k] @ states[t + offset] for k, offset in enumerate(splice)) + bias
                units = torch.stack([group.square().sum().sqrt() for group in sums.split(GROUP)])
                above[t] = units / units.square().mean().sqrt()
        states = above
    assert sorted(states) == list(range(len(recording))), "a score for each frame"
    return torch.stack([model.output.weight[:, :, 0] @ states[t] + model.output.bias for t in range(len(recording))])


def test_each_recording_of_a_batch_is_the_recording_written_out_frame_by_frame():
    """Other frames, units that are not lengths of groups, no normalisation, or zeros or the padding
    of the batch beyond the ends of a recording would show here. Every third score is computed."""
    model, batch = model_of(), frames([30, 28, 9, 2, 1])
    found, lengths = model(batch)
    assert lengths.tolist() == [10, 10, 3, 1, 1] and found.shape == (5, 10, LABELS)
    for row, recording in enumerate(batch.vectors):
        expected = written_out(model, recording[batch.mask[row]])[::3]
        assert_same(found[row, : lengths[row]], expected, rtol=1e-4, atol=1e-4)
        assert len(expected) == lengths[row]


def test_a_score_sees_the_frames_that_the_splices_lead_to():
    """From 13 frames before its own to 9 behind it."""
    model, batch = model_of(), frames([60])
    model(batch)[0][0, 10].sum().backward()
    seen = batch.vectors.grad[0].any(1).nonzero().flatten() - 30
    reached = {sum(offsets) for offsets in product(*SPLICES)}
    assert set(seen.tolist()) == reached and (min(reached), max(reached)) == (-13, 9)


def test_a_unit_is_the_length_of_its_group_and_a_frame_has_a_mean_square_of_one():
    """By hand: groups (3, 4) and (0, 12) have the lengths 5 and 12, whose mean square is 84.5."""
    layer = small(Spliced, 1, 2, 2, joined=2)
    with torch.no_grad():
        layer.affine.weight.zero_()
        layer.affine.bias.copy_(torch.tensor([3.0, 4.0, 0.0, 12.0]))
    found = layer(torch.zeros(1, 1, 3))
    expected = torch.tensor([5.0, 12.0]) / 84.5**0.5
    torch.testing.assert_close(found, expected[None, :, None].expand(1, 2, 2))


def test_the_weights_are_those_of_four_spliced_layers_as_in_the_authors_recipe():
    """2,750 numbers in groups of ten, from five frames of 40 energies and then from two of 275."""
    model = DilatedTimeDelayNetwork(40, 30)
    affine = [5 * 40, 2 * 275, 2 * 275, 2 * 275]
    assert sum(p.numel() for p in model.parameters()) == sum((n + 1) * 2750 for n in affine) + (275 + 1) * 30
    for layer in model.layers:
        assert abs(layer.affine.weight.std() * 2750**0.5 - 1) < 0.02 and 0.45 < layer.affine.bias.std() < 0.55


def test_frames_are_forty_energies_every_ten_milliseconds():
    view = DilatedTimeDelayNetwork.view
    assert (view.width, view.mels, view.step_ms, view.window_ms, view.stack) == (40, 40, 10, 25, 1)

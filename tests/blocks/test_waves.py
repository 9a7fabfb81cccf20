"""Convolutions over samples: each number as a sum over the samples before, and nothing from
behind."""

from __future__ import annotations

import torch
from torch import Tensor

from architectures.blocks.waves import LAYERS, WaveConvolutions
from tests.support.models import small
from tests.support.same import assert_same


def by_loops(model: WaveConvolutions, samples: Tensor) -> Tensor:
    """The vectors (T, size) of one recording (T, 160), place by place."""
    states = [sample.view(1) for sample in samples.flatten()]
    for (width, stride), convolution, norm in zip(LAYERS, model.convolutions, model.norms, strict=True):
        states = [torch.zeros_like(states[0])] * (width - stride) + states
        found = []
        for begin in range(0, len(states) - width + 1, stride):
            window = torch.stack(states[begin : begin + width], 1)
            value = (convolution.weight * window).sum((1, 2)) + convolution.bias
            centred = value - value.mean()
            normed = norm.weight * centred / (centred.square().mean() + norm.eps).sqrt() + norm.bias
            found.append(normed.clamp(min=0))
        states = found
    return torch.stack(states)


def test_each_block_of_samples_has_its_vector():
    """Widths, strides, order of norm and ReLU, and zeros before the beginning: with others a
    recording would be cut or read twice."""
    model = small(WaveConvolutions, 3).double()
    samples = torch.randn(2, 3, 160, dtype=torch.double, generator=torch.Generator().manual_seed(0)).requires_grad_()
    found = model(samples)
    assert found.shape == (2, 3, 3)
    assert_same(found, torch.stack([by_loops(model, each) for each in samples]))


def test_layers_are_those_of_the_paper():
    """One vector for 160 samples, each of which has heard 465."""
    assert LAYERS == ((10, 5), (8, 4), (4, 2), (4, 2), (4, 2))


def test_what_comes_behind_a_block_changes_nothing():
    """Otherwise the frame that is to be foretold would be told, and padding would be heard."""
    model = small(WaveConvolutions, 4)
    samples = torch.randn(1, 5, 160, generator=torch.Generator().manual_seed(0))
    changed = samples.clone()
    changed[:, 3:] = 7.0
    torch.testing.assert_close(model(samples)[:, :3], model(changed)[:, :3])
    changed[:, :2] = 7.0
    assert not torch.allclose(model(samples)[:, 2], model(changed)[:, 2])

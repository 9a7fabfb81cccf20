"""Learnt features of speech: an aggregator of causal convolutions, which a BiLSTM reads."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

from architectures.blocks.objectives.frames_ahead import FramesAheadOneByOne
from architectures.speech.wavenet_ae import Aggregator, Wav2Vec
from harness.views.frames import FrameBatch, Samples
from tests.support.models import small
from tests.support.oracles import recurrent
from tests.support.same import assert_same

SIZES = {"size": 3, "layers": 2, "hidden": 4, "recurrences": 1}


def samples(*lengths: int) -> FrameBatch:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    vectors = torch.randn(*mask.shape, 160, generator=torch.Generator().manual_seed(0))
    return FrameBatch(vectors * mask[..., None], mask, torch.tensor(lengths))


def aggregated(model: Aggregator, states: list[Tensor]) -> Tensor:
    """c (T, size) of one recording, place by place."""
    for convolution, norm in zip(model.convolutions, model.norms, strict=True):
        width = convolution.kernel_size[0]
        padded = [torch.zeros_like(states[0])] * (width - 1) + states
        found = []
        for t in range(len(states)):
            value = (convolution.weight * torch.stack(padded[t : t + width], 1)).sum((1, 2)) + convolution.bias
            centred = value - value.mean()
            found.append((norm.weight * centred / (centred.square().mean() + norm.eps).sqrt() + norm.bias).relu())
        states = found
    return torch.stack(states)


def test_the_aggregator_is_a_stack_of_causal_convolutions():
    """In values and gradients: one that looks ahead would know what it foretells."""
    model = small(Aggregator, 3, 2, 3).double()
    states = torch.randn(2, 6, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert_same(model(states), torch.stack([aggregated(model, list(each)) for each in states]))


def test_nothing_behind_a_block_changes_its_features():
    """Neither z nor c."""
    model, read = small(Wav2Vec, 160, Samples(), **SIZES), samples(6)
    changed = read._replace(vectors=read.vectors.clone())
    changed.vectors[:, 4:] = 3.0
    for ours, theirs in zip(model.ahead(read), model.ahead(changed), strict=True):
        torch.testing.assert_close(ours[:, :4], theirs[:, :4])
        assert not torch.allclose(ours[:, 4:], theirs[:, 4:])


def test_a_bilstm_reads_c():
    """Not z, and no sample: the features take the place of the filter bank."""
    model, read = small(Wav2Vec, 160, Samples(), **SIZES), samples(5, 3)
    z, c = model.ahead(read)
    torch.testing.assert_close(c, model.features.aggregator(z))
    found = model(read.vectors, read.mask)
    for row, length in enumerate((5, 3)):
        assert_same(found[row, :length], recurrent(model.recurrence, c[row, :length]), rtol=1e-4, atol=1e-5)


def test_above_a_parent_the_features_stay_and_the_bilstm_learns():
    """Its own first weights, not the parent's: plain recordings have taught it nothing."""
    parent, child = small(Wav2Vec, 160, Samples(), **SIZES), Wav2Vec(160, Samples(), **SIZES)
    before = child.recurrence.forwards[0].weight_ih_l0.clone()
    model = torch.nn.Module()
    model.encoder = parent
    child.inherit("weights", SimpleNamespace(model=model), [])
    child.train()
    read = samples(5, 3)
    torch.testing.assert_close(child.ahead(read)[1], parent.ahead(read)[1])
    assert torch.equal(before, child.recurrence.forwards[0].weight_ih_l0)
    child(read.vectors, read.mask).sum().backward()
    assert all(p.grad is None for p in child.features.parameters())
    assert all(p.grad is not None for p in child.recurrence.parameters())


def test_defaults_are_nine_convolutions_of_three():
    """The paper's smaller aggregator, a quarter as wide; each offered frame is judged by itself."""
    model = Wav2Vec(160, Samples())
    assert [each.kernel_size for each in model.features.aggregator.convolutions] == [(3,)] * 9
    assert model.frame == model.context == 128 and model.size == 500
    assert Wav2Vec.learns is FramesAheadOneByOne

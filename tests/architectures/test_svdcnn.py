"""The mechanism of the squeezed VDCNN: separable convolutions, and means in parts of the text in
place of dense layers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.convolutional.svdcnn import SeparableConvolution, SqueezedVDCNN, dynamic_mean
from architectures.convolutional.vdcnn import VDCNN
from harness import registry
from harness.views.characters import CharacterBatch
from tests.support.batches import mask_of
from tests.support.models import small
from tests.support.same import assert_same

SMALL = {"widths": (3, 4, 5, 6), "dims": 2}
DEPTHS = {
    "svdcnn_9": (9, [2, 2, 2, 2]),
    "svdcnn_17": (17, [4, 4, 4, 4]),
    "svdcnn_29": (29, [10, 10, 4, 4]),
    "svdcnn_49": (49, [16, 16, 10, 6]),
}
"""Convolutions of each id: all of them, and the separable ones of each width."""


def read(*texts: str) -> CharacterBatch:
    return SqueezedVDCNN.view.collate(SqueezedVDCNN.view.encode(list(texts)), np.arange(len(texts)))


def model_of(**settings) -> SqueezedVDCNN:
    """A small model that has seen texts, so that its batch norms are far from the identity."""
    model = small(SqueezedVDCNN, SqueezedVDCNN.view.width, **SMALL | settings).train()
    for _ in range(5):
        model(read("a text with some more characters than eight times eight, as it happens", "another one: 42!"))
    return model.eval()


def normed(norm: nn.BatchNorm1d, states: Tensor) -> Tensor:
    columns = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    mean, variance, weight, bias = (column[:, None] for column in columns)
    return (states - mean) / (variance + norm.eps).sqrt() * weight + bias


def separable(layer: SeparableConvolution, states: Tensor) -> Tensor:
    """Each map (T,) by itself, then all maps of a character."""
    own = [
        F.conv1d(row[None], weight[None], padding=1) for row, weight in zip(states, layer.depthwise.weight, strict=True)
    ]
    inner = normed(layer.depthwise_norm, torch.cat(own)).clamp(min=0)
    return normed(layer.pointwise_norm, layer.pointwise.weight[:, :, 0] @ inner)


def written_out(model: SqueezedVDCNN, ids: Tensor) -> Tensor:
    """The vector of one text alone (n characters)."""
    states = F.conv1d(model.characters.weight[ids].T, model.first.weight, model.first.bias, padding=1)
    for number, group in enumerate(model.groups):
        if number:
            states = F.max_pool1d(states, 3, stride=2, padding=1)
        for block in group:
            inner = separable(block.second, separable(block.first, states).clamp(min=0))
            if block.shortcut:
                widened = normed(block.widen_norm, F.conv1d(states, block.widen.weight)) if block.widen else states
                inner = inner + widened
            states = inner.clamp(min=0)
    return F.adaptive_avg_pool1d(states, model.parts).flatten()


@pytest.mark.parametrize("shortcut", [False, True])
def test_each_text_of_a_batch_is_the_text_alone_written_out(shortcut):
    """A dense convolution, a missing norm or ReLU between its halves, other pooling or padding that
    any layer reads would each show here. 70 characters leave 9 positions, 12 leave 2, 1 leaves
    1."""
    model = model_of(shortcut=shortcut).double()
    texts = read("the film is not so much bad as dull ~ and 2 hours of it are too much!!", "a good film!", "x")
    found = model(texts)
    for vector, ids, length in zip(found, texts.ids, texts.lengths, strict=True):
        assert_same(vector, written_out(model, ids[:length]))


@pytest.mark.parametrize("id", DEPTHS)
def test_the_depth_counts_separable_convolutions_and_each_width_has_its_share(id):
    depth, blocks = DEPTHS[id]
    settings = registry.entry("architectures", id).hyperparameters
    model = SqueezedVDCNN(SqueezedVDCNN.view.width, **SMALL | settings)
    seen = []
    for module in model.modules():
        if isinstance(module, SeparableConvolution):
            module.register_forward_hook(lambda layer, inputs, output: seen.append(tuple(output.shape[1:])))
    model(read("x" * 40))
    assert len(seen) == depth - 1
    assert list(dict.fromkeys(seen)) == [(3, 40), (4, 20), (5, 10), (6, 5)]
    assert [seen.count(place) for place in dict.fromkeys(seen)] == blocks


@pytest.mark.parametrize("depth", [9, 29])
def test_a_fraction_of_the_vdcnns_weights(depth):
    """Of three times W squared weights W squared and three times W are left, and no dense layer."""
    deep, squeezed = (
        sum(p.numel() for p in kind(70, depth=depth, shortcut=True).parameters()) for kind in (VDCNN, SqueezedVDCNN)
    )
    assert 10 < deep / squeezed < 21


def test_the_mean_of_each_part_is_that_of_torch_over_the_real_positions():
    lengths = [11, 8, 3, 1]
    mask = mask_of(lengths)
    values = (torch.randn(4, 2, 11) * mask[:, None]).requires_grad_()
    found = dynamic_mean(values, torch.tensor(lengths), 4)
    for row, length in enumerate(lengths):
        assert_same(found[row], F.adaptive_avg_pool1d(values[row, :, :length], 4))


def test_a_full_text_is_halved_to_127_positions_and_longer_ones_are_cut():
    model, lengths = model_of(), []
    for group in model.groups:
        group[0].register_forward_hook(lambda block, inputs, output: lengths.append(output.shape[-1]))
    texts = read("ab " * 500)
    found = model(texts)
    assert lengths == [1014, 507, 254, 127]
    assert_same(found, model(read(("ab " * 500)[:1014])))


def test_the_papers_sizes_and_start():
    model = SqueezedVDCNN(SqueezedVDCNN.view.width)
    assert model.characters.embedding_dim == 16 and model.size == 4096
    assert not any(isinstance(module, nn.Linear) for module in model.modules())
    for module in model.modules():
        if isinstance(module, nn.Conv1d):
            fan_in = module.weight[0].numel()
            expected = pytest.approx(math.sqrt(2 / fan_in), rel=0.25 if fan_in == 3 else 0.05)
            assert module.weight.std().item() == expected
    with pytest.raises(ValueError, match="depth=10 is none of 9, 17, 29, 49"):
        SqueezedVDCNN(SqueezedVDCNN.view.width, depth=10)


def test_a_batch_of_one_character_still_trains():
    model = SqueezedVDCNN(SqueezedVDCNN.view.width, **SMALL)
    model(read("x")).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())

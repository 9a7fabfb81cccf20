"""The mechanism of DenseNet for text: each layer of a block reads all before it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.convolutional.densenet_text import DenseBlock, DenseNetCharacters, DenseNetText, Layer, halve
from harness import registry
from tests.support.batches import assert_each_alone, mask_of, poisoned, random_texts
from tests.support.models import small
from tests.support.same import assert_same

WIDTH = 4
SMALL = {"growths": (3, 4, 5), "layers": (2, 3, 1)}

texts = partial(random_texts, seed=1, width=WIDTH)


def model_of(**settings) -> DenseNetText:
    """A small model that has seen texts, so that its batch norms are far from the identity."""
    model = small(DenseNetText, WIDTH, **SMALL | settings).train()
    for _ in range(5):
        model(texts((9, 6, 4)))
    return model.eval()


def rectified(norm: nn.BatchNorm1d, states: Tensor) -> Tensor:
    columns = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    mean, variance, weight, bias = (column[:, None] for column in columns)
    return ((states - mean) / (variance + norm.eps).sqrt() * weight + bias).clamp(min=0)


def layer_of(layer: Layer, states: Tensor) -> Tensor:
    return F.conv1d(rectified(layer.norm, states), layer.convolution.weight, padding=1)


def halved(states: Tensor) -> Tensor:
    return torch.stack([states[:, i : i + 2].amax(1) for i in range(0, states.shape[1], 2)], dim=1)


def written_out(model: DenseNetText, vectors: Tensor) -> Tensor:
    """The vector of one text (n, WIDTH)."""
    states = F.conv1d(vectors.T, model.first.weight, padding=1)
    for number, block in enumerate(model.blocks):
        seen = [states]
        for layer in block.layers:
            seen.append(layer_of(layer, torch.cat(seen)))
        states = seen[-1]
        last = number == len(model.blocks) - 1
        states = halved(rectified(model.norm, states) if last else layer_of(model.transitions[number], states))
    return states.mean(1)


def test_each_text_of_a_batch_is_the_text_written_out_block_by_block():
    """A layer that misses one before it, a norm behind its convolution, other pooling or
    padding that is read would each show here."""
    model, batch = model_of().double(), texts((21, 9, 4, 1))
    batch = batch._replace(vectors=batch.vectors.double())
    assert_each_alone(model(batch), partial(written_out, model), batch)


def test_layer_j_reads_the_input_and_all_maps_before_it():
    """Its width is w0 + (j - 1) k, and the maps of the last layer alone leave the block."""
    block = DenseBlock(7, 3, 4)
    assert [layer.convolution.in_channels for layer in block.layers] == [7, 10, 13, 16]
    assert block(torch.randn(2, 7, 5), torch.ones(2, 5, dtype=torch.bool)).shape == (2, 3, 5)


def test_two_neighbours_become_one_and_padding_none():
    mask = mask_of([5, 2])
    states = poisoned(torch.arange(10.0).view(2, 5, 1) - 20, mask).transpose(1, 2)
    pooled, half = halve(states, mask)
    assert pooled[:, 0].tolist() == [[-19, -17, -16], [-14, 0, 0]]
    assert half.tolist() == [[True] * 3, [True, False, False]]


def test_filters_start_glorot_uniform():
    for module in DenseNetText(300).modules():
        if isinstance(module, nn.Conv1d):
            limit = math.sqrt(6 / (3 * (module.in_channels + module.out_channels)))
            assert 0.97 * limit < module.weight.abs().max() <= limit and module.bias is None


def test_the_papers_sizes():
    model = DenseNetText(300)
    assert [len(block.layers) for block in model.blocks] == [4] * 4
    assert [block.layers[-1].convolution.weight.shape for block in model.blocks] == [
        (64, 256, 3),
        (128, 512, 3),
        (256, 1024, 3),
        (512, 2048, 3),
    ]
    assert model.size == 512


@pytest.mark.parametrize(("id", "column"), [("densenet_text_word", "words"), ("densenet_text_char", "characters")])
def test_each_id_reads_its_units(id: str, column: str):
    entry = registry.entry("architectures", id)
    assert type(registry.load(entry).view).__name__.lower() == column and not entry.hyperparameters


def test_characters_are_one_hot_and_long_texts_are_cut():
    view = DenseNetCharacters.view
    model = small(DenseNetCharacters, view.width, **SMALL, longest=12)
    batch = view.collate(view.encode(["a film that is long", "a film that is short", "a film tha"]), np.arange(3))
    found = model(batch)
    assert_same(found[0], found[1])
    assert not torch.allclose(found[0], found[2], rtol=1e-2)
    rows = torch.stack([F.one_hot(ids, view.width + 1)[:, 1:].float() for ids in batch.ids[:1, :12]])
    one_hot = DenseNetText.forward(model, batch._replace(vectors=rows, mask=batch.mask[:1, :12]))
    assert_same(one_hot, found[:1], rtol=1e-4, atol=1e-3)
    assert view.length is None and not view.reverse and DenseNetCharacters(view.width).longest == 1014

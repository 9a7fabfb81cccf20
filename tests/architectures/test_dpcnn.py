"""The mechanism of the deep pyramid CNN: linear regions, pre-activated blocks with shortcuts, half
the positions after each."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from architectures.convolutional.dpcnn import DeepPyramidCNN
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH = 4

batch = partial(random_texts, seed=3, width=WIDTH)


def model_of(**settings) -> DeepPyramidCNN:
    """A model with weights so large that every layer shows in the result."""
    return small(DeepPyramidCNN, WIDTH, stretch=30.0, **{"maps": 3, "blocks": 4} | settings)


def written_out(model: DeepPyramidCNN, vectors: torch.Tensor, window: int = 3) -> torch.Tensor:
    """The vector of one text (n, width), position by position: a linear map of the sum of each
    region's words, then blocks over 3 positions."""
    reach = window // 2
    bags = [vectors[max(0, i - reach) : i + reach + 1].sum(0) for i in range(len(vectors))]
    states = [model.regions.weight[:, :, 0] @ bag + model.regions.bias for bag in bags]
    for number, block in enumerate(model.blocks):
        if number:
            states = [torch.stack(states[max(0, i - 1) : i + 2]).amax(0) for i in range(0, len(states), 2)]
        first, second = block.convolutions
        inner = convolution(first, [state.clamp(min=0) for state in states] if number else states, 1, 1)
        inner = convolution(second, [state.clamp(min=0) for state in inner], 1, 1)
        states = [z + f for z, f in zip(states, inner, strict=True)]
    return torch.stack(states).amax(0)


@pytest.mark.parametrize("window", [3, 5])
def test_each_text_of_a_batch_is_the_text_written_out_position_by_position(window):
    """ReLU after the convolutions or on the regions, no shortcut, other pooling, or padding that
    reaches a window would each show here."""
    model = model_of(window=window)
    texts = batch((21, 8, 5, 1))
    assert_each_alone(model(texts), partial(written_out, model, window=window), texts, rtol=1e-4, atol=1e-5)


def test_a_region_is_a_bag_of_words():
    """The authors' regions have one weight for each word, wherever in the region it stands."""
    model = model_of()
    vectors = torch.randn(1, 3, WIDTH)
    middle = model.regions(model.bags(vectors))[0, :, 1]
    assert_same(model.regions(model.bags(vectors.flip(1)))[0, :, 1], middle)
    torch.testing.assert_close(model.bags(vectors)[0, :, 1], vectors[0].sum(0))


def test_half_of_the_features_are_dropped_in_training():
    model, texts = model_of(maps=200), batch((12, 9))
    kept, trained = model(texts), model.train()(texts)
    assert kept.all() and 0.4 < (trained == 0).float().mean() < 0.6
    assert_same(trained[trained != 0], 2 * kept[trained != 0])


def test_each_block_reads_half_as_many_positions_as_the_one_before():
    model, seen = model_of(blocks=7), []
    for block in model.blocks:
        block.register_forward_hook(
            lambda block, inputs, output: seen.append((inputs[0].shape[-1], inputs[1].sum(1).tolist()))
        )
    model(batch((100, 9)))
    assert [length for length, _ in seen] == [100, 50, 25, 13, 7, 4, 2]
    assert [own for _, own in seen] == [[100, 9], [50, 5], [25, 3], [13, 2], [7, 1], [4, 1], [2, 1]]


def test_without_weights_in_the_blocks_the_regions_pass_through_the_shortcuts():
    """Zero convolutions leave the maximum of the linear regions, negative ones too: nothing bends
    what the shortcut carries."""
    model, texts = model_of(), batch([12])
    with torch.no_grad():
        for parameter in model.blocks.parameters():
            parameter.zero_()
    bags = F.avg_pool1d(texts.vectors.transpose(1, 2), 3, stride=1, padding=1) * 3
    regions = F.conv1d(bags, model.regions.weight, model.regions.bias)
    torch.testing.assert_close(model(texts), regions.amax(2))


def test_fifteen_weight_layers_of_one_width_and_no_batch_norm():
    """One for regions and two in each of seven blocks; with the one that scores the classes beside
    them, as the paper counts."""
    model = DeepPyramidCNN(300)
    layers = [module for module in model.modules() if isinstance(module, nn.Conv1d)]
    assert len(layers) == 15 and {layer.out_channels for layer in layers} == {250}
    assert all(isinstance(module, nn.Conv1d | nn.Dropout) for module in model.modules() if not list(module.children()))
    for layer in layers:
        assert 0.009 < layer.weight.std() < 0.011 and not layer.bias.any()
        assert layer.weight.abs().max() > 0.03, "a Gaussian has tails, a uniform distribution none"

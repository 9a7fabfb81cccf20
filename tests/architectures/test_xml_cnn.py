"""The mechanism of XML-CNN: a maximum in each part of the text, and a bottleneck below the
labels."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.convolutional.xml_cnn import XMLCNN
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH = 4

texts = partial(random_texts, seed=1, width=WIDTH)
model_of = partial(small, XMLCNN, WIDTH, maps=3, windows=(1, 3), bottleneck=6)


def written_out(model: XMLCNN, vectors: Tensor) -> Tensor:
    """The vector of one text: maps of its windows, the maximum of each part, the hidden layer."""
    pooled = []
    for layer in model.convolutions:
        short = max(0, layer.kernel_size[0] - len(vectors))
        maps = torch.stack(convolution(layer, vectors, right=short)).clamp(min=0)
        n, p = len(maps), model.parts
        pooled += [maps[math.floor(k * n / p) : math.ceil((k + 1) * n / p)].amax(0) for k in range(p)]
    return (model.bottleneck.weight @ torch.cat(pooled) + model.bottleneck.bias).clamp(min=0)


@pytest.mark.parametrize("parts", [1, 3, 4])
def test_a_text_is_the_maxima_of_its_parts_through_the_bottleneck(parts):
    """Also where the windows are not divisible by the parts, and where there are fewer of them. One
    part is the maximum over all of the text."""
    model, batch = model_of(parts=parts), texts((9, 5, 3, 1))
    assert_each_alone(model(batch), partial(written_out, model), batch)


def test_where_a_feature_stands_counts_with_several_parts_and_not_with_one():
    """Halves in each other's place have the same maximum over all; filters see one word here."""
    batch = texts([8])
    swapped = batch._replace(vectors=batch.vectors.roll(4, dims=1))
    one, two = (small(XMLCNN, WIDTH, maps=3, windows=(1,), bottleneck=6, parts=parts) for parts in (1, 2))
    assert_same(one(swapped), one(batch))
    assert not torch.allclose(two(swapped), two(batch), atol=1e-3)


def test_windows_are_of_two_four_and_eight_words_and_the_hidden_layer_is_narrow():
    model = XMLCNN(300)
    assert [layer.kernel_size[0] for layer in model.convolutions] == [2, 4, 8]
    assert model.bottleneck.weight.shape == (512, 3 * 128 * 8) and model.size == 512


def test_half_of_the_hidden_layer_is_dropped_in_training():
    model = small(XMLCNN, WIDTH, maps=3, bottleneck=400).train()
    with torch.no_grad():
        model.bottleneck.bias.fill_(999.0)
    assert 0.4 < (model(texts([6])) == 0).float().mean() < 0.6

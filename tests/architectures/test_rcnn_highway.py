"""The mechanism of the RCNN with highway layers: contexts beside each word, a gate at each
position, then convolutions."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.hybrid.rcnn_highway import HighwayRCNN
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution

WIDTH, CONTEXT = 4, 3

texts = partial(random_texts, seed=1, width=WIDTH)
model_of = partial(small, HighwayRCNN, WIDTH, context=CONTEXT, maps=5, windows=(2, 3))


def joined(model: HighwayRCNN, vectors: Tensor) -> list[Tensor]:
    """[c_l; e; c_r] of each word of a text."""
    n = len(vectors)
    left, right = [model.left.start] + [None] * (n - 1), [None] * (n - 1) + [model.right.start]
    for i in range(1, n):
        layer = model.left.recurrence
        left[i] = torch.tanh(layer.weight_hh_l0 @ left[i - 1] + layer.weight_ih_l0 @ vectors[i - 1])
    for i in range(n - 2, -1, -1):
        layer = model.right.recurrence
        right[i] = torch.tanh(layer.weight_hh_l0 @ right[i + 1] + layer.weight_ih_l0 @ vectors[i + 1])
    return [torch.cat([left[i], vectors[i], right[i]]) for i in range(n)]


def maxima(model: HighwayRCNN, positions: list[Tensor]) -> Tensor:
    """The largest ReLU of each map over the windows inside the text."""
    pooled = []
    for layer in model.features.convolutions:
        short = max(0, layer.kernel_size[0] - len(positions))
        pooled.append(torch.stack(convolution(layer, positions, right=short)).clamp(min=0).amax(0))
    return torch.cat(pooled)


def written_out(model: HighwayRCNN, vectors: Tensor) -> Tensor:
    """The vector of one text, layer by layer."""
    positions = joined(model, vectors)
    for transform, gate in zip(model.highway.transforms, model.highway.gates, strict=True):
        gates = [torch.sigmoid(gate.weight @ x + gate.bias) for x in positions]
        made = [(transform.weight @ x + transform.bias).clamp(min=0) for x in positions]
        positions = [t * h + (1 - t) * x for t, h, x in zip(gates, made, positions, strict=True)]
    return maxima(model, positions)


def test_a_batch_is_each_text_written_out_word_by_word():
    """Padding, texts shorter than a window, and the contexts' learned ends included."""
    for layers in (1, 2):
        model, batch = model_of(layers=layers), texts((7, 4, 1, 2))
        assert len(model.highway.transforms) == layers
        assert_each_alone(model(batch), partial(written_out, model), batch)


def test_closed_gates_pass_the_contexts_through():
    """The convolutions then read [c_l; e; c_r] as it is: the gate stands between the two stages."""
    model, batch = model_of(), texts((6, 3))
    with torch.no_grad():
        model.highway.gates[0].weight.zero_()
        model.highway.gates[0].bias.fill_(-200.0)
    assert_each_alone(model(batch), lambda vectors: maxima(model, joined(model, vectors)), batch)


def test_it_starts_with_one_highway_layer_whose_gates_are_half_open():
    model = HighwayRCNN(10)
    (gate,) = model.highway.gates
    assert gate.weight.shape == (210, 210) and gate.bias.abs().max() < 0.1


def test_half_of_the_features_are_dropped_in_training():
    model = small(HighwayRCNN, WIDTH, maps=100).train()
    with torch.no_grad():
        for layer in model.features.convolutions:
            layer.bias.fill_(99.0)
    assert 0.4 < (model(texts([6])) == 0).float().mean() < 0.6

"""The mechanism of the densely connected CNN: all scales reach every convolution, and each position
weighs them by attention."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.attention.dense_msa_cnn import DenseMultiScaleCNN, ScaleAttention
from architectures.convolutional.vdcnn import TemporalBatchNorm
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.same import assert_same

WIDTH, MAPS = 4, 3

texts = partial(random_texts, seed=1, width=WIDTH)


def model_of(**settings) -> DenseMultiScaleCNN:
    """A small model that has seen texts, so that its batch norms are far from the identity."""
    model = small(DenseMultiScaleCNN, WIDTH, **{"maps": MAPS, "hidden": 5} | settings).train()
    for _ in range(20):
        model(texts((9, 6, 4)))
    return model.eval()


def normed(norm: TemporalBatchNorm, vector: Tensor) -> Tensor:
    """ReLU of a vector normalised by what the layer has seen."""
    scaled = (vector - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    return (scaled * norm.weight + norm.bias).clamp(min=0)


def near(vectors: list[Tensor]) -> list[Tensor]:
    """The mean of the vectors around every second one."""
    return [torch.stack(vectors[max(0, i - 1) : i + 2]).mean(0) for i in range(0, len(vectors), 2)]


def scales(model: DenseMultiScaleCNN, vectors: Tensor) -> list[list[Tensor]]:
    """The scales at each position of one text, the coarsest first."""
    states, features = list(vectors), []
    for layer, norm in zip(model.transforms, model.transform_norms, strict=True):
        features.append([layer.weight[:, :, 0] @ state + layer.bias for state in states])
        states = [normed(norm, feature) for feature in features[-1]]
    joined = [torch.cat(position) for position in zip(*features, strict=True)]
    for number, (layer, norm) in enumerate(zip(model.convolutions, model.norms, strict=True)):
        if number:
            joined = states = near(states)
        found = F.conv1d(torch.stack(states, dim=1), layer.weight, layer.bias, padding=1).unbind(1)
        joined = [torch.cat(pair) for pair in zip(found, joined, strict=True)]
        states = [normed(norm, position) for position in joined]
    positions = []
    for state in states:
        for layer, norm in zip(model.bottlenecks, model.bottleneck_norms, strict=True):
            own = zip(layer.weight[:, :, 0].split(MAPS), layer.bias.split(MAPS), state.split(MAPS), strict=True)
            state = normed(norm, torch.cat([weight @ scale + bias for weight, bias, scale in own]))
        positions.append(list(state.split(MAPS)))
    return positions


def written_out(model: DenseMultiScaleCNN, vectors: Tensor) -> Tensor:
    """The vector of one text: scales summed by their weights, the maximum, a linear layer."""
    first, second = model.attention.first, model.attention.second
    attended = []
    for position in scales(model, vectors):
        numbers = torch.stack([scale.sum() for scale in position])
        hidden = (first.weight @ numbers + first.bias).clamp(min=0)
        scores = second.weight @ hidden + second.bias
        weights = (scores - scores.max()).exp()
        attended.append(sum(w * scale for w, scale in zip(weights / weights.sum(), position, strict=True)))
    return model.dense.weight @ torch.stack(attended).amax(0) + model.dense.bias


@pytest.mark.parametrize("settings", [{}, {"transforms": 1, "convolutions": 2, "bottlenecks": 1}])
def test_a_text_is_its_scales_weighed_at_each_position(settings):
    """A scale that a convolution does not read, another order of pooling and norm, one weight for
    all positions or padding that any layer reads would each show here. In double precision, since
    norm after norm blows up what is nearly constant."""
    model, batch = model_of(**settings).double(), texts((17, 9, 4, 1))
    batch = batch._replace(vectors=batch.vectors.double())
    assert_each_alone(model(batch), partial(written_out, model), batch)


def test_weights_over_the_scales_sum_to_one_at_each_position():
    attention = small(ScaleAttention, 3, 5)
    features = torch.randn(2, 6, 4)
    weights = attention.weights(features)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4))
    assert weights.std(dim=1).max() > 0.01, "each position has weights of its own"
    swapped = features.clone()
    swapped[:, [0, 1]] = features[:, [1, 0]]
    assert_same(attention.weights(swapped), weights)


def test_eight_scales_of_64_maps_and_each_convolution_reads_all_below_it():
    model = DenseMultiScaleCNN(300)
    assert [layer.in_channels for layer in model.convolutions] == [64, 256, 320, 384, 448]
    assert [layer.kernel_size[0] for layer in (*model.transforms, *model.convolutions)] == [1] * 3 + [3] * 5
    assert [layer.groups for layer in model.bottlenecks] == [8] * 3
    for layer in model.modules():
        if isinstance(layer, nn.Conv1d):
            fan_in = layer.weight[0].numel()
            assert layer.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.1) and not layer.bias.any()
    assert model.dense.weight.shape == (64, 64) and model.vectors == "fixed"


def test_the_penalty_is_the_sum_of_the_absolute_weights_of_all_layers_but_norms():
    model = model_of(sparsity=0.5)
    weights = [weight for name, weight in model.named_parameters() if "norm" not in name]
    assert len(weights) == 2 * (3 + 5 + 3 + 2 + 1)
    expected = sum(abs(number) for weight in weights for number in weight.flatten().tolist())
    assert model.auxiliary_loss().item() == pytest.approx(0.5 * expected, rel=1e-4)


def test_dropout_acts_before_and_behind_the_last_layer():
    model, seen = small(DenseMultiScaleCNN, WIDTH, maps=50, hidden=400, dropout=0.5).train(), {}
    model.dense.register_forward_hook(lambda layer, inputs, output: seen.update(read=inputs[0], given=output))
    model.dropout.p = 0.0
    whole = model(texts((9, 6)))
    positive = seen["read"] > 0
    model.dropout.p = 0.5
    found = model(texts((9, 6)))
    assert 0.3 < (seen["read"][positive] == 0).float().mean() < 0.7
    assert whole.all() and 0.4 < (found == 0).float().mean() < 0.6
    kept = found != 0
    assert_same(found[kept], 2 * seen["given"][kept])
    assert DenseMultiScaleCNN(WIDTH).dropout.p == 0.7

"""The mechanism of highway networks: a gate that lets a vector pass each of many layers."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.hybrid.highway import HighwayNetwork
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.same import assert_same

WIDTH, HIDDEN = 3, 5

texts = partial(random_texts, (6, 3, 1), 1, WIDTH)


def model_of(layers: int = 3) -> HighwayNetwork:
    return small(HighwayNetwork, WIDTH, hidden=HIDDEN, layers=layers)


def written_out(model: HighwayNetwork, vectors: Tensor) -> Tensor:
    """The vector of one text by equations 2 and 3 of the paper, number by number."""
    mean = sum(vectors) / len(vectors)
    x = (model.widen.weight @ mean + model.widen.bias).clamp(min=0)
    for transform, gate in zip(model.highway.transforms, model.highway.gates, strict=True):
        h = (transform.weight @ x + transform.bias).clamp(min=0)
        t = 1 / (1 + torch.exp(-(gate.weight @ x + gate.bias)))
        x = h * t + x * (1 - t)
    return x


def test_a_text_is_its_mean_vector_through_gated_layers():
    """Gates in place of transforms, a sum for the mean, or padding in it would show here."""
    model, batch = model_of(), texts()
    assert len(model.highway.transforms) == 3
    assert_each_alone(model(batch), partial(written_out, model), batch)


def test_fifty_layers_with_shut_gates_are_the_identity():
    """Which is why so deep a network can be trained at all."""
    model, batch = model_of(layers=50), texts()
    with torch.no_grad():
        for gate in model.highway.gates:
            gate.weight.zero_()
            gate.bias.fill_(-200.0)
    means = torch.stack([text[real].mean(0) for text, real in zip(batch.vectors, batch.mask, strict=True)])
    assert_same(model(batch), (means @ model.widen.weight.T + model.widen.bias).clamp(min=0))


def test_gates_start_nearly_shut_and_transforms_as_he_et_al_say():
    """PyTorch's weights are smaller by a root of six: after 50 layers nothing of what they made
    would be left."""
    model = HighwayNetwork(300)
    assert all((gate.bias == -2.0).all() for gate in model.highway.gates)
    weights = torch.stack([layer.weight for layer in model.highway.transforms])
    assert weights.shape == (50, 50, 50) and 0.19 < weights.std() < 0.21
    assert 0.075 < model.widen.weight.std() < 0.09
    assert not any(layer.bias.any() for layer in (model.widen, *model.highway.transforms))


def test_the_order_of_words_does_not_count():
    model, batch = model_of(), random_texts([6], 1, WIDTH)
    turned = batch._replace(vectors=batch.vectors.flip(1))
    assert_same(model(turned), model(batch))

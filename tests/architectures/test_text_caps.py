"""The mechanism of text capsules: gated windows, capsules whose kernel spans the text, and votes
that are summed as they are."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.capsule.text_caps import StaticRouting, TextCapsules
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH, CLASSES, CAPSULES, SIZE = 4, 3, 2, 3

texts = partial(random_texts, seed=1, width=WIDTH)


def model_of(**settings) -> TextCapsules:
    """A small model that has seen texts, so that its batch norms are far from the identity."""
    sizes = {"maps": 5, "capsules": CAPSULES, "size": SIZE, "class_size": 4, "dropout": 0.0, "longest": 12}
    model = small(TextCapsules, WIDTH, CLASSES, **sizes | settings).train()
    for _ in range(20):
        model(texts((9, 6, 4)))
    return model.eval()


def normed(norm: nn.BatchNorm1d, vector: Tensor) -> Tensor:
    return (vector - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


def squashed(vector: Tensor) -> Tensor:
    """The vector with its length s turned to s^2 / (1 + s^2)."""
    square = (vector * vector).sum()
    return square / (1 + square) * vector / square.sqrt()


def written_out(model: TextCapsules, vectors: Tensor) -> Tensor:
    """The lengths of the class capsules of one text."""
    short = max(0, 3 - len(vectors))
    gates = [normed(model.gate_norm, v) for v in convolution(model.gate, vectors, right=short)]
    features = [normed(model.features_norm, v) for v in convolution(model.features, vectors, right=short)]
    gates = [torch.where(g > 0, g, g.exp() - 1) for g in gates]
    total = sum((g * v) @ kernel for g, v, kernel in zip(gates, features, model.kernel, strict=False))
    capsules = [normed(model.norm, u).clamp(min=0) for u in total.split(SIZE)]
    votes = model.routing.transformations
    parents = [squashed(sum(w @ u for w, u in zip(votes[j], capsules, strict=True))) for j in range(CLASSES)]
    return torch.stack([parent.square().sum().sqrt() for parent in parents])


def test_a_text_has_the_lengths_of_its_summed_and_squashed_votes():
    """Coupling coefficients, a kernel that is one for all positions, an ungated convolution or
    padding that is read would each show here. The last text is shorter than a window."""
    model, batch = model_of(), texts((9, 5, 3, 1))
    assert_each_alone(model(batch), partial(written_out, model), batch, rtol=1e-4, atol=1e-5)


def test_static_routing_is_one_pass_that_all_children_share():
    """Votes alike or not, each counts once: twice the child is twice the sum."""
    routing = small(StaticRouting, 2, 3, 4, 5)
    children = torch.randn(1, 2, 3)
    votes = torch.einsum("jikd,bid->bjik", routing.transformations, children)
    expected = torch.stack([squashed(votes[0, j, 0] + votes[0, j, 1]) for j in range(4)])
    assert_same(routing(children)[0], expected)
    unit = torch.zeros(1, 2, 3)
    unit[0, 0, 0] = 1
    with torch.no_grad():
        routing.transformations.zero_()
        routing.transformations[:, 0, 1, 0] = 1
    assert routing(unit)[0].norm(dim=-1).tolist() == pytest.approx([0.5] * 4), "a sum of length one is halved"


def test_a_gate_of_zero_shuts_its_feature_out():
    model, batch = model_of(), texts((6, 4))
    with torch.no_grad():
        model.gate_norm.weight[2] = model.gate_norm.bias[2] = 0
    features = model.gated(batch.vectors, batch.mask)
    assert not features[:, 2].any() and features[0, [0, 1, 3, 4]].all()
    assert not features[1, :, 2:].any(), "the windows behind the second text"


def test_where_a_window_stands_counts_and_long_texts_are_cut():
    model, batch = model_of(longest=4), texts([9])
    turned = batch._replace(vectors=batch.vectors.flip(1))
    assert not torch.allclose(model(turned), model(batch), rtol=1e-2)
    assert_same(model(texts([9])._replace(vectors=batch.vectors * 1)), model(batch))
    changed = batch.vectors.clone()
    changed[:, 6:] += 3
    assert_same(model(batch._replace(vectors=changed)), model(batch))
    changed[:, 5] += 3
    assert not torch.allclose(model(batch._replace(vectors=changed)), model(batch), rtol=1e-2)


def test_dropout_acts_on_words_on_features_and_on_capsules():
    model = small(TextCapsules, 40, CLASSES, maps=50, capsules=5, size=20, longest=12, dropout=0.5).train()
    seen = []
    model.dropout.register_forward_hook(lambda layer, inputs, output: seen.append((inputs[0].shape, inputs[0], output)))
    model(random_texts([6, 6], 1, 40))
    assert [tuple(shape) for shape, *_ in seen] == [(2, 6, 40), (2, 50, 4), (2, 5, 20)]
    for _, before, after in seen:
        assert 0.3 < (after[before != 0] == 0).float().mean() < 0.7


def test_trained_by_the_margin_loss():
    """Hand-worked: 0.6 for the label is 0.3 short, 0.4 for another 0.3 too long, of which half
    counts."""
    scores = torch.tensor([[0.6, 0.4, 0.05], [0.95, 0.1, 0.0]])
    assert model_of().objective(scores, torch.tensor([0, 0])).item() == pytest.approx((0.09 + 0.5 * 0.09) / 2)


def test_the_papers_sizes():
    model = TextCapsules(300, 2)
    assert model.gate.weight.shape == model.features.weight.shape == (256, 300, 3)
    assert model.kernel.shape == (200, 256, 60) and model.routing.transformations.shape == (2, 6, 16, 10)
    assert model.gate.bias is None and model.dropout.p == 0.1
    assert model.kernel.abs().max().item() == pytest.approx((6 / (200 * 316)) ** 0.5, rel=0.01)
    assert model.routing.transformations.abs().max().item() == pytest.approx((6 / (6 * 26)) ** 0.5, rel=0.05)

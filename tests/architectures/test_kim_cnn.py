"""The mechanism of Kim's CNN: maps over windows, their maximum over time, two channels under one
set of filters, bounded softmax rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from architectures.convolutional.kim_cnn import KimCNN
from harness import registry
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.training.model import Model, build
from harness.views.words import WordBatch, Words
from tests.support.batches import POISON, assert_each_alone, mask_of
from tests.support.models import small
from tests.support.oracles import convolution

WIDTH = 3


def batch(*lengths: int, padding: float = 0.0) -> WordBatch:
    """Random texts of these lengths in two channels."""
    mask = mask_of(lengths)
    vectors, static = (torch.randn(*mask.shape, WIDTH).masked_fill(~mask[..., None], padding) for _ in range(2))
    return WordBatch(mask.long(), mask, mask.sum(1), vectors, static)


def written_out(model: KimCNN, *channels: torch.Tensor) -> torch.Tensor:
    """The features of one text; ``channels`` are its vectors (n, width), added before the ReLU."""
    features = []
    for layer, bias in zip(model.convolutions, model.bias, strict=True):
        short = max(0, layer.kernel_size[0] - len(channels[0]))
        windows = zip(*(convolution(layer, vectors, right=short) for vectors in channels), strict=True)
        features.append(torch.stack([(sum(parts) + bias).clamp(min=0) for parts in windows]).amax(0))
    return torch.cat(features)


def model_of(**settings) -> KimCNN:
    """A model whose filters are as large as the vectors, and whose biases, which start at zero,
    show in the result."""
    model = small(KimCNN, WIDTH, stretch=100.0, **{"maps": 4} | settings)
    torch.nn.init.normal_(model.bias)
    return model


@pytest.mark.parametrize(("length", "padding"), [(9, POISON), (5, POISON), (4, 0.0), (1, 0.0)])
def test_each_feature_is_a_maps_largest_value_within_the_text(length, padding):
    """Windows that reach into padding change a text's features with its batch; only a text shorter
    than its window has one that does."""
    model = model_of()
    texts = batch(9, length, padding=padding)
    assert_each_alone(model(texts), partial(written_out, model), texts)


def test_a_text_shorter_than_every_window_is_lengthened_with_zeros_alone_too():
    model = model_of()
    texts = batch(2)
    assert_each_alone(model(texts), partial(written_out, model), texts)


def test_two_channels_pass_the_same_filters_and_are_added_before_the_nonlinearity():
    model, single = model_of(channels="multichannel"), model_of()
    assert [p.shape for p in model.parameters()] == [p.shape for p in single.parameters()]
    texts = batch(8, 4)
    assert_each_alone(model(texts), partial(written_out, model), texts, (texts.static, texts.mask))


def whole_model(id: str) -> tuple[Model, WordBatch]:
    """The variant of this name with given word vectors and its softmax layer, and a batch of two
    texts."""
    torch.manual_seed(0)
    texts = ["a b c d e f", "b c a"]
    entry, view, target = registry.entry("architectures", id), Words(min_count=1), ClassTarget()
    view.fit(texts)
    target.fit([{"label": "x"}, {"label": "y"}])
    sizes = entry.hyperparameters | {"maps": 4}
    model = build(registry.load(entry), problem("classify"), sizes, view, target, 6, torch.randn(view.width, 6))
    return model, view.collate(view.encode(texts), np.arange(2))


VARIANTS = {
    "kim_cnn_rand": "random",
    "kim_cnn_static": "static",
    "kim_cnn_nonstatic": "tuned",
    "kim_cnn_multichannel": "multichannel",
}
MOVED = {
    "random": {"tuned": True},
    "static": {"tuned": False},
    "tuned": {"tuned": True},
    "multichannel": {"tuned": True, "static": False},
}
"""The tables of word vectors that each use has, and whether a step moves them."""


@pytest.mark.parametrize(("id", "use"), VARIANTS.items())
def test_a_step_moves_the_vectors_that_are_tuned_and_no_others(id, use):
    model, texts = whole_model(id)
    assert model.encoder.vectors == use
    table = model.table
    before = {name: vectors.weight.clone() for name, vectors in table.named_children()}
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1.0)
    torch.nn.functional.cross_entropy(model({"text": texts}), torch.tensor([0, 1])).backward()
    optimizer.step()
    moved = {name: not torch.equal(vectors.weight, before[name]) for name, vectors in table.named_children()}
    assert moved == MOVED[use]


@pytest.mark.parametrize("id", VARIANTS)
def test_only_softmax_rows_that_answer_with_more_than_a_norm_of_one_and_a_half_are_shortened(id):
    """The paper's limit of 3 is for rows that are halved when they answer; here it is the features
    that are doubled in training."""
    model, _ = whole_model(id)
    weight = model.head.output.weight
    with torch.no_grad():
        weight[0] *= 3 / weight[0].norm()
        weight[1] *= 1.45 / weight[1].norm()
        for convolution in model.encoder.convolutions:
            convolution.weight.mul_(100)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    model.head.constrain(model.encoder)
    torch.testing.assert_close(weight[0], before["head.output.weight"][0] / 2)
    assert torch.equal(weight[1], before["head.output.weight"][1])
    assert all(
        torch.equal(parameter, before[name])
        for name, parameter in model.named_parameters()
        if name != "head.output.weight"
    )


@pytest.mark.parametrize(("dropout", "limit"), [(0.0, 3.0), (0.2, 2.4), (0.5, 1.5)])
def test_the_limit_is_that_of_rows_as_they_answer(dropout, limit):
    """The paper's rows are multiplied by the share of features that training keeps."""
    assert KimCNN(WIDTH, dropout=dropout).head_max_norm == pytest.approx(limit)


def test_filters_start_uniform_within_a_hundredth_and_biases_at_zero():
    model = KimCNN(WIDTH)
    for layer in model.convolutions:
        sizes = layer.weight.detach().abs()
        assert 0.0098 < sizes.max() <= 0.01 and sizes.mean() == pytest.approx(0.005, rel=0.1)
    assert not model.bias.any()


def test_a_map_has_one_bias_which_both_channels_share():
    """With that of the convolution beside it, a map of two channels would have its bias twice."""
    names = {name for name, _ in KimCNN(WIDTH, windows=(2, 3)).named_parameters()}
    assert names == {"convolutions.0.weight", "convolutions.1.weight", "bias"}


def test_half_of_the_features_are_dropped_in_training():
    model = KimCNN(WIDTH, maps=100)
    with torch.no_grad():
        model.bias.fill_(5.0)
    torch.manual_seed(0)
    assert 0.4 < (model.train()(batch(6)) == 0).float().mean() < 0.6

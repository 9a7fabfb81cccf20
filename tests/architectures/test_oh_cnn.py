"""The mechanism of the one-hot CNNs: weights for each word at each place of a region, or for each
word of it as a bag, with no word vectors below."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.one_hot import SparseLinear, square_loss
from architectures.convolutional.oh_cnn import OneHotCNN
from harness import registry
from harness.running import grid
from harness.views.regions import Regions
from tests.support.models import small
from tests.support.pairs import dense, dropped, inputs_of, shipped
from tests.support.same import assert_same

IDS = ("oh_cnn", "oh_cnn_bow")
TRAIN = "the cat saw a dog and the dog saw a bird"
TEXTS = [TRAIN, "dog", "a bird saw the zebra and the cat saw a zebra yak the bird", "zebra"]
CLASSES, UNITS = 3, 6


def view_of(id: str, **options) -> Regions:
    """The view that an id reads, fitted on a few words."""
    entry = registry.entry("architectures", id)
    view = registry.load(entry).reads("text", grid.hyperparameters(entry) | options)
    view.fit([TRAIN])
    return view


def model_of(id: str, view: Regions, **options) -> OneHotCNN:
    return shipped(id, view.width, CLASSES, stretch=60.0, **{"units": UNITS} | options)


def read(view: Regions, texts: list[str]):
    return view.collate(view.encode(texts), np.arange(len(texts)))


def vectors_of(view: Regions, text: str, region: int, stride: int, bag: bool) -> list[Tensor]:
    """The dense vectors of a text's regions, without those that say nothing new."""
    words = view.vocabulary.words
    known = [torch.tensor([float(word == other) for other in words]) for word in text.split()]
    none = [torch.zeros(len(words))] * (region - 1)
    framed, found, before = none + known + none, [], None
    for start in range(0, len(framed) - region + 1, stride):
        parts = framed[start : start + region]
        vector = torch.stack(parts).amax(0) if bag else torch.cat(parts)
        if vector.any() and not (bag and before is not None and vector.equal(before)):
            found.append(vector)
        before = vector
    return found or [torch.zeros(len(words) * (1 if bag else region))]


def written_out(model: OneHotCNN, vectors: list[Tensor], pooling: str, parts: int) -> Tensor:
    """The scores of a text from its dense vectors, unit by unit."""
    weight = model.regions.columns.weight[1:].T  # a row for each unit, a column for each one-hot place
    states = [(weight @ x + model.regions.bias).clamp(min=0) for x in vectors]
    share = math.ceil(len(states) / parts)
    pooled = []
    for part in range(parts):
        own = states[part * share : (part + 1) * share]
        z = torch.zeros(UNITS)
        if own:
            z = torch.stack(own).amax(0) if pooling == "max" else sum(own) / len(own)
        pooled.append(z / (1 + z @ z).sqrt())
    return dense(model.output, torch.cat(pooled))


@pytest.mark.parametrize(
    ("id", "options", "expected"),
    [
        ("oh_cnn", {}, (3, 1, False, "max", 1)),
        ("oh_cnn", {"region": 2, "parts": 3}, (2, 1, False, "max", 3)),
        ("oh_cnn_bow", {}, (20, 2, True, "mean", 10)),
        ("oh_cnn_bow", {"region": 4, "stride": 1, "parts": 2}, (4, 1, True, "mean", 2)),
    ],
)
def test_a_batch_is_each_text_written_out_with_dense_vectors(id, options, expected):
    """An id wired to the other form, another non-linearity or pooling, parts of other lengths, no
    normalisation, or padding that is pooled would each show here."""
    view = view_of(id, **options)
    model = model_of(id, view, **options)
    region, stride, bag, pooling, parts = expected
    scores = model(read(view, TEXTS))
    for row, text in enumerate(TEXTS):
        own = written_out(model, vectors_of(view, text, region, stride, bag), pooling, parts)
        assert_same(scores[row], own, rtol=1e-4, atol=1e-4)
    assert scores.std() > 0.1


def test_a_sum_of_rows_is_the_product_with_a_dense_vector_and_has_its_gradient():
    """Place 0 stands for no word: its row neither adds anything nor learns."""
    layer = small(SparseLinear, 6, 4)
    ones = torch.tensor([[[1, 5, 0], [3, 0, 0]], [[2, 4, 5], [0, 0, 0]]])
    x = torch.tensor([[[1, 0, 0, 0, 1], [0, 0, 1, 0, 0]], [[0, 1, 0, 1, 1], [0, 0, 0, 0, 0.0]]])
    weight = layer.columns.weight.detach()[1:].T.clone().requires_grad_()
    outside = torch.randn(2, 2, 4)
    product = x @ weight.T + layer.bias.detach()
    torch.testing.assert_close(layer(ones), product)
    (product * outside).sum().backward()
    (layer(ones) * outside).sum().backward()
    assert layer.columns.weight.grad.is_sparse, "a whole gradient moves the whole vocabulary at each step"
    found = layer.columns.weight.grad.to_dense()
    torch.testing.assert_close(found[1:].T, weight.grad)
    assert not found[0].any()


def test_bags_are_blind_to_the_order_inside_a_region_and_sequences_are_not():
    one, other = "the cat saw a dog", "dog a saw cat the"
    for id, blind in (("oh_cnn_bow", True), ("oh_cnn", False)):
        view = view_of(id, region=5)
        model = model_of(id, view, region=5)
        middle = [read(view, [text]).ones[0, 2 if blind else 4] for text in (one, other)]
        first, second = (model.regions(ones[None, None]) for ones in middle)
        assert torch.allclose(first, second) == blind, id


@pytest.mark.parametrize(("id", "places"), [("oh_cnn", 3), ("oh_cnn_bow", 1)])
def test_there_is_no_matrix_of_word_vectors(id, places):
    """All weights are those of the regions, of which a sequence has one for each place."""
    view = view_of(id)
    model = model_of(id, view)
    words, parts = len(view.vocabulary.words), model.parts
    assert not view.embeds
    assert {name: tuple(parameter.shape) for name, parameter in model.named_parameters()} == {
        "regions.columns.weight": (1 + places * words, UNITS),
        "regions.bias": (UNITS,),
        "output.weight": (CLASSES, parts * UNITS),
        "output.bias": (CLASSES,),
    }


def test_the_loss_is_the_squared_distance_to_the_class():
    """By hand: ((.5 - 1)^2 + .25^2 + 0) / 2 and (0 + 0 + (3 - 1)^2) / 2."""
    scores = torch.tensor([[0.5, 0.25, 0.0], [0.0, 0.0, 3.0]])
    assert square_loss(scores, torch.tensor([0, 2])).item() == pytest.approx((0.15625 + 2.0) / 2)
    view = view_of("oh_cnn")
    assert model_of("oh_cnn", view).objective(scores, torch.tensor([0, 2])).item() == pytest.approx(1.078125)


def test_half_of_what_is_normalised_is_dropped_in_training_of_sequences():
    view = view_of("oh_cnn")
    model = model_of("oh_cnn", view, units=400).train()
    given, kept = inputs_of(model.dropout, model.output)
    model(read(view, TEXTS))
    assert 0.45 < dropped(given, kept) < 0.55
    assert given[0].norm(dim=1).max() < 1, "dropout acts on vectors that are normalised already"


def test_weights_start_small_and_biases_at_zero():
    model = OneHotCNN(500, 30)
    for weight in (model.regions.columns.weight, model.output.weight):
        assert 0.0095 < weight.std() < 0.0105 and weight.abs().max() > 0.03
    assert not model.regions.bias.any() and not model.output.bias.any()


def test_a_pooling_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="pooling='median'"):
        OneHotCNN(5, 2, pooling="median")

"""The mechanism of LEAM: words and labels in one space, cosines through a window, and labels that
must be given their own class."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.attention.leam import LabelEmbeddingAttention
from harness.objectives import collected_losses
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.training.model import build
from harness.views.words import Words
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import cosine
from tests.support.same import assert_same

WIDTH, CLASSES, WINDOW = 4, 3, 5
LENGTHS = (7, 1, 4)

texts = partial(random_texts, LENGTHS, 1, WIDTH)


def model_of(**settings) -> LabelEmbeddingAttention:
    """A model whose biases, which start at zero, show in the result."""
    sizes = {"hidden": 6, "window": WINDOW, "stretch": 5.0} | settings
    model = small(LabelEmbeddingAttention, WIDTH, CLASSES, **sizes)
    if sizes["stretch"] is not None:
        nn.init.normal_(model.bias, std=0.5)
    return model


def weights_written_out(model: LabelEmbeddingAttention, vectors: Tensor) -> list[Tensor]:
    """Attention over the words (n, width) of one text, label by label and word by word."""
    cosines = [[cosine(label, word) for word in vectors] for label in model.labels]
    taps = model.filter.weight.flatten()
    best = []
    for place in range(len(vectors)):
        near = range(place - WINDOW // 2, place + WINDOW // 2 + 1)
        scores = [
            sum(tap * row[at] for tap, at in zip(taps, near, strict=True) if 0 <= at < len(vectors)) + model.bias[k]
            for k, row in enumerate(cosines)
        ]
        best.append(max(score.clamp(min=0) for score in scores))
    total = sum(score.exp() for score in best)
    return [score.exp() / total for score in best]


def classified(model: LabelEmbeddingAttention, vector: Tensor) -> Tensor:
    """Scores of the classes of one vector, by the weights of the two layers."""
    first, second = linear_layers(model)
    return second.weight @ (first.weight @ vector + first.bias).clamp(min=0) + second.bias


def linear_layers(model: LabelEmbeddingAttention) -> list[nn.Linear]:
    """The two layers of the classifier."""
    return [layer for layer in model.classifier if isinstance(layer, nn.Linear)]


def test_a_word_weighs_as_much_as_its_neighbourhood_meets_its_best_label():
    model, words = model_of(), texts()
    for weights, vectors, length in zip(model.weights(words), words.vectors, LENGTHS, strict=True):
        expected = [weight.item() for weight in weights_written_out(model, vectors[:length])]
        assert weights.tolist() == pytest.approx(expected + [0.0] * (len(weights) - length), abs=1e-6)


def test_scores_are_those_of_the_weighted_mean_of_the_word_vectors_themselves():
    model, words = model_of(), texts()

    def scores(vectors: Tensor) -> Tensor:
        weights = weights_written_out(model, vectors)
        return classified(model, sum(weight * vector for weight, vector in zip(weights, vectors, strict=True)))

    assert_each_alone(model(words), scores, words)


def test_only_the_direction_of_words_and_labels_decides_who_is_attended_to():
    model, words = model_of(), texts()
    before = model.weights(words)
    with torch.no_grad():
        model.labels.mul_(torch.tensor([[3.0], [0.5], [20.0]]))
    torch.testing.assert_close(model.weights(words._replace(vectors=words.vectors * 7)), before)


def test_each_labels_vector_is_classified_as_its_own_class():
    """By the layers that score the texts."""
    model, words = model_of(regulariser=2.0), texts()
    with collected_losses() as terms:
        model(words)
    losses = [-classified(model, label).log_softmax(0)[number] for number, label in enumerate(model.labels)]
    assert_same(terms["regulariser"], 2.0 * sum(losses) / CLASSES)
    terms["regulariser"].backward()
    assert model.labels.grad.any() and all(parameter.grad.any() for parameter in model.classifier.parameters())
    assert model.filter.weight.grad is None


def test_an_even_window_is_refused_by_name():
    with pytest.raises(ValueError, match="leam: window=4"):
        LabelEmbeddingAttention(WIDTH, CLASSES, window=4)


def test_both_layers_of_the_classifier_read_dropped_numbers():
    """The first one sees nothing of the text when everything is dropped before it, the second
    nothing at all."""
    model, words = model_of(dropout=1.0).train(), texts()
    first, second = linear_layers(model)
    dropouts = [layer for layer in model.classifier if isinstance(layer, nn.Dropout)]
    assert_same(model(words), second.bias.expand(3, -1))
    dropouts[-1].p = 0.0
    assert_same(model(words), (second.weight @ first.bias.clamp(min=0) + second.bias).expand(3, -1))
    dropouts[0].p, dropouts[-1].p = 0.0, 1.0
    assert_same(model(words), second.bias.expand(3, -1))


def test_label_vectors_start_as_word_vectors_do():
    """Uniform within a quarter, like the vectors of unknown words beside which they are compared;
    no label is preferred at the start."""
    model = model_of(stretch=None)
    assert model.labels.abs().max() <= 0.25 and model.labels.std() > 0.1 and not model.bias.any()


def test_training_minimises_the_regulariser_too():
    """A term that no loss holds is no regulariser: labels would drift away from their classes."""
    view, target = Words(min_count=1), ClassTarget()
    view.fit(["a b c", "b d"])
    target.fit([{"label": "x"}, {"label": "y"}])
    sizes = {"hidden": 6, "window": 3, "dropout": 0.0}
    model = build(LabelEmbeddingAttention, problem("classify"), sizes, view, target, WIDTH).train()
    inputs, gold = {"text": view.collate(view.encode(["a b c", "b d"]), np.arange(2))}, torch.tensor([0, 1])
    own = torch.stack([classified(model.encoder, label) for label in model.encoder.labels])
    expected = F.cross_entropy(model(inputs), gold) + F.cross_entropy(own, gold)
    assert_same(model.loss_of(model.read(inputs), gold), expected)

"""The mechanism of LEAM: words and labels in one space, cosines through a window, and labels that
must be given their own class."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.attention.leam import LabelEmbeddingAttention
from harness.objectives import collected_losses
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import cosine

WIDTH, CLASSES, WINDOW = 4, 3, 5
LENGTHS = (7, 1, 4)

texts = partial(random_texts, LENGTHS, 1, WIDTH)


model_of = partial(small, LabelEmbeddingAttention, WIDTH, CLASSES, hidden=6, window=WINDOW, stretch=5.0)


def weights_written_out(model: LabelEmbeddingAttention, vectors: Tensor) -> list[float]:
    """Attention over the words (n, width) of one text, label by label and word by word."""
    cosines = [[cosine(label, word).item() for word in vectors] for label in model.labels]
    taps = model.filter.weight.flatten().tolist()
    best = []
    for place in range(len(vectors)):
        near = range(place - WINDOW // 2, place + WINDOW // 2 + 1)
        scores = [
            sum(tap * row[at] for tap, at in zip(taps, near, strict=True) if 0 <= at < len(vectors))
            + model.bias[k].item()
            for k, row in enumerate(cosines)
        ]
        best.append(max(max(0.0, score) for score in scores))
    total = sum(math.exp(score) for score in best)
    return [math.exp(score) / total for score in best]


def test_a_word_weighs_as_much_as_its_neighbourhood_meets_its_best_label():
    model, words = model_of(), texts()
    for weights, vectors, length in zip(model.weights(words), words.vectors, LENGTHS, strict=True):
        expected = weights_written_out(model, vectors[:length])
        assert weights.tolist() == pytest.approx(expected + [0.0] * (len(weights) - length), abs=1e-6)


def test_scores_are_those_of_the_weighted_mean_of_the_word_vectors_themselves():
    model, words = model_of(), texts()

    def scores(vectors: Tensor) -> Tensor:
        weights = weights_written_out(model, vectors)
        return model.classifier(sum(weight * vector for weight, vector in zip(weights, vectors, strict=True)))

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
    losses = [-model.classifier(label).log_softmax(0)[number] for number, label in enumerate(model.labels)]
    torch.testing.assert_close(terms["regulariser"], 2.0 * sum(losses) / CLASSES)
    terms["regulariser"].backward()
    assert model.labels.grad.any() and all(parameter.grad.any() for parameter in model.classifier.parameters())
    assert model.filter.weight.grad is None


def test_an_even_window_is_refused_by_name():
    with pytest.raises(ValueError, match="leam: window=4"):
        LabelEmbeddingAttention(WIDTH, CLASSES, window=4)

"""The mechanism of InferSent: the maximum of BiLSTM states over the real words, four joined
features, linear layers."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from tests.support.batches import assert_each_alone, random_texts
from tests.support.pairs import bilstm, dense, shipped
from tests.support.same import assert_same

WIDTH = 5
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)
model_of = partial(shipped, "infersent", WIDTH, hidden=4, layer=6)


def sentence(model: torch.nn.Module, text: Tensor) -> Tensor:
    """The largest value of each feature over the words of one text."""
    return torch.stack([max(feature) for feature in bilstm(model.encoding, text).T])


def written_out(model: torch.nn.Module, first: Tensor, second: Tensor) -> Tensor:
    """The vector of one pair: two matrices, one after the other."""
    u, v = sentence(model, first), sentence(model, second)
    one, two = (layer for layer in model.classifier if isinstance(layer, torch.nn.Linear))
    return dense(two, dense(one, torch.cat([u, v, (u - v).abs(), u * v])))


def test_a_batch_of_pairs_is_each_pair_written_out():
    """Padding in a maximum, a mean for it, a missing comparison, one direction or a non-linearity
    between the layers would each show."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, 6) and model.size == 6
    assert_each_alone(result, partial(written_out, model), first, second, rtol=1e-4, atol=1e-5)


def test_a_maximum_below_zero_stays_below_zero_in_a_padded_batch():
    """The classic mistake: padded states of zero win over features that are negative at each word,
    and a sentence's vector depends on its batch."""
    model, both = model_of(), texts((2, 6), 1)
    alone = texts((2,), 1)._replace(vectors=both.vectors[:1, :2])
    padded, single = model.sentence(both)[0], model.sentence(alone)[0]
    assert (single < -0.05).any()
    assert_same(padded, single)


def test_one_encoder_reads_both_sentences():
    """Swapping them swaps the first two of the four features and leaves the others."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    seen = []
    model.classifier.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(first, second), model(second, first)
    u, v, difference, product = seen[0].chunk(4, dim=1)
    assert_same(seen[1], torch.cat([v, u, difference, product], dim=1))


def test_the_classifier_is_linear_in_the_joined_features():
    """The authors' default has no tanh and no dropout between its layers; with one, the three
    layers would be another classifier."""
    classifier = model_of().train().classifier
    a, b = torch.randn(2, 32)
    zero = classifier(torch.zeros(32))
    assert_same(classifier(a + b) + zero, classifier(a) + classifier(b), rtol=1e-4, atol=1e-4)


def test_word_vectors_are_not_tuned():
    assert model_of().vectors == "fixed"

"""The mechanism of S2Net: TF-IDF vectors, one projection for both texts, cosine, logistic loss of
the differences of scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.siamese.s2net import S2Net
from harness.views.bag import Bag, BagBatch
from tests.support.oracles import cosine
from tests.support.pairs import shipped
from tests.support.same import assert_same

TRAIN = ["the cat sat on the mat", "The cat ran", "a mat", "a dog sat"]
"""Four texts. "the" occurs three times, in two of them; the end of text four times."""
FIRST = ["cat mat", "the dog dog sat", "zebra cat"]
SECOND = ["a cat ran on", "dog", "The mat"]


def view() -> Bag:
    fitted = S2Net.view.changed({})
    fitted.fit(TRAIN)
    return fitted


def read(*texts: str) -> BagBatch:
    fitted = view()
    return fitted.collate(fitted.encode(list(texts)), np.arange(len(texts)))


def model_of(**options) -> S2Net:
    return shipped("s2net", len(view().vocabulary), view(), dimensions=5, **options)


def tf_idf(text: str) -> Tensor:
    """The vector x of a text, a number for each row of the vocabulary."""
    training = " ".join(TRAIN).lower().split()
    words = text.lower().split()
    known = view().vocabulary.words
    return torch.tensor(
        [0.0, 0.0]
        + [
            words.count(word) * math.log(len(TRAIN) / training.count(word)) if word in training else 0.0
            for word in known
        ]
    )


def test_a_score_is_the_cosine_of_the_projected_tf_idf_vectors():
    """Repeats count as often as they stand there, unknown words not at all, a rare word more than a
    common one; another projection for the second text would show too."""
    model = model_of()
    found = model(read(*FIRST), read(*SECOND))
    projection = model.projection.weight.T
    for score, pair in zip(found, zip(FIRST, SECOND, strict=True), strict=True):
        q, d = (projection @ tf_idf(text) for text in pair)
        assert_same(score, cosine(q, d))
    assert found.std() > 0.1


def test_the_idf_of_a_worked_example():
    """ln(4 texts / occurrences): of "cat" (twice), "dog" (once), "the" (three times) and the end of
    a text; never below zero for a word that most texts have twice."""
    fitted = view()
    cat, dog, the, end = fitted.vocabulary.ids(["cat", "dog", "the", "</s>"])
    idf = model_of().idf
    expected = [math.log(2), math.log(4), math.log(4 / 3), 0.0]
    assert idf[[cat, dog, the, end]].tolist() == pytest.approx(expected)
    often = S2Net.view.changed({})
    often.fit(["to be or not to be", "to"])
    assert S2Net(len(often.vocabulary), often, dimensions=5).idf[often.vocabulary.ids(["to"])].item() == 0


def test_the_order_of_words_does_not_count_and_a_text_is_nearest_to_itself():
    model = model_of()
    torch.testing.assert_close(model(read("cat sat mat"), read("mat cat sat")), torch.ones(1))


def test_a_text_without_a_known_word_scores_zero_and_trains():
    """A division by its length of zero would end the training."""
    model = model_of()
    scores = model(read("zebra", "cat"), read("cat", "dog"))
    assert scores[0] == 0
    scores.sum().backward()
    assert model.projection.weight.grad.isfinite().all()


def test_the_loss_is_the_mean_over_the_pairs_of_a_question():
    """The second question has a wrong candidate only; pairs across questions would count it."""
    scores, labels, groups = torch.tensor([0.5, 0.5, 0.3, 0.9]), torch.tensor([1, 0, 0, 0]), torch.tensor([0, 0, 0, 1])
    expected = (math.log(2) + math.log(1 + math.exp(-4 * 0.2))) / 2
    assert model_of(gamma=4.0).rank_loss(scores, labels, groups).item() == pytest.approx(expected)


def test_the_loss_without_a_pair_is_zero_with_a_gradient():
    scores = torch.tensor([0.5, 0.2], requires_grad=True)
    loss = model_of().rank_loss(scores, torch.tensor([0, 0]), torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == 0 and not scores.grad.any()


def test_the_projection_starts_with_columns_of_length_one():
    """On average: then no direction of the start has to be unlearned, and the rate fits the
    numbers."""
    fitted = view()
    weight = S2Net(len(fitted.vocabulary), fitted, dimensions=400).projection.weight
    assert 0.9 < weight.norm(dim=1).mean() < 1.1

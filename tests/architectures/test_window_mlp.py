"""The window tagger against its equations written out slot by slot."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from architectures.feedforward.window_mlp import WindowTagger
from tests.support.batches import assert_each_alone, texts_of
from tests.support.models import small


def tagger(window: int = 5) -> WindowTagger:
    return small(WindowTagger, 4, labels=3, window=window, hidden=6).double()


def test_scores_are_the_textbooks_equations_with_one_block_of_weights_per_slot():
    """z1 = sig(sum over slots of W1[slot] x[slot]), z2 = sig(W2 z1), scores = W3 z2; trained
    vectors stand beyond the sentence."""
    model = tagger()
    sentences = texts_of(torch.randn(3, 6, 4, dtype=torch.float64), [6, 1, 3])
    first, second, last = (layer.weight for layer in model.layers[::2])

    def written_out(vectors: Tensor) -> Tensor:
        sentence, scores = [model.before] * 2 + list(vectors) + [model.behind] * 2, []
        for word in range(len(vectors)):
            inner = torch.sigmoid(sum(first[:, 4 * slot : 4 * slot + 4] @ sentence[word + slot] for slot in range(5)))
            scores.append(last @ torch.sigmoid(second @ inner))
        return torch.stack(scores)

    assert_each_alone(model(sentences), written_out, sentences, states=True)


def test_order_inside_the_window_counts_and_nothing_outside_it():
    """A mean or sum of the window would not see the swap; a wider reach would see the far word."""
    model = tagger()
    vectors = torch.randn(1, 7, 4, dtype=torch.float64)
    middle = model(texts_of(vectors))[0, 3]
    swapped, far = vectors.clone(), vectors.clone()
    swapped[0, [2, 4]] = vectors[0, [4, 2]]
    far[0, [0, 6]] += 1
    assert not torch.allclose(model(texts_of(swapped))[0, 3], middle)
    torch.testing.assert_close(model(texts_of(far))[0, 3], middle)


def test_what_stands_beyond_the_sentence_starts_as_word_vectors_do():
    """At zero a word at the edge would look as if its neighbours were missing."""
    model = WindowTagger(400, labels=3)
    for edge in (model.before, model.behind):
        assert 0.24 < edge.abs().max() <= 0.25
    assert not torch.equal(model.before, model.behind)


def test_a_window_without_a_middle_is_refused():
    with pytest.raises(ValueError, match=r"window=4.*odd"):
        tagger(window=4)

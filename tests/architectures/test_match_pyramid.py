"""The mechanism of MatchPyramid: an image of word similarities, pooled to a grid by each pair's own
lengths."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.convolutional.match_pyramid import SIMILARITIES, MatchPyramid
from harness import registry
from harness.views.words import WordBatch, Words
from tests.support.batches import random_texts
from tests.support.models import small
from tests.support.oracles import cosine
from tests.support.same import assert_same

WIDTH = 4
FIRST, SECOND = (9, 1, 6), (7, 12, 2)
"""Words of each text of three pairs: more and fewer than the grid has rows."""

texts = partial(random_texts, width=WIDTH, words=6)


def model_of(similarity: str) -> MatchPyramid:
    return small(MatchPyramid, WIDTH, similarity, maps=(3, 4), grid=5, hidden=6)


def similarity_of(kind: str, first: WordBatch, second: WordBatch, row: int, i: int, j: int) -> Tensor:
    """Similarity of word i of the first text and word j of the second."""
    a, b = first.vectors[row, i], second.vectors[row, j]
    if kind == "indicator":
        return (first.spellings[row, i] == second.spellings[row, j]).float()
    return a @ b if kind == "dot" else cosine(a, b)


def written_out(model: MatchPyramid, first: WordBatch, second: WordBatch, row: int) -> Tensor:
    """The vector of one pair: its image word by word, and every cell of the grid as the maximum
    over its own rectangle."""
    n, m = int(first.lengths[row]), int(second.lengths[row])
    similarities = [similarity_of(model.similarity, first, second, row, i, j) for i in range(n) for j in range(m)]
    image = torch.stack(similarities).view(n, m)
    maps = torch.relu(F.conv2d(image[None], model.first.weight, model.first.bias, padding=2))
    size = model.grid
    grid = torch.zeros(len(maps), size, size)
    for p in range(size):
        for q in range(size):
            rows = slice(p * n // size, -(-(p + 1) * n // size))
            columns = slice(q * m // size, -(-(q + 1) * m // size))
            grid[:, p, q] = maps[:, rows, columns].amax((1, 2))
    maps = torch.relu(F.conv2d(grid, model.second.weight, model.second.bias, padding=1))
    pooled = [maps[:, p : p + 2, q : q + 2].amax((1, 2)) for p in range(0, size, 2) for q in range(0, size, 2)]
    hidden = model.hidden.weight @ torch.stack(pooled, dim=1).flatten() + model.hidden.bias
    return hidden.clamp(min=0)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_batch_of_pairs_is_each_pair_written_out_cell_by_cell(similarity):
    """Another similarity, a grid laid over the batch's length, rows taken for columns, or padding
    in the image would each show here."""
    model, first, second = model_of(similarity), texts(FIRST, 1), texts(SECOND, 2)
    found = model(first, second)
    assert found.shape == (3, model.size) and found.any(1).all()
    for row in range(3):
        assert_same(found[row], written_out(model, first, second, row), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_equal_texts_have_a_bright_diagonal(similarity):
    first = texts((6,), 1)._replace(spellings=torch.arange(1, 7)[None])
    image = model_of(similarity).image(first, first)[0]
    assert (image.diagonal() > 0).all()
    if similarity == "indicator":
        assert torch.equal(image, torch.eye(6))
    if similarity == "cosine":
        torch.testing.assert_close(image.diagonal(), torch.ones(6))


def test_the_grid_follows_the_order_of_the_words():
    """A maximum over the whole image would not know where two words met."""
    model = model_of("indicator")
    straight = texts((6,), 1)._replace(spellings=torch.arange(1, 7)[None])
    turned = straight._replace(spellings=straight.spellings.flip(1))
    assert not torch.allclose(model(straight, straight), model(straight, turned), atol=1e-3)


def test_exact_matching_needs_no_word_vectors_and_the_others_do():
    read = {name: MatchPyramid.reads("text", {"similarity": name}) for name in SIMILARITIES}
    assert [read[name].embeds for name in SIMILARITIES] == [False, True, True]
    assert all(isinstance(view, Words) for view in read.values()) and MatchPyramid.reads("audio", {}) is None
    first, second = (texts(lengths, 1)._replace(vectors=torch.empty(0)) for lengths in (FIRST, SECOND))
    assert model_of("indicator")(first, second).isfinite().all()


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_each_id_draws_the_image_that_its_name_says(kind):
    """Were two of the ids one model, the leaderboard would compare it with itself."""
    entry = registry.entry("architectures", f"match_pyramid_{kind}")
    model = registry.load(entry)(WIDTH, **entry.hyperparameters | entry.tiny)
    first, second = texts((5,), 1), texts((4,), 2)
    expected = [[similarity_of(kind, first, second, 0, i, j).item() for j in range(4)] for i in range(5)]
    torch.testing.assert_close(model.image(first, second)[0], torch.tensor(expected))
    assert registry.load(entry).reads("text", entry.hyperparameters).embeds == (kind != "indicator")


def test_half_of_the_hidden_layer_is_dropped_in_training():
    model = small(MatchPyramid, WIDTH, "dot", hidden=600)
    first, second = texts(FIRST, 1), texts(SECOND, 2)
    kept, trained = model(first, second), model.train()(first, second)
    assert 0.4 < (trained[kept > 0] == 0).float().mean() < 0.6
    assert_same(trained[trained > 0], 2 * kept[trained > 0])


def test_the_three_similarities_are_three_ids():
    found = [
        registry.entry("architectures", f"match_pyramid_{name}").hyperparameters["similarity"] for name in SIMILARITIES
    ]
    assert found == list(SIMILARITIES)
    with pytest.raises(ValueError, match="'gaussian' is none of indicator, dot, cosine"):
        MatchPyramid(WIDTH, "gaussian")

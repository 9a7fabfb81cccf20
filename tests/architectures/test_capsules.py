"""Capsule networks: scores are the lengths of class capsules, with an orphan capsule beside them;
Capsule-B has three columns of their own windows and weights, their class capsules averaged as
vectors."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from architectures.blocks.capsules import separate_margin_loss
from architectures.capsule.capsules import CapsuleA, CapsuleB
from harness import registry
from harness.views.words import WordBatch
from tests.support.same import assert_same


def model_of(kind: type[CapsuleB] = CapsuleB, **settings) -> CapsuleB:
    torch.manual_seed(0)
    return kind(**{"width": 5, "classes": 2, "maps": 8, "primary": 3, "capsules": 4, "size": 4} | settings)


def words_of(length: int = 7) -> WordBatch:
    torch.manual_seed(1)
    mask = torch.ones(3, length, dtype=torch.bool)
    return WordBatch(mask.long(), mask, mask.sum(1), 3 * torch.randn(3, length, 5))


class Fixed(nn.Module):
    """A column whose class capsules are given."""

    def __init__(self, capsules: Tensor):
        super().__init__()
        self.capsules = capsules

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.capsules


def test_scores_are_the_lengths_of_the_class_capsules_and_the_orphan_has_none():
    model, words = model_of(CapsuleA), words_of(6)
    (column,) = model.columns
    capsules = column(words.vectors, words.mask)
    assert capsules.shape == (3, 3, 4)  # two classes and the orphan
    expected = [[capsules[text, label].pow(2).sum().sqrt() for label in range(2)] for text in range(3)]
    assert_same(model(words), torch.stack([torch.stack(row) for row in expected]))


def test_the_orphan_takes_votes_away_from_the_classes():
    """Left out of the routing it would be an unused row."""
    model, words = model_of(CapsuleA), words_of(6)
    before = model(words)
    with torch.no_grad():
        model.columns[0].classes.transformations[-1] *= 30
    after = model(words)
    assert after.sum() < before.sum() / 2


def test_capsule_a_is_capsule_b_with_one_column():
    """Each of its sizes is one of the columns': another order, or a size that is not handed on,
    would give other scores."""
    sizes = {"maps": 7, "primary": 3, "capsules": 5, "size": 2, "window": 4, "iterations": 2}
    one, other = model_of(CapsuleA, ngram=2, **sizes), model_of(CapsuleB, ngrams=(2,), **sizes)
    assert torch.equal(one(words_of()), other(words_of()))


@pytest.mark.parametrize("kind", [CapsuleA, CapsuleB])
def test_as_many_rounds_of_routing_as_are_asked_for(kind):
    """One round and three would be one model if the number did not reach the columns."""
    once, again = model_of(kind, iterations=1), model_of(kind, iterations=3)
    assert not torch.allclose(once(words_of()), again(words_of()), rtol=1e-3)


@pytest.mark.parametrize(("id", "ngrams"), [("capsule_a", [3]), ("capsule_b", [3, 4, 5])])
def test_each_name_stands_for_its_columns(id: str, ngrams: list[int]):
    """A word in the middle of a text reaches a column through as many windows as it is wide."""
    entry = registry.entry("architectures", id)
    model = registry.load(entry)(5, 2, **entry.hyperparameters)
    words = words_of(9)
    vectors = words.vectors.clone()
    vectors[:, 4] += 1
    found = []
    for column in model.columns:
        before, after = (column.ngrams(v.mT) for v in (words.vectors, vectors))
        found.append(int((before - after).abs().amax((0, 1)).gt(1e-6).sum()))
    assert found == ngrams


def test_columns_read_three_four_and_five_words_with_weights_of_their_own():
    model = model_of()
    assert [column.ngrams.kernel_size[0] for column in model.columns] == [3, 4, 5]
    model(words_of()).sum().backward()
    parameters = [list(column.parameters()) for column in model.columns]
    assert len({id(p) for column in parameters for p in column}) == sum(map(len, parameters))
    assert all(p.grad.any() for column in parameters for p in column)


def test_scores_are_lengths_of_mean_vectors():
    model, words = model_of(), words_of()
    columns = [column(words.vectors, words.mask) for column in model.columns]
    expected = [
        [(sum(c[text, label] for c in columns) / 3).pow(2).sum().sqrt() for label in range(2)] for text in range(3)
    ]
    assert_same(model(words), torch.stack([torch.stack(row) for row in expected]))


def test_columns_that_point_in_opposite_directions_cancel_out():
    """Averaging lengths, not vectors, would score them as high as columns that agree."""
    model, capsule = model_of(), torch.tensor([[[0.6, 0.8], [0.0, 0.9], [1.0, 1.0]]])
    opposed = capsule * torch.tensor([[[-1.0], [1.0], [1.0]]])
    model.columns = nn.ModuleList([Fixed(capsule), Fixed(opposed)])
    torch.testing.assert_close(model(words_of()), torch.tensor([[0.0, 0.9]]))


def test_a_text_shorter_than_the_widest_window_is_read():
    """Padded to four words by a longer neighbour, or not, it gets the same scores."""
    model, words = model_of(), words_of(length=1)
    longer = WordBatch(
        words.ids,
        torch.arange(4) < words.lengths[:, None],
        words.lengths,
        torch.cat([words.vectors, torch.ones(3, 3, 5)], 1),
    )
    assert_same(model(longer), model(words))


@pytest.mark.parametrize("kind", [CapsuleA, CapsuleB])
def test_trained_by_the_separate_margin_loss(kind):
    scores, labels = torch.rand(4, 2), torch.tensor([0, 1, 1, 0])
    torch.testing.assert_close(model_of(kind).objective(scores, labels), separate_margin_loss(scores, labels))

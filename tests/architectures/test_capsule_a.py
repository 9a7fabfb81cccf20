"""Capsule-A: its scores are the lengths of class capsules, with an orphan capsule beside them; its
loss; where it fits."""

from __future__ import annotations

import torch

from architectures.blocks.capsules import separate_margin_loss
from architectures.capsule.capsule_a import CapsuleA
from harness.views.words import WordBatch


def model_of() -> CapsuleA:
    torch.manual_seed(0)
    return CapsuleA(width=5, classes=2, maps=8, primary=3, capsules=4, size=4)


def words_of(batch: int = 3, length: int = 6) -> WordBatch:
    torch.manual_seed(1)
    mask = torch.ones(batch, length, dtype=torch.bool)
    return WordBatch(mask.long(), mask, mask.sum(1), 3 * torch.randn(batch, length, 5))


def test_scores_are_the_lengths_of_the_class_capsules_and_the_orphan_has_none():
    model, words = model_of(), words_of()
    capsules = model.column(words.vectors, words.mask)
    assert capsules.shape == (3, 3, 4)  # two classes and the orphan
    expected = [[capsules[text, label].pow(2).sum().sqrt() for label in range(2)] for text in range(3)]
    torch.testing.assert_close(model(words), torch.stack([torch.stack(row) for row in expected]))


def test_the_orphan_takes_votes_away_from_the_classes():
    """Left out of the routing it would be an unused row."""
    model, words = model_of(), words_of()
    before = model(words)
    with torch.no_grad():
        model.column.classes.transformations[-1] *= 30
    after = model(words)
    assert after.sum() < before.sum() / 2


def test_the_convolution_reads_three_words():
    assert model_of().column.ngrams.weight.shape == (8, 5, 3)


def test_trained_by_the_separate_margin_loss():
    scores, labels = torch.rand(4, 2), torch.tensor([0, 1, 1, 0])
    torch.testing.assert_close(model_of().objective(scores, labels), separate_margin_loss(scores, labels))

"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

import torch

from harness import registry
from harness.views.words import WordBatch


def build(**hyperparameters):
    """The model on vectors of two numbers, without dropout."""
    torch.manual_seed(0)
    cls = registry.load(registry.entry("architectures", "my_model"))
    return cls(width=2, hidden=3, **hyperparameters).eval()


def words(*texts):
    """A batch of texts given as lists of word vectors; shorter ones are padded with vectors that
    must not count."""
    longest = max(map(len, texts))
    vectors = torch.tensor([[*text, *[[99.0, 99.0]] * (longest - len(text))] for text in texts])
    lengths = torch.tensor([len(text) for text in texts])
    ids, mask = torch.zeros(vectors.shape[:2], dtype=torch.long), torch.arange(longest) < lengths[:, None]
    return WordBatch(ids, mask, lengths, vectors)


def test_a_word_is_scored_from_itself_and_its_two_neighbours():
    model = build(labels=4)
    text = torch.randn(5, 2).tolist()
    changed = [*text[:3], [9.0, 9.0], *text[4:]]
    moved = (model(words(text)) - model(words(changed))).abs().sum(-1)[0] > 1e-6
    assert moved.tolist() == [False, False, True, True, True]

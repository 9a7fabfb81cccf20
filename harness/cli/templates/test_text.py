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


def test_a_text_is_the_mean_of_its_real_words():
    model = build()
    model.hidden = torch.nn.Identity()
    means = model(words([[1.0, 0.0], [3.0, 4.0]], [[5.0, 6.0]]))
    assert means.tolist() == [[2.0, 2.0], [5.0, 6.0]]

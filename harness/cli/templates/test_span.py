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


def test_a_passage_word_is_scored_by_the_question_word_that_it_resembles():
    model = build()
    passage = words([[9.0, 0.0], [0.0, 9.0]])
    question, other = words([[9.0, 0.0], [0.0, 9.0]]), words([[9.0, 0.0], [0.0, 7.0]])
    model.window.weight.data[..., [0, 2]] = 0  # each word alone
    moved = (model(passage, question).start - model(passage, other).start).abs()[0] > 1e-6
    assert moved.tolist() == [False, True]

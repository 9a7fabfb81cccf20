"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

import torch

from harness import registry
from harness.views.words import WordBatch


def build(**hyperparameters):
    """The model on vectors of two numbers and five words that can come, without dropout."""
    torch.manual_seed(0)
    cls = registry.load(registry.entry("architectures", "my_model"))
    return cls(width=2, symbols=5, hidden=4, **hyperparameters).eval()


def words(vectors):
    """Words with the given vectors (B, T, D)."""
    mask = torch.ones(vectors.shape[:2], dtype=torch.bool)
    return WordBatch(mask.long(), mask, mask.sum(1), vectors)


def test_a_text_that_is_read_in_two_stretches_has_the_states_of_one_that_is_read_at_once():
    model, vectors = build(), torch.randn(3, 7, 2)
    whole, _ = model(words(vectors), model.start(3))
    first, state = model(words(vectors[:, :4]), model.start(3))
    second, _ = model(words(vectors[:, 4:]), state)
    assert torch.allclose(torch.cat([first, second], dim=1), whole, atol=1e-6)


def test_a_state_depends_on_the_words_before_alone():
    model, vectors = build(), torch.randn(1, 6, 2)
    changed = vectors.clone()
    changed[:, 3] += 1.0
    states, moved = (model(words(each), model.start(1))[0] for each in (vectors, changed))
    assert torch.equal(states[:, :3], moved[:, :3])
    assert not torch.allclose(states[:, 3:], moved[:, 3:])

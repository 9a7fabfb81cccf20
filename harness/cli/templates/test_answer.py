"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

import torch

from harness import registry
from harness.views.facts import FactBatch


def build(**hyperparameters):
    """The model with five words, two of which are answers, without dropout."""
    torch.manual_seed(0)
    cls = registry.load(registry.entry("architectures", "my_model"))
    return cls(width=5, answers=["yes", "no"], hidden=3, **hyperparameters).eval()


def facts(*ids):
    """One story of facts with one word each."""
    ids = torch.tensor(ids)[None, :, None]
    return FactBatch(ids, ids > 0, ids[..., 0] > 0)


def test_the_fact_that_resembles_the_question_is_read():
    model = build()
    model.words.weight.data = 9 * torch.eye(5, 3).roll(1, dims=0)  # words 1, 2 and 3 are orthogonal
    model.output = torch.nn.Identity()
    state = model(facts(1, 2, 3), facts(2))
    assert torch.allclose(state, 2 * model.words.weight[2])

"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

import torch

from harness import registry


def build(**hyperparameters):
    """The model on vectors of two numbers, without dropout."""
    torch.manual_seed(0)
    cls = registry.load(registry.entry("architectures", "my_model"))
    return cls(width=2, hidden=3, **hyperparameters).eval()


def test_a_state_sees_its_position_and_the_left_neighbour_and_no_more():
    model, mask = build(), torch.ones(1, 4, dtype=torch.bool)
    vectors = torch.randn(1, 4, 2)
    changed = vectors.clone()
    changed[0, 1] += 1.0
    moved = (model(vectors, mask) - model(changed, mask)).abs().sum(-1)[0] > 1e-6
    assert moved.tolist() == [False, True, True, False]

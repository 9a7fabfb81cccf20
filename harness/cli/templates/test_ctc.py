"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

import torch

from harness import registry
from harness.views.frames import FrameBatch


def build(**hyperparameters):
    """The model on vectors of two numbers, without dropout."""
    torch.manual_seed(0)
    cls = registry.load(registry.entry("architectures", "my_model"))
    return cls(width=2, hidden=3, **hyperparameters).eval()


def test_a_frame_is_scored_from_itself_and_three_neighbours_on_either_side():
    model, lengths = build(labels=4), torch.tensor([9])
    vectors, mask = torch.randn(1, 9, 2), torch.ones(1, 9, dtype=torch.bool)
    changed = vectors.clone()
    changed[0, 4] += 1.0
    scores = [model(FrameBatch(frames, mask, lengths))[0] for frames in (vectors, changed)]
    moved = (scores[0] - scores[1]).abs().sum(-1)[0] > 1e-6
    assert moved.tolist() == [False] + [True] * 7 + [False]

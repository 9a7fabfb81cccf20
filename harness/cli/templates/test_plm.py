"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

import torch

from harness import registry
from harness.views.subwords import SubwordBatch


def build(**hyperparameters):
    """The model with ten pieces, without dropout."""
    torch.manual_seed(0)
    cls = registry.load(registry.entry("architectures", "my_model"))
    return cls(width=10, hidden=8, heads=2, **hyperparameters).eval()


def pieces(*ids, second=0):
    """One sequence of pieces, the last ``second`` of them in the second segment."""
    ids = torch.tensor([ids])
    segments = (torch.arange(ids.shape[1]) >= ids.shape[1] - second).long()[None]
    return SubwordBatch(ids, torch.ones_like(ids, dtype=torch.bool), segments, torch.tensor([ids.shape[1]]))


def test_a_state_depends_on_every_piece_on_its_place_and_on_its_segment():
    model = build()
    state = model.pooled(model(pieces(2, 5, 6, 3)))
    for other in (pieces(2, 5, 7, 3), pieces(2, 6, 5, 3), pieces(2, 5, 6, 3, second=1)):
        assert not torch.allclose(state, model.pooled(model(other)), atol=1e-4)

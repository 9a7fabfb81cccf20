"""The attention of the last layer, and how its values are related, as a teacher has them (Wang et
al. 2020: section 3)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from architectures.blocks.held_still import held_still
from architectures.blocks.objectives.masked_pieces import MaskedPieces
from harness.layers.noise import Noise
from harness.objectives import add_loss
from harness.problems.text_objective import Foretold
from harness.saved_models.teachers import Teacher
from harness.views.subwords import SubwordBatch


def relations(encoder: Any, pieces: SubwordBatch) -> tuple[Tensor, Tensor]:
    """Natural logarithms (B, heads, T, T) of the attention of each piece to all pieces in the last
    layer, and of the softmax of the scaled products of its value with all values there. No dropout
    acts on them."""
    allowed = pieces.mask[:, None, None]
    states = encoder.embed(pieces)
    *below, last = encoder.body.stack()
    for layer in below:
        states, _ = layer(states, allowed)
    queries, (keys, values) = last.attention.project(last.read(0, states))

    def related(some: Tensor, others: Tensor) -> Tensor:
        scores = some @ others.mT / math.sqrt(some.shape[-1])
        return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).log_softmax(-1)

    return related(queries, keys), related(values, values)


def divergence(told: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """Mean over texts of the mean over heads and the text's pieces of KL(told || other), of natural
    logarithms (B, heads, T, T) and the mask (B, T) of the pieces."""
    each = (told.exp() * (told - other)).sum(-1).mean(1) * mask
    return (each.sum(1) / mask.sum(1)).mean()


class LastAttention(MaskedPieces):
    """The teacher's attention distributions and relations of values in its last layer, by KL of the
    teacher's and the student's, over texts of which nothing is masked. Widths of heads may differ,
    their number must not.

    Beside it the layers above the encoder learn to tell masked pieces from its states, for the
    score; no gradient of that reaches the encoder. Without a teacher one does.
    """

    takes = ("teacher",)
    teacher: Teacher | None = None

    def inherit(self, role: str, parent: Any) -> None:
        self.teacher = Teacher(parent)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        if self.teacher is None or not noise.anew:
            return super().forward(encoder, pieces, noise)
        wanted = self.teacher.asked(lambda model: relations(model.encoder, pieces), pieces.ids.device)
        found = relations(encoder, pieces)
        for name, told, other in zip(("attention", "values"), wanted, found, strict=True):
            add_loss(name, divergence(told, other, pieces.mask))
        with held_still(encoder):
            return super().forward(encoder, pieces, noise)

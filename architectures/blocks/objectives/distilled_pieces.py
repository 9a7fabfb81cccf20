"""Masked pieces, with what a teacher thinks of every place (Sanh et al. 2019: sections 2 and 3)."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.objectives.adversarial_pieces import divergence
from architectures.blocks.objectives.masked_pieces import MaskedPieces
from harness.layers.noise import Noise
from harness.objectives import add_loss
from harness.problems.text_objective import Foretold
from harness.saved_models.parents import copy_weights
from harness.saved_models.teachers import Teacher
from harness.views.subwords import SubwordBatch


class DistilledPieces(MaskedPieces):
    """Masked pieces, and at every piece of the text as it is read, masks too, the teacher's
    probabilities of all pieces, and the direction of its last state.

    Probabilities of both are those of scores divided by a ``temperature``; their divergence
    KL(teacher || student) is multiplied by its square, so that gradients stay as large whatever it
    is. States are compared by 1 less their cosine. The factors ``weight``, ``soft`` and ``alike``
    are those of the authors' program. The layers that score pieces begin as the teacher's.
    """

    takes = ("teacher",)
    weight, soft, alike = 2.0, 5.0, 1.0
    temperature = 2.0
    teacher: Teacher | None = None

    def inherit(self, role: str, parent: Any) -> None:
        copy_weights(parent, self.scores, "head.learns.scores")
        self.teacher = Teacher(parent)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        if self.teacher is None or not noise.anew:
            return super().forward(encoder, pieces, noise)
        chosen = self.chosen(pieces, encoder.view, noise)
        read = pieces._replace(ids=self.hidden(pieces.ids, chosen, encoder.view, noise))

        def thought(encoder: Any, scores: Any) -> tuple[Tensor, Tensor]:
            """States (N, size) at all real pieces, and scores (N, V) of what stands there."""
            states = encoder(read)[pieces.mask]
            return states, scores.scores(encoder, states)

        states, found = thought(encoder, self.scores)
        others, wanted = self.teacher.asked(
            lambda model: thought(model.encoder, model.head.learns.scores), pieces.ids.device
        )
        told, other = ((scores / self.temperature).log_softmax(-1) for scores in (wanted, found))
        add_loss("soft targets", self.soft * self.temperature**2 * divergence(told, other))
        add_loss("states", self.alike * (1 - F.cosine_similarity(states, others, dim=-1)).mean())
        asked = chosen[pieces.mask]
        logs = -F.cross_entropy(found[asked], pieces.ids[chosen], reduction="none")
        return Foretold.at(logs, chosen)

"""One look at the facts of a story."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import Answerer
from harness.registry import Recipe, register
from harness.views.facts import FactBatch, Facts


@register(
    "frozen_recall",
    name="Recall",
    kind="answer",
    paper="Nobody 2015",
    source="section 2",
    year=2015,
    recipe=Recipe(optimizer="sgd", lr=0.3, lr_schedule="linear", epochs=40, patience=40, clip=1.0),
    tiny={"size": 24},
)
class Recall(Answerer):
    """The question attends over the facts; what it reads is compared with the words that can be the
    answer.

    A word that no story has, the last one among them, has a vector of its own.
    """

    view = Facts(most=20, min_count=1)

    def __init__(self, width: int, answers: list[str], view: Facts, size: int = 40):
        super().__init__()
        known = view.vocabulary.ids(answer.lower() for answer in answers)
        rows = [id if id > 1 else width + number for number, id in enumerate(known)]
        self.register_buffer("rows", torch.tensor(rows))
        self.asked, self.told = nn.Embedding(width, size), nn.Embedding(width, size)
        self.named = nn.Embedding(width + len(answers), size)
        self.carry = nn.Linear(2 * size, size)

    @staticmethod
    def sums(table: nn.Embedding, facts: FactBatch) -> Tensor:
        """Sums (B, S, size) of the vectors of each fact's words."""
        return (table(facts.ids) * facts.mask[..., None]).sum(2)

    def forward(self, facts: FactBatch, question: FactBatch) -> Tensor:
        asked, told = self.sums(self.asked, question)[:, 0], self.sums(self.told, facts)
        scores = (told @ asked[..., None]).squeeze(2).masked_fill(~facts.fact_mask, -torch.inf)
        read = (scores.softmax(1)[:, None] @ told).squeeze(1)
        return self.carry(torch.cat([asked, read], dim=1)) @ self.named(self.rows).T


@register(
    "frozen_recall_vector",
    name="Recall, a vector",
    kind="answer",
    paper="Nobody 2015",
    source="section 5",
    year=2015,
    tiny={"size": 24},
)
class RecallVector(Answerer):
    """A vector (B, size) of question and facts, on which the harness puts its layer."""

    view = Facts()

    def __init__(self, width: int, size: int = 40):
        super().__init__()
        self.words = nn.Embedding(width, size)
        self.size = 2 * size

    def forward(self, facts: FactBatch, question: FactBatch) -> Tensor:
        parts = (facts, question)
        return torch.cat([(self.words(part.ids) * part.mask[..., None]).sum((1, 2)) for part in parts], dim=1)

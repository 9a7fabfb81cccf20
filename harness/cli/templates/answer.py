"""My model: one sentence on what it is."""

from __future__ import annotations

from torch import Tensor, nn

from harness.kinds import Answerer
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.facts import FactBatch


@register(
    "my_model",
    name="My model",
    kind="answer",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
    tiny={"hidden": 8},
)
class MyModel(Answerer):
    """The question attends over the facts of the story; question and attended facts score the
    words that can be the answer.

    Facts and questions are sums of word vectors from one table. Say here what the paper does, and
    where.
    """

    def __init__(self, width: int, answers: list[str], hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.words = nn.Embedding(width, hidden, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden, len(answers))

    def forward(self, facts: FactBatch, question: FactBatch) -> Tensor:
        memories = self.words(facts.ids).sum(2)
        query = self.words(question.ids).sum((1, 2))
        attention = masked_softmax((memories @ query[:, :, None]).squeeze(2), facts.fact_mask)
        attended = (attention[:, None] @ memories).squeeze(1)
        return self.output(self.dropout(query + attended))

"""My model: one sentence on what it is."""

from __future__ import annotations

from torch import Tensor, nn

from harness.kinds import LanguageModel
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "my_model",
    name="My model",
    kind="lm",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=20, epochs=10, stretch=35, clip=5.0),
    tiny={"hidden": 64},
)
class MyModel(LanguageModel):
    """A GRU reads the words, and a softmax over its state foretells the next one. Say here what the
    paper does, and where."""

    def __init__(self, width: int, symbols: int, hidden: int = 200, dropout: float = 0.2):
        super().__init__()
        self.hidden = hidden
        self.dropout = nn.Dropout(dropout)
        self.recurrence = nn.GRU(width, hidden, batch_first=True)
        self.output = nn.Linear(hidden, symbols)

    def start(self, texts: int) -> Tensor:
        return self.output.weight.new_zeros(texts, self.hidden)

    def forward(self, words: WordBatch, state: Tensor) -> tuple[Tensor, Tensor]:
        states, last = self.recurrence(self.dropout(words.vectors), state[None])
        return self.dropout(states), last[0]

    def scores(self, states: Tensor) -> Tensor:
        return self.output(states)

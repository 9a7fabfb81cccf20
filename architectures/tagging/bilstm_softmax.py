"""Bidirectional LSTM that labels each word by itself."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "bilstm_softmax",
    name="BiLSTM tagger, independent softmax",
    kind="tag",
    paper="Huang et al. 2015",
    source="X4.5.3 R25.2.2",
    year=2015,
    recipe=Recipe(optimizer="sgd", lr=0.1, batch_size=8, epochs=20, vector_dims=50),
    tiny={"hidden": 12},
    deviations=(
        "Words alone are read: no spelling and context features.",
        "A batch is a number of sentences, not at most 100 words of them.",
        "The gates do not read the memory cell; those of the paper do.",
    ),
)
class BiLSTMSoftmax(Tagger):
    """Label scores (B, T, labels), linear in the states of a BiLSTM; each word's labels have a
    softmax of their own.

    A label is chosen without regard to its neighbours: what they tell comes through the states
    alone.
    """

    decoder = "softmax"

    def __init__(self, width: int, labels: int, hidden: int = 300, layers: int = 1):
        super().__init__()
        self.recurrence = Recurrent("lstm", width, hidden, layers, bidirectional=True)
        self.emissions = nn.Linear(self.recurrence.size, labels)

    def forward(self, words: WordBatch) -> Tensor:
        return self.emissions(self.recurrence(words.vectors, words.mask))

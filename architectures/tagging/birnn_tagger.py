"""Bidirectional recurrent network for tagging."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "birnn_tagger",
    name="Bidirectional RNN POS tagger",
    kind="tag",
    paper="AIMA Fig. 25.5",
    source="R25.2.2",
    year=2020,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, clip=5.0, vector_dims=100),
    tiny={"hidden": 12},
    deviations=(
        "The book gives neither sizes nor training: 200 units each way, and Adam with clipped gradients, are ours.",
        "A unit has two biases, as PyTorch's fused layer does, which is one bias with twice the step.",
    ),
)
class BidirectionalRNNTagger(Tagger):
    """Label scores (B, T, labels) from z_t, the left-to-right and the right-to-left state of word t
    joined; a softmax for each word.

    Both directions are z_t = tanh(W_zz z_{t-1} + W_xz x_t + b) with weights of their own.
    """

    decoder = "softmax"

    def __init__(self, width: int, labels: int, hidden: int = 200):
        super().__init__()
        self.recurrence = Recurrent("rnn", width, hidden, bidirectional=True)
        self.emissions = nn.Linear(self.recurrence.size, labels)

    def forward(self, words: WordBatch) -> Tensor:
        return self.emissions(self.recurrence(words.vectors, words.mask))

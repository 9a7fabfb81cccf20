"""Bidirectional LSTM."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "bilstm",
    name="Bidirectional LSTM",
    kind="seq",
    paper="Graves & Schmidhuber 2005; as sentence encoder Williams et al. 2018",
    source="X4.2.4 M-T5[209]",
    year=2005,
    version=2,
    recipe=Recipe(optimizer="adam", lr=0.0004, batch_size=32),
    vectors_of_paper="GloVe",
    tiny={"hidden": 12},
    deviations=(
        "Both texts of a pair are read by one network; the MultiNLI baseline's program has one for each.",
        "Matching joins [u, v, |u-v|, u*v]; the MultiNLI baseline takes the plain difference.",
        "On pairs the layer below the softmax has as many units as a text's vector and no dropout; theirs has 300.",
    ),
)
class BidirectionalLSTM(SequenceEncoder):
    """Left-to-right and right-to-left LSTM states, concatenated at each position.

    A layer's states in both directions feed both directions of the next. A text's vector is the
    mean of its states, as in the MultiNLI baseline (300 units each way). Dropout acts on the input
    vectors and between layers.
    """

    pooling = "mean"

    def __init__(self, width: int, hidden: int = 300, layers: int = 1, dropout: float = 0.5):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.recurrence = Recurrent("lstm", width, hidden, layers, bidirectional=True, dropout=dropout)
        self.size = self.recurrence.size

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.recurrence(self.dropout(vectors), mask)

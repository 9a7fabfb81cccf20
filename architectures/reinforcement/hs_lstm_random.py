"""LSTMs over words and over phrases that end by lot, beside HS-LSTM, which learns where."""

from __future__ import annotations

from architectures.blocks.random_choices import RandomChoices
from architectures.reinforcement.hs_lstm import HierarchicallyStructuredLSTM
from harness.registry import register


@register(
    "hs_lstm_random",
    name="reference: HS-LSTM whose phrases end at random",
    kind="text",
    paper="none",
    source="reference",
    year=0,
    tiny={"hidden": 12, "dropout": 0.0},
)
class RandomPhrasesLSTM(HierarchicallyStructuredLSTM):
    """The network of :class:`~architectures.reinforcement.hs_lstm.HierarchicallyStructuredLSTM`
    over phrases of which a ``share`` of each text's words is the last, drawn by lot and the same in
    every pass. It learns its classes alone."""

    trained_by = None
    cut = ""

    def __init__(self, width: int, hidden: int = 300, dropout: float = 0.5, share: float = 0.3):
        super().__init__(width, hidden, dropout)
        self.policy = RandomChoices(share)

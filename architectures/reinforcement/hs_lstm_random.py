"""LSTMs over words and over phrases that end by lot, beside HS-LSTM, which learns where."""

from __future__ import annotations

from architectures.blocks.random_choices import RandomChoices, ReadByLot
from architectures.reinforcement.hs_lstm import HierarchicallyStructuredLSTM
from harness.registry import Recipe, register


@register(
    "hs_lstm_random",
    name="reference: HS-LSTM whose phrases end at random",
    kind="text",
    paper="none",
    source="reference",
    year=0,
    version=2,
    recipe=Recipe(
        optimizer="adam",
        lr=0.0005,
        batch_size=5,
        epochs=12,
        patience=12,
        lr_schedule="step",
        factor=0.95,
        step_start=1,
        step_epochs=1,
    ),
    tiny={"hidden": 12, "dropout": 0.0, "draws": 2},
)
class RandomPhrasesLSTM(HierarchicallyStructuredLSTM):
    """The network of :class:`~architectures.reinforcement.hs_lstm.HierarchicallyStructuredLSTM`
    over phrases that end by lot (:class:`ReadByLot`), at a ``share`` of the words and besides at
    the last one. It learns its classes alone."""

    trained_by = ReadByLot
    cut = ""

    def __init__(self, width: int, hidden: int = 300, dropout: float = 0.5, draws: int = 5, share: float = 0.3):
        super().__init__(width, hidden, dropout, draws)
        self.policy = RandomChoices(share)

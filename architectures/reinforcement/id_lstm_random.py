"""An LSTM that deletes words by lot, beside ID-LSTM, which learns what to delete."""

from __future__ import annotations

from architectures.blocks.random_choices import RandomChoices
from architectures.reinforcement.id_lstm import InformationDistilledLSTM
from harness.registry import register


@register(
    "id_lstm_random",
    name="reference: ID-LSTM that keeps words at random",
    kind="text",
    paper="none",
    source="reference",
    year=0,
    tiny={"hidden": 12, "dropout": 0.0},
)
class RandomWordsLSTM(InformationDistilledLSTM):
    """The LSTM of :class:`~architectures.reinforcement.id_lstm.InformationDistilledLSTM` over a
    ``share`` of each text's words, drawn by lot and the same in every pass. It learns its classes
    alone.

    With the share that ID-LSTM was found to read, the difference between both is what its policy
    knows.
    """

    trained_by = None
    cut = ""

    def __init__(self, width: int, hidden: int = 300, dropout: float = 0.5, share: float = 0.5):
        super().__init__(width, hidden, dropout)
        self.policy = RandomChoices(share)

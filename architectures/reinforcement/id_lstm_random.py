"""An LSTM that deletes words by lot, beside ID-LSTM, which learns what to delete."""

from __future__ import annotations

from architectures.blocks.random_choices import RandomChoices, ReadByLot
from architectures.reinforcement.id_lstm import InformationDistilledLSTM
from harness.registry import Recipe, register


@register(
    "id_lstm_random",
    name="reference: ID-LSTM that keeps words at random",
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
class RandomWordsLSTM(InformationDistilledLSTM):
    """The LSTM of :class:`~architectures.reinforcement.id_lstm.InformationDistilledLSTM` over a
    ``share`` of each text's words, drawn by lot (:class:`ReadByLot`). It learns its classes alone.

    With the share that ID-LSTM was found to read, the difference between both is what its policy
    knows, and what it costs to learn that: this one learns classes in all steps, and so in a few
    more.
    """

    trained_by = ReadByLot
    cut = ""

    def __init__(self, width: int, hidden: int = 300, dropout: float = 0.5, draws: int = 5, share: float = 0.5):
        super().__init__(width, hidden, dropout, draws)
        self.policy = RandomChoices(share)

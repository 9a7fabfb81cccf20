"""A reader that stops anywhere, beside Jumper, which learns when it has read enough."""

from __future__ import annotations

from torch import Tensor

from architectures.blocks.random_choices import RandomChoices, ReadByLot
from architectures.reinforcement.jumper import Jumper
from harness.registry import Recipe, register
from harness.views.sentences import SentenceBatch


@register(
    "jumper_random",
    name="reference: Jumper that decides at random",
    kind="text",
    paper="none",
    source="reference",
    year=0,
    version=3,
    recipe=Recipe(optimizer="adadelta", lr=0.1, batch_size=50, epochs=400, patience=80),
    tiny={"maps": 8, "hidden": 12, "dropout": 0.0},
)
class RandomJumper(Jumper):
    """The network of :class:`~architectures.reinforcement.jumper.Jumper`, whose answer is that
    after a ``share`` of each text's clauses, at least one, whatever they say. It learns its classes
    alone.

    A share that is no whole number of clauses is rounded up or down by lot (:class:`ReadByLot`), so
    that its mean is right but for texts of so few clauses that one is more than the share.
    """

    trained_by = ReadByLot

    def __init__(
        self,
        width: int,
        classes: int,
        maps: int = 200,
        windows: tuple = (1, 2, 3, 4, 5),
        hidden: int = 20,
        dropout: float = 0.5,
        share: float = 0.5,
    ):
        super().__init__(width, classes, maps, windows, hidden, dropout)
        self.draws = 1  # as Jumper, which draws all its decisions from one reading of a text
        self.policy = RandomChoices(share)

    def forward(self, document: SentenceBatch) -> Tensor:
        scores, count = self.symbols(document), document.sentence_mask.sum(1)
        lots = self.policy.lots(document)[:, 0]
        read = (self.policy.share * count + lots).long().clamp(min=1).minimum(count)
        return self.answers(document, scores, read - 1)

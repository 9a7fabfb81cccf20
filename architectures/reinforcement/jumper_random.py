"""A reader that stops anywhere, beside Jumper, which learns when it has read enough."""

from __future__ import annotations

from torch import Tensor

from architectures.blocks.random_choices import RandomChoices
from architectures.reinforcement.jumper import Jumper
from harness.registry import register
from harness.views.sentences import SentenceBatch


@register(
    "jumper_random",
    name="reference: Jumper that decides at random",
    kind="text",
    paper="none",
    source="reference",
    year=0,
    tiny={"maps": 8, "hidden": 12, "dropout": 0.0},
)
class RandomJumper(Jumper):
    """The network of :class:`~architectures.reinforcement.jumper.Jumper`, whose answer is that
    after a ``share`` of each text's clauses, at least one, whatever they say. It learns its classes
    alone.

    A share that is no whole number of clauses is rounded up or down by lot, so that its mean is
    right.
    """

    trained_by = None

    def __init__(
        self,
        width: int,
        classes: int,
        maps: int = 100,
        windows: tuple = (3, 4, 5),
        hidden: int = 100,
        dropout: float = 0.5,
        share: float = 0.5,
    ):
        super().__init__(width, classes, maps, windows, hidden, dropout)
        self.choices = RandomChoices(share)

    def forward(self, document: SentenceBatch) -> Tensor:
        scores, count = self.symbols(document), document.sentence_mask.sum(1)
        lots = self.choices.lots(document)[:, 0]
        read = (self.choices.share * count + lots).long().clamp(min=1).minimum(count)
        return self.answers(document, scores, read - 1)

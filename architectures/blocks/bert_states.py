"""BERT's states for what stands above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from architectures.pretrained.bert import BERT
from harness.kinds import Parent
from harness.task import Row
from harness.views.subwords import Subwords


class BERTStates(BERT):
    """BERT without its pooler, which learns from no plain text itself.

    It begins with a parent's weights; the parts of it that BERT lacks, ``fresh`` by name, begin at
    random where the parent has none either.
    """

    learns = None
    unused = ()
    fresh: ClassVar[tuple[str, ...]] = ()

    def __init__(self, width: int, view: Subwords, pretrained: str = "", **sizes: Any):
        super().__init__(width, view, pretrained, **sizes)
        del self.pooler

    def given(self, parent: Parent) -> dict[str, Tensor]:
        """The weights of a parent from which it begins."""
        weights: dict[str, Tensor] = parent.model.encoder.state_dict()
        return {name: of for name, of in weights.items() if not name.startswith("pooler.")}

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        if role == "weights":
            own = {name: of for name, of in self.state_dict().items() if name.partition(".")[0] in self.fresh}
            self.load_state_dict(own | self.given(parent))

"""Encoders that learn from plain data first, texts or recordings, and from labels afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from harness import registry
from harness.kinds.base import Parent
from harness.kinds.encoders import Encoder
from harness.task import Row


class PlainDataEncoder(Encoder):
    """An encoder that goes on from what it learnt from data without labels."""

    takes = ("weights",)
    learns: ClassVar[Any] = None
    """The objective by which it learns from plain text or plain recordings, made of the encoder
    (:class:`harness.problems.text_objective.TextObjective`); None for one that does not."""

    @classmethod
    def can_answer(cls, type: str) -> bool:
        heads = registry.load(registry.entry("problems", type)).heads
        head = heads.get(cls.output_form())
        return head is not None and (cls.learns is not None or not head.from_text)

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        """Begin with the weights of an encoder of the same names and sizes, and not with those of
        its head."""
        if role == "weights":
            self.load_state_dict(parent.model.encoder.state_dict())

"""Transformers of pieces of words, with what they learnt from plain text."""

from __future__ import annotations

from torch import Tensor, nn

from harness.kinds.base import Parent
from harness.kinds.encoders import SpanScores
from harness.kinds.plain_data import PlainDataEncoder
from harness.views.base import View
from harness.views.subwords import SubwordBatch, Subwords


class PretrainedEncoder(PlainDataEncoder):
    """Sub-words (a SubwordBatch, two texts joined with segments) to states (B, T, ``size``);
    ``pooled(states)`` is the text's vector, ``word_states(states)`` what words are labelled by.

    It may learn from plain text first, by the objective that it names in ``learns``
    (:class:`harness.problems.text_objective.TextObjective`). One that takes a ``teacher`` learns
    from it there, and goes on from its own weights elsewhere.
    """

    gives = "joined states"
    size: int
    view = Subwords()

    @classmethod
    def roles(cls, type: str) -> tuple[str, ...]:
        """All of them on plain text, and all but a teacher on other tasks."""
        return tuple(role for role in cls.takes if role != "teacher" or type == "text")

    @classmethod
    def inherited_view(cls, view: View, role: str, parent: Parent) -> View:
        """A view with the tokenizer of a model whose weights it takes, or which teaches it."""
        reads_alike = role in cls.takes and role in ("weights", "teacher")
        if reads_alike and isinstance(view, Subwords) and parent.view is not None:
            view.learnt = parent.view.state()  # type: ignore[misc]
        return view

    def vector(self, pieces: SubwordBatch) -> Tensor:
        """Vector (B, size) for the whole input."""
        return self.pooled(self(pieces))

    def pooled(self, states: Tensor) -> Tensor:
        """The same from its states."""
        return states[:, 0]

    def pair_layer(self, classes: int) -> nn.Module | None:
        """A layer of its own for the relation of two joined texts, which gives scores (B, classes)
        of their states (B, T, size) and pieces; None for a linear layer on :meth:`pooled`."""
        return None

    def verified(self, scores: SpanScores) -> SpanScores:
        """The scores of spans of a question's windows with what else it knows of their having an
        answer: by default nothing."""
        return scores

    def word_states(self, states: Tensor) -> Tensor:
        """States (B, W, size) of words, as the layer that labels them reads them."""
        return states

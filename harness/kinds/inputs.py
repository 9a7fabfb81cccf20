"""Sources of word representations beside the table of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from harness.kinds.base import Parent
from harness.task import Row
from harness.views.words_and_characters import WordCharacterBatch


class InputSource(nn.Module):
    """Further numbers for each word, which an encoder reads behind the word's vector.

    It is registered by :func:`harness.registry.register_input`, made anew for each model that
    ``--inputs`` gives it to, and trained with it. ``forward`` is given words without their vectors
    and returns numbers (B, T, ``size``); those at padding are not read. The constructor is given
    the fitted ``view``, a :class:`~harness.views.words_and_characters.WordsAndCharacters`; all its
    other parameters are hyperparameters with the paper's values as defaults.
    """

    size: int
    ordinary_dropouts: ClassVar[tuple[str, ...]] = ("dropout",)
    """Hyperparameters that protocol ``equal`` sets to 0, as those of an :class:`Encoder`."""
    spells: ClassVar[bool] = True
    """True for one that reads the characters of words, and so tells unknown ones apart."""
    takes: ClassVar[tuple[str, ...]] = ()
    """Roles in which it takes a kept model: those of the ``parents`` of its registration."""

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        """Take what a kept model learnt, as :meth:`Architecture.inherit`."""

    def forward(self, words: WordCharacterBatch) -> Tensor:
        raise NotImplementedError

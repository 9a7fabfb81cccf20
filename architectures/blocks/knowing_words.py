"""Words, and what is known of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

from architectures.blocks.taxonomy import Taxonomy, at_hand, digest, folder, toy, wordnet
from harness.views.words import Words


@dataclass
class KnowingWords(Words):
    """Words beside a ``taxonomy`` of nouns: that of WordNet, or of a few words of the generated
    news (``knowledge``)."""

    knowledge: str = "wordnet"
    divides: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.knowledge not in ("wordnet", "toy"):
            raise ValueError(f"knowledge={self.knowledge!r} is neither 'wordnet' nor 'toy'")

    @functools.cached_property
    def taxonomy(self) -> Taxonomy:
        """The known nouns; :class:`~harness.errors.MissingWeights` where WordNet is asked for and
        not at hand."""
        return toy() if self.knowledge == "toy" else wordnet(folder())

    def settings(self) -> dict[str, Any]:
        """With the digest of WordNet's file, of which versions differ; none where it is missing."""
        place = None if self.knowledge == "toy" else at_hand()
        return super().settings() | ({} if place is None else {"wordnet": digest(place)})

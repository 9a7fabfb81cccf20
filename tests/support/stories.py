"""Stories with their questions, for tests of architectures that answer questions."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from harness.views.facts import FactBatch, Facts

STORIES = (["joe went home", "ann went out", "joe slept"], ["ann slept"], ["joe left ann", "ann went home"])
QUESTIONS = ("who slept", "where went ann home", "who left")


def view(most: int = 6) -> Facts:
    """A view that knows the words of the stories."""
    facts = Facts(min_count=1, most=most)
    facts.fit([list(story) for story in STORIES] + [[question] for question in QUESTIONS])
    return facts


def batch(facts: Facts) -> tuple[FactBatch, FactBatch]:
    """The stories and the questions as a padded batch; what stands at padding is a word."""
    told, asked = (
        facts.collate(facts.encode(texts), np.arange(len(texts)))
        for texts in ([list(story) for story in STORIES], [[question] for question in QUESTIONS])
    )
    return _poisoned(told), _poisoned(asked)


def _poisoned(part: FactBatch) -> FactBatch:
    return part._replace(ids=part.ids.where(part.mask, 3))


def alone(facts: FactBatch, row: int) -> list[Tensor]:
    """The word numbers of each fact of a story, without padding."""
    return [ids[mask] for ids, mask, is_fact in zip(*(field[row] for field in facts), strict=True) if bool(is_fact)]


def position_encoded(vectors: Tensor) -> Tensor:
    """Sum over the words j of a sentence (J, d) of ((1 - j/J) - (k/d)(1 - 2j/J)) x_jk, number by
    number."""
    words, size = vectors.shape
    total = torch.zeros(size)
    for j in range(1, words + 1):
        for k in range(1, size + 1):
            total[k - 1] += ((1 - j / words) - (k / size) * (1 - 2 * j / words)) * vectors[j - 1, k - 1]
    return total

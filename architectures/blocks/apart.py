"""Two texts that one body of pieces reads by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from harness.views.subwords import Subwords


@dataclass
class SubwordsApart(Subwords):
    """As :class:`~harness.views.subwords.Subwords`, but the two texts of a pair are two sequences:
    what is known of a text does not depend on its partner."""

    joins: ClassVar[bool] = False

"""Answers as texts, for pages and tables: one file for each shape that answers have.

A problem names the class of its shape in its decorator (``answers``), because nothing here imports
torch: the leaderboard is built without it.
"""

from __future__ import annotations

import functools
import importlib

from harness import registry
from harness.problems.answers.base import Answers


@functools.cache
def answers_of(entry: registry.ProblemEntry) -> Answers:
    """The wording of a problem's answers.

    ``module:Class`` is imported as it stands; ``Class`` alone stands in the file of the problem, as
    in a plugin.
    """
    module, _, name = entry.answers.rpartition(":")
    home = importlib.import_module(module or registry.load(entry).__module__)
    return getattr(home, name)(entry)

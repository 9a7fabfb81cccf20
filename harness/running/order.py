"""The part of a grid that one of several machines runs."""

from __future__ import annotations

import re

from harness.errors import UsageError
from harness.records import Cell


def parse_shard(text: str) -> tuple[int, int]:
    """``i/n`` as (i, n), i from 0; :class:`UsageError` when it is anything else."""
    numbers = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not numbers or not int(numbers[1]) < int(numbers[2]):
        raise UsageError(
            f"--shard {text}: expected i/n with i from 0 to n - 1, such as 0/4, 1/4, 2/4, 3/4 for four machines"
        )
    return int(numbers[1]), int(numbers[2])


def in_shard(cell: Cell, shard: tuple[int, int]) -> bool:
    """True when a cell belongs to part i of n.

    Its key alone decides, so that every machine splits a grid alike, whatever it has run before.
    """
    i, n = shard
    return int(cell.key, 16) % n == i

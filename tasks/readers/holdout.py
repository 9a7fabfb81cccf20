"""A development set held out of a training set where the publisher made none."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def hold_out(items: Iterable[Item], share: float, group: Callable[[Item], str]) -> tuple[list[Item], list[Item]]:
    """Training and development part: whole groups go to development, in the order of their SHA-256,
    while at most ``share`` is held out.

    The order of the items plays no part, and no group is on both sides. Both parts keep the items'
    order.
    """
    items = list(items)
    keys = [group(item) for item in items]
    sizes: dict[str, int] = defaultdict(int)
    for key in keys:
        sizes[key] += 1
    held: set[str] = set()
    room = int(share * len(items))
    for key in sorted(sizes, key=lambda k: hashlib.sha256(k.encode()).digest()):
        room -= sizes[key]
        if room < 0:
            break
        held.add(key)
    train = [item for item, key in zip(items, keys, strict=True) if key not in held]
    return train, [item for item, key in zip(items, keys, strict=True) if key in held]

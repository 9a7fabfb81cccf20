"""Steps that generated corpora share: the split of a text, and as many texts of each label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar
from zlib import crc32

from harness.task import Row, Split

T = TypeVar("T")


def home(text: str, train: int = 3) -> Split:
    """The split to which a text belongs, by its checksum, so that none stands in two; train has
    ``train`` times as many as dev or test."""
    place = crc32(text.encode()) % (train + 2)
    return "train" if place < train else "dev" if place == train else "test"


def labelled(
    name: str, split: Split, size: int, labels: Sequence[T], text: Callable[[Random, Split, T], str]
) -> list[tuple[str, T]]:
    """``size`` different texts of a split with their labels, shuffled: the ``labels`` in turn, with
    a text that is drawn for each."""
    random = Random(f"{name} {split}")
    found: dict[str, T] = {}
    while len(found) < size:
        label = labels[len(found) % len(labels)]
        drawn = text(random, split, label)
        if home(drawn) == split:
            found.setdefault(drawn, label)
    order = list(found.items())
    random.shuffle(order)
    return order


def rows_of(order: Sequence[tuple[str, str]], split: Split) -> Iterator[Row]:
    """Rows with ``text`` and ``label``."""
    for number, (text, label) in enumerate(order):
        yield {"id": f"{split}-{number}", "text": text, "label": label}

"""Words on the test examples that stand in train, from the records at hand."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.files import parse_json, read_limited

if TYPE_CHECKING:
    from harness.leaderboard.results import Pairs
    from harness.records.blocks import Overlap


class Counted(NamedTuple):
    """The overlap that a record has, with the tier of its data and the numbers of their training
    and test examples."""

    tier: str
    train: int
    test: int
    overlap: Overlap


def of_most_data(counted: Iterable[Counted]) -> Counted | None:
    """That of the largest training set, on real data where there are any; None without a record."""
    return max(counted, key=lambda each: (each.tier != "mini", each.train), default=None)


def short(counted: Counted) -> str:
    """The counts for a column: exactly, and nearly where that was counted."""
    exact, near = counted.overlap.get("exact", 0), counted.overlap.get("near")
    return f"{exact:,}" if near is None else f"{exact:,} / {near:,}"


def sentence(counted: Counted) -> str:
    """The counts as a sentence."""
    exact, near = counted.overlap.get("exact", 0), counted.overlap.get("near")
    text = f"Of {counted.test:,} test examples, {exact:,} stand among the {counted.train:,} of train exactly"
    if near is None:
        return f"{text}."
    words = counted.overlap.get("words")
    return f"{text} and {near:,} nearly: {words} words in a row in common with one of them (of a pair, in both texts)."


def overlap_lead(results: Pairs) -> list[str]:
    """The sentence above a table of results; none where no record has counted."""
    counted = of_most_data(
        Counted(record.tier, record.counts.get("train", 0), record.counts.get("test", 0), record.overlap)
        for _, result in results
        for record in result.ok
        if record.overlap
    )
    return [sentence(counted)] if counted else []


def overlaps(results: Path) -> dict[str, Counted]:
    """The counts of each task that has records with some below a results folder; what is no record
    is left out.

    Other fields are not checked: a listing does without the libraries for that.
    """
    counted: dict[str, list[Counted]] = {}
    for file in sorted((results / "records").glob("*/*/*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            data = read_limited(file)
            if b'"overlap"' in data:
                record = parse_json(data)
                train, test = (int(record["counts"][split]) for split in ("train", "test"))
                overlap: Any = {"exact": 0} | {name: int(count) for name, count in record["overlap"].items()}
                counted.setdefault(file.parts[-3], []).append(Counted(record["tier"], train, test, overlap))
    return {task: best for task, found in counted.items() if (best := of_most_data(found))}

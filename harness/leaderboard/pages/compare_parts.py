"""Parts of the test units by a property, such as their length: how each result scores on them, and
which units they hold.

Records hold the scores of parts, not their units. These are found again from the examples, and
believed only if they are as many as the records say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.leaderboard.board import Board
from harness.leaderboard.comparison import Comparison
from harness.leaderboard.examples import ExampleReader, adapter
from harness.leaderboard.pages.error_analysis import mean_slices
from harness.leaderboard.results import Section
from harness.metrics import display_info
from harness.settings import Limits
from harness.task import Row


class Parts(NamedTuple):
    """The parts by one property (``by``): names, numbers of units, and scores (results, parts)
    as text, in the order of the comparison; None where a result has none. ``members`` holds the
    name of each unit's part, None where it is not known."""

    by: str
    names: list[str]
    sizes: list[int]
    scores: list[list[str | None]]
    members: list[str | None] | None


def parts_of(comparison: Comparison, known: dict[str, list[str]], gold: list[str | None]) -> list[Parts]:
    """The parts that the records of a comparison tell of.

    ``known`` holds the part of each unit by property. Without it, the parts by class are those of
    the right answers ``gold``, as far as these are known.
    """
    found, show = [], display_info(comparison.metric).format
    for name in dict.fromkeys(name for seeds in comparison.outcomes for each in seeds for name in each.slices):
        recorded = [mean_slices(seeds, name) for seeds in comparison.outcomes]
        sizes = [{part: units for part, units, _ in of_result} for of_result in recorded]
        scores = [{part: show(score) for part, _, score in each if score is not None} for each in recorded]
        first = next(filter(None, sizes), {})
        members = list(known.get(name, gold))
        found.append(
            Parts(
                name,
                list(first),
                list(first.values()),
                [[of_result.get(part) for part in first] for of_result in scores],
                members if all(_agree(members, each) for each in sizes if each) else None,
            )
        )
    return found


def _agree(members: Sequence[str | None], sizes: Mapping[str, int]) -> bool:
    """True if the units of each part are as many as recorded, those whose part is not known left
    out."""
    counts = Counter(members)
    unknown = counts.pop(None, 0)
    return (
        bool(counts)
        and counts.keys() <= sizes.keys()
        and all(counts[part] <= size for part, size in sizes.items())
        and counts.total() + unknown == sum(sizes.values())
    )


def read_parts(
    board: Board, section: Section, task: str, rows: Sequence[Row], reader: ExampleReader
) -> dict[str, list[str]]:
    """The part of each unit by property, found as a run finds them; ``rows`` are one of each unit.

    This imports torch, with which problems are written, and reads the training examples for their
    words. Nothing is found without torch, and nothing is sought without a data folder.
    """
    group, entry = board.group(section, task), board.tasks.get(task)
    if reader.data_dir is None or group is None or entry is None:
        return {}
    try:
        from harness.problems import problem
        from harness.scoring import error_analysis
    except ImportError:
        return {}
    asked = problem(entry.type)
    record = next(result.ok[0] for _, result in board.results(section, task) if result.group == group)
    most = Limits.of(record.hyperparameters).labelled
    known = error_analysis.words_trained_on(
        adapter(entry), record.tier, reader.data_dir, most, record.data.get("train")
    )
    found = error_analysis.properties(asked, rows, known)
    return {name: [value(row) for row in rows] for name, (value, _) in found.items()}

"""The paired test of two architectures on one task."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.leaderboard.board import Board
    from harness.leaderboard.results import Result, Section

    _Found = tuple[Section, Result]


@dataclass(frozen=True)
class PairedTest:
    """Two results on one task, and what chance leaves of their difference.

    ``a`` and ``b``: ids of the architectures. ``metric``: the main metric of the task. ``score_a``
    and ``score_b``: means over ``seeds_a`` and ``seeds_b`` on test, on the scale of the records
    (fractions for what pages show in percent). ``difference``: ``score_a`` less ``score_b``.
    ``interval``: its 95 % interval over other seeds and other test units. ``p``: two-sided, of no
    difference, not corrected for other pairs. ``units``: number of test units, which are examples
    or, in ranking, questions. ``lower_is_better``: true for error rates.
    """

    task: str
    metric: str
    a: str
    b: str
    score_a: float
    score_b: float
    difference: float
    interval: tuple[float, float]
    p: float
    seeds_a: tuple[int, ...]
    seeds_b: tuple[int, ...]
    units: int
    lower_is_better: bool

    @property
    def better(self) -> str | None:
        """Id of the better one; None where the leaderboard would not say so: p above 0.05, or
        fewer than three seeds of one of them."""
        from harness.leaderboard.significance import ALPHA, FEWEST_SEEDS

        if self.p > ALPHA or min(len(self.seeds_a), len(self.seeds_b)) < FEWEST_SEEDS:
            return None
        return self.a if (self.difference < 0) == self.lower_is_better else self.b


def compare(
    a: str,
    b: str,
    task: str,
    results: str | Path = "results",
    *,
    tier: str | None = None,
    protocol: str | None = None,
    budget: str | None = None,
) -> PairedTest:
    """The paired test of two architectures on one task of a results folder, equal to that of the
    leaderboard's compare page: over seeds and test units, whose error also draws on the seeds of
    the other results there (:mod:`harness.leaderboard.significance`).

    ``a`` and ``b``: ids of architectures, or the key of one record of a configuration (column
    ``key`` of :func:`~archbench.results`) where an architecture has several. ``tier``,
    ``protocol`` and ``budget`` choose among results that could be compared in more than one way.

    Raises :class:`~harness.errors.UnknownName` for a name that has no record ended ok there, and
    :class:`~harness.errors.LeaderboardError` for a pair that may not be compared
    (:mod:`harness.records.groups`), with what tells the two apart; for one that can be compared in
    several ways; and where the outcomes of the test units are missing.
    """
    from harness.errors import LeaderboardError
    from harness.leaderboard import board as boards
    from harness.leaderboard import comparison as comparisons
    from harness.metrics import display_info

    board = boards.read(Path(results))
    wished = {"tier": tier, "protocol": protocol, "budget": budget}
    section, first, second = _pair(
        _found(board, a, task, wished), _found(board, b, task, wished), f"{a} and {b}, {task}"
    )
    comparison = comparisons.compare(board, section, task)
    rows = [comparison.row(result) if comparison else None for result in (first, second)]
    for notice in board.notices:
        warnings.warn(notice, stacklevel=2)
    if comparison is None or rows[0] is None or rows[1] is None:
        names = " and ".join(name for name, row in zip((a, b), rows, strict=True) if row is None)
        raise LeaderboardError(
            f"{names}, {task}: no outcomes of the test units that the other results there were scored on; `archbench"
            " rescore` makes them where predictions are kept and the metric is a mean over units"
        )
    i, j = rows
    score_a, score_b = float(comparison.scores[i]), float(comparison.scores[j])
    difference, margin = score_a - score_b, float(comparison.margins[i, j])
    return PairedTest(
        task=task,
        metric=comparison.metric,
        a=first.first.architecture,
        b=second.first.architecture,
        score_a=score_a,
        score_b=score_b,
        difference=difference,
        interval=(difference - margin, difference + margin),
        p=float(comparison.p[i, j]),
        seeds_a=tuple(record.seed for record in first.ok),
        seeds_b=tuple(record.seed for record in second.ok),
        units=len(comparison.units),
        lower_is_better=display_info(comparison.metric).lower_is_better,
    )


def _found(board: Board, name: str, task: str, wished: dict[str, str | None]) -> list[_Found]:
    """Results that ended ok of an architecture, or with a record of that key, on a task."""
    from harness.errors import LeaderboardError, unknown

    everywhere = [
        (section, architecture, result)
        for section in board.sections
        for architecture, result in board.results(section, task)
        if result.group
    ]
    if not everywhere:
        tasks = {record.task for record in board.records if record.status == "ok"}
        raise unknown("task with a record ended ok", task, tasks, f"there are {', '.join(sorted(tasks)) or 'none'}")
    named = [
        (section, result)
        for section, architecture, result in everywhere
        if name == architecture or name in [record.key for record in result.ok]
    ]
    if not named:
        known = {architecture for _, architecture, _ in everywhere}
        raise unknown(f"architecture with a record ended ok on {task}", name, known, f"there are {', '.join(known)}")
    chosen = [
        (section, result)
        for section, result in named
        if all(value is None or getattr(section, part) == value for part, value in wished.items())
    ]
    if not chosen:
        raise LeaderboardError(
            f"{name}, {task}: no result with {', '.join(f'{part} {value}' for part, value in wished.items() if value)};"
            f" there are {'; '.join(sorted({', '.join(section.words) for section, _ in named}))}"
        )
    return chosen


def _pair(a: Sequence[_Found], b: Sequence[_Found], names: str) -> tuple[Section, Result, Result]:
    """The only pair of results that may be compared."""
    from harness.errors import LeaderboardError

    pairs = [(section, x, y) for section, x in a for _, y in b]
    fitting = [each for each in pairs if not _obstacle(*each[1:])]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ways = (f"{', '.join(s.words)}: {x.ok[0].key} and {y.ok[0].key}" for s, x, y in fitting)
        raise LeaderboardError(
            f"{names}: there are {len(fitting)} ways to compare them; name tier, protocol or budget, or keys:\n  "
            + "\n  ".join(ways)
        )
    nearest = min((_obstacle(x, y) for _, x, y in pairs), key=len)
    raise LeaderboardError(f"{names}: may not be compared: {nearest}")


def _obstacle(first: Result, second: Result) -> str:
    """The reason why two results may not be compared; empty where there is none."""
    from harness.records.groups import differences

    if first is second:
        return "they are one result"
    assert first.group and second.group, "both have records that ended ok"
    if told_apart := differences(first.group, second.group):
        return f"they are not alike in {', '.join(told_apart)} (in brackets: the first one's)"
    if not first.group.ranked:
        return f"protocol {first.group.protocol} with budget {first.group.budget.name} is never ranked"
    return ""

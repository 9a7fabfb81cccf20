"""The choice among tried architectures: scores with intervals, what chance cannot tell apart, and
the one that a user's wish picks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from harness.leaderboard.significance import ALPHA, against_the_best, estimate
from harness.metrics import CLEARLY, above, display_info
from harness.model_selection.wish import Preference, Wish
from harness.records import Record, Store
from harness.records.outcomes import Outcomes
from harness.registry import ArchitectureEntry

FEWEST_ROWS = 100
"""Rows below which nothing is recommended."""
BYTES = 4
"""Bytes of a trained parameter."""


@dataclass(frozen=True, eq=False)
class Tried:
    """An architecture with its records, one for each slice of the rows."""

    entry: ArchitectureEntry
    records: tuple[Record, ...]

    @property
    def is_floor(self) -> bool:
        """True for answers that need no model."""
        return self.entry.kind == "floor"

    @property
    def seconds(self) -> float:
        """Mean wall-clock seconds of a cell, on one thread."""
        return fmean(record.seconds.get("total", 0.0) for record in self.records)

    @property
    def parameters(self) -> int | None:
        """Number of parameters; None where they are not counted."""
        return self.records[0].parameters.get("total")

    @property
    def size_mib(self) -> float | None:
        """Size of the parameters in MiB; None where they are not counted."""
        return self.parameters * BYTES / 2**20 if self.parameters else None

    @property
    def latency_ms(self) -> float | None:
        """Median time of the answer to one text; None where it was not measured."""
        return self.records[0].speed.get("latency_ms_p50")


@dataclass(frozen=True)
class Scored:
    """A tried architecture with its score, its 95 % interval over other rows (None where the metric
    is no mean over them), and the corrected p of its distance to the best (None for what is not
    compared)."""

    tried: Tried
    score: float
    interval: tuple[float, float] | None
    p: float | None = None
    at_floor: bool = False


@dataclass(frozen=True)
class Choice:
    """All that were tried, best first; those that chance cannot tell from the best; the one that is
    recommended, or the reason why none is; and the best and the cheapest of those that could have
    been. ``finals`` are those in front that were compared once more, on more rows, best first."""

    metric: str
    rows: tuple[Scored, ...]
    leading: tuple[Scored, ...]
    recommended: Scored | None
    reason: str = ""
    best: Scored | None = None
    cheapest: Scored | None = None
    finals: tuple[Scored, ...] = ()

    @property
    def tested(self) -> bool:
        """True where the metric is a mean over rows, so that chance can be asked."""
        return any(each.interval is not None for each in self.rows)

    def decided(self, finals: Choice) -> Choice:
        """This choice with the best of another one, of some of the same on more rows."""
        by_id = {each.tried.entry.id: each for each in self.rows}
        best = next((by_id[each.tried.entry.id] for each in finals.rows), None)
        return replace(self, recommended=best, best=best, finals=finals.rows)


def choose(tried: Sequence[Tried], metric: str, store: Store, rows: int, wish: Wish = Wish()) -> Choice:
    """The choice among architectures with the same slices, of a task with so many rows."""
    quality = display_info(metric).quality
    found = _scored(tried, metric, store)
    floor = max((each.score for each in found if each.tried.is_floor), key=quality, default=None)
    judged = [(each, floor is not None and not each.tried.is_floor and _at(each, floor, metric)) for each in found]
    learnt = [each for each, at_floor in judged if not each.tried.is_floor and not at_floor]
    p_values = dict(zip(map(id, learnt), _behind(learnt, metric, store), strict=True))
    shown = tuple(
        Scored(each.tried, each.score, each.interval, p_values.get(id(each)), at_floor) for each, at_floor in judged
    )
    leading = tuple(each for each in shown if each.p is not None and each.p > ALPHA)
    if not leading:
        return Choice(metric, shown, (), None, "nothing tried here is known to beat an answer without a model")
    if rows < FEWEST_ROWS:
        return Choice(metric, shown, leading, None, f"{rows} rows are too few; {FEWEST_ROWS} are the least")
    allowed = [each for each in leading if wish.allows(each.tried.latency_ms, each.tried.size_mib)]
    if not allowed:
        return Choice(metric, shown, leading, None, f"none of those in front keeps to {wish.limits}")
    cheapest = min(allowed, key=lambda each: (each.tried.seconds, each.tried.parameters or 0))
    chosen = cheapest if wish.prefer == Preference.cheapest else allowed[0]
    return Choice(metric, shown, leading, chosen, best=allowed[0], cheapest=cheapest)


def _at(each: Scored, floor: float, metric: str) -> bool:
    """True for a score that is not known to beat the best floor: its interval reaches that, or,
    where there is none, it is not clearly above."""
    quality = display_info(metric).quality
    if each.interval is None:
        return quality(each.score) <= quality(above(metric, floor, CLEARLY))
    return min(map(quality, each.interval)) <= quality(floor)


def _scored(tried: Sequence[Tried], metric: str, store: Store) -> list[Scored]:
    """Scores with intervals, best first; of equal ones the one that trained faster."""
    outcomes = [_outcomes(each, metric, store) for each in tried]
    tested = [each for each in outcomes if each is not None]
    intervals: dict[int, tuple[float, float]] = {}
    scores = [fmean(record.scores["test"][metric] for record in each.records) for each in tried]
    if tested:
        found = estimate([_arrays(each) for each in tested], _clusters(tested[0]))
        positions = [place for place, each in enumerate(outcomes) if each is not None]
        for place, score, (low, high) in zip(positions, found.scores, found.intervals().tolist(), strict=True):
            scores[place], intervals[place] = float(score), (low, high)
    rows = [Scored(each, scores[place], intervals.get(place)) for place, each in enumerate(tried)]
    quality = display_info(metric).quality
    return sorted(rows, key=lambda each: (-quality(each.score), each.tried.seconds, each.tried.entry.id))


def _behind(rows: Sequence[Scored], metric: str, store: Store) -> list[float]:
    """Corrected p of each row's distance to the first one; without outcomes only the equal ones are
    in front."""
    if not rows:
        return []
    outcomes = [_outcomes(each.tried, metric, store) for each in rows]
    tested = [each for each in outcomes if each is not None]
    if len(tested) < len(rows):
        return [1.0 if each.score == rows[0].score else 0.0 for each in rows]
    return against_the_best(estimate([_arrays(each) for each in tested], _clusters(tested[0])).p_values())


def _outcomes(tried: Tried, metric: str, store: Store) -> list[Outcomes] | None:
    """The outcomes of the rows of each slice; None where one has none."""
    found = [store.load_outcomes(record) for record in tried.records]
    sound = [each for each in found if each is not None and each.metric == metric]
    return sound if len(sound) == len(found) else None


def _arrays(outcomes: Sequence[Outcomes]) -> tuple[np.ndarray, np.ndarray]:
    """Numerators and denominators (1, units) of one seed, the slices one after the other."""
    above = np.concatenate([each.numerators for each in outcomes])
    return above[None], np.concatenate([each.denominators for each in outcomes])[None]


def _clusters(outcomes: Sequence[Outcomes]) -> np.ndarray:
    """Number of the cluster of each unit (units,); no cluster is in two slices."""
    numbers: list[np.ndarray] = []
    first = 0
    for each in outcomes:
        own = np.arange(len(each.units)) if each.clusters is None else np.array(each.clusters)
        numbers.append(own + first)
        first += int(own.max()) + 1
    return np.concatenate(numbers)

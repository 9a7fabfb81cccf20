"""A user's wish: what to hand over of the architectures in front."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Preference(StrEnum):
    """The one in front with the best score, or the one that trains in the shortest time."""

    best = "best"
    cheapest = "cheapest"


@dataclass(frozen=True)
class Wish:
    """A preference, and the most that an answer to one text may take, in milliseconds (median, on
    one thread), and the weights, in MiB. None is no limit."""

    prefer: Preference = Preference.best
    latency_ms: float | None = None
    size_mib: float | None = None

    def allows(self, latency_ms: float | None, size_mib: float | None) -> bool:
        """True for what keeps to the limits; what was not measured keeps to none."""
        return _within(latency_ms, self.latency_ms) and _within(size_mib, self.size_mib)

    @property
    def limits(self) -> str:
        """The limits in words; empty without any."""
        given = ((self.latency_ms, "ms for an answer"), (self.size_mib, "MiB of weights"))
        return " and ".join(f"{limit:g} {unit}" for limit, unit in given if limit is not None)


def _within(found: float | None, limit: float | None) -> bool:
    return limit is None or (found is not None and found <= limit)

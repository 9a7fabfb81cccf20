"""Costs of architectures on a quiet machine, one at a time: the only speeds that pages compare.

They stand in ``speed.json`` beside the records (``python -m tools.speed.models``). Cells of a grid
are timed as well, but beside each other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import LeaderboardError
from harness.files import parse_json, read_limited
from harness.running.ruler import rescaled


class Speed(NamedTuple):
    """Training examples per second, the milliseconds of one answer, and the memory of the process
    in MiB at its peak: at the default size, on the task ``on``, with one thread. None where it is
    not known."""

    examples_per_second: float | None
    latency_ms: float | None
    memory_mib: float | None
    on: str


def read_speeds(results: Path) -> dict[str, Speed]:
    """Speeds by architecture; empty without a ``speed.json``, and :class:`LeaderboardError` for a
    damaged one.

    Those of other machines are rescaled to that with most rows by the rulers of both; where one is
    missing, or they differ too much, nothing is known.
    """
    file = results / "speed.json"
    if not file.is_file():
        return {}
    try:
        rows = [row for row in parse_json(read_limited(file))["models"] if row["status"] == "ok"]
        usual = usual_ruler(rows)
        return {row["architecture"]: _speed(row, usual) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LeaderboardError(
            f"{file}: {type(error).__name__}: {error}; `python -m tools.speed.models` writes it, or move it away"
        ) from error


def usual_ruler(rows: Iterable[dict[str, Any]]) -> Any:
    """The ruler of most rows of a ``speed.json``; None without a row."""
    rulers = Counter(json.dumps(row["ruler"], sort_keys=True) for row in rows)
    return json.loads(rulers.most_common(1)[0][0]) if rulers else None


def _speed(row: dict[str, Any], usual: Any) -> Speed:
    rate, latency, ruler = row["examples_per_second"], row["latency_ms"], row["ruler"]
    if ruler != usual:
        rate = rate and rescaled(rate, ruler, usual)
        per_ms = latency and rescaled(1 / latency, ruler, usual)
        latency = 1 / per_ms if per_ms else None
    return Speed(rate, latency, row["memory_mib"], row["task"])

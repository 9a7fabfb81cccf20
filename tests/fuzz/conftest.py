"""Fuzzing at two speeds, and a count of what was tried.

In `make test` every parser reads a few inputs, the same ones each time. ``ARCHBENCH_FUZZ=N`` gives
each of them N inputs from a new random seed, and ``ARCHBENCH_FUZZ_REPORT=FILE`` takes the counts as
JSON: ``{parser: {"tried": n, "accepted": n, "refused": n, "uncaught": n}}``.
"""

from __future__ import annotations

import json
import operator
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, Phase, settings

EXAMPLES = int(os.environ.get("ARCHBENCH_FUZZ", "0"))
PATIENCE = 20.0
"""Seconds of processor time (not of the clock: others may use the machine) after which an input is
said to hang its parser."""
Errors = type[Exception] | tuple[type[Exception], ...]
T = TypeVar("T")
_counts: dict[str, Counter[str]] = defaultdict(Counter)

settings.register_profile(
    "fuzz",
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    deadline=None,  # an alarm on processor time takes its place
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)


class Hang(BaseException):
    """An input took too long; no parser may catch this."""


def _ring(*_: object) -> None:
    raise Hang(f"more than {PATIENCE:.0f} s of processor time for one input")


@contextmanager
def _timed() -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, _ring)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.fixture(scope="session")
def attempt() -> Callable[..., Any]:
    """A call of ``read`` on one input, twice, and its result; None for an input that it refuses.

    Only ``documented`` errors may leave it, with one of ``names`` and a ``place``. What is accepted
    must be the same in a second reading, by ``same``.
    """

    def attempt(
        parser: str,
        read: Callable[[], T],
        documented: Errors,
        *names: str,
        place: str | None = None,
        same: Callable[[T, T], bool] = operator.eq,
    ) -> T | None:
        count = _counts[parser]
        count["tried"] += 1
        try:
            with _timed():
                value = read()
        except documented as error:
            count["refused"] += 1
            message = str(error)
            message.encode()  # half a surrogate pair would break who prints it
            assert any(name in message for name in names), f"the message names none of {names}: {message}"
            assert place is None or re.search(place, message), f"the message names no place: {message}"
            assert len(message) < 2000, f"a message of {len(message)} characters"
            return None
        except BaseException:
            count["uncaught"] += 1
            raise
        count["accepted"] += 1
        assert same(value, read()), "a second reading gives something else"
        return value

    return attempt


def pytest_sessionfinish() -> None:
    """Add this process's counts to the report; several processes share the tests."""
    report = os.environ.get("ARCHBENCH_FUZZ_REPORT")
    if not report or not _counts:
        return
    path = Path(report)
    with FileLock(f"{path}.lock"):
        known = json.loads(path.read_text()) if path.exists() else {}
        for parser, count in _counts.items():
            mine = known.setdefault(parser, {"tried": 0, "accepted": 0, "refused": 0, "uncaught": 0})
            for name in mine:
                mine[name] += count[name]
        path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")

"""The process in which a plugin works: settings that others share, threads, seeds, and things that
would delay or outlive the end of a cell."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator, Set
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from threadpoolctl import threadpool_info

from harness.contract.base import require

POLL_S = 0.005
"""Seconds between two counts of the process's threads: a tiny fit takes some hundredths of a
second, and a count 0.05 ms."""

ENDING_S = 0.5
"""Seconds in which a thread that a fit has stopped may end."""

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that give libraries which are loaded later the number of their threads."""

TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")

GENERATORS = (
    (np.random, "default_rng"),
    (np.random, "seed"),
    (random, "seed"),
    (torch, "manual_seed"),
    (torch.random, "manual_seed"),
)
"""Functions that start a random generator from a seed. Generators that are made by their classes
(``random.Random``) are not seen: a class cannot be replaced while others ask for it by
``isinstance``."""


def shared_settings(pools: dict[str, int]) -> dict[str, Any]:
    """Settings that all code of the process shares, by name; ``pools`` are those of
    :func:`_pools`."""
    return {
        "default dtype": torch.get_default_dtype(),
        "gradient mode": torch.is_grad_enabled(),
        "threads of torch": torch.get_num_threads(),
        "threads of torch between operations": torch.get_num_interop_threads(),
        **pools,
        **{name: os.environ.get(name) for name in VARIABLES},
    }


def ways_to_end() -> dict[str, Any]:
    """Settings on which it depends that a signal ends the process, by name.

    A cell is ended from outside, by TERM and then by KILL; a user ends it by Ctrl-C.
    """
    return {
        **{f"the handler of {each.name}": signal.getsignal(each) for each in signal.Signals},
        "blocked signals": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "running timers": [name for name in TIMERS if signal.getitimer(getattr(signal, name))[0]],
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Settings that have another value now, in words; those that are new have none before."""
    changed = [name for name in before if after.get(name) != before[name]]
    return "; ".join(f"{name} changed from {before[name]} to {after.get(name)}" for name in changed)


class Watch:
    """A block of work and what it does to the process.

    ``most`` is the largest number of threads beyond those before it, of all libraries, that a count
    every :data:`POLL_S` has seen.
    """

    def __enter__(self) -> Watch:
        self._settings, self._ways = shared_settings(_pools()), ways_to_end()
        self._processes = _children().keys()
        self._ended = threading.Event()
        self._counter = threading.Thread(target=self._count, daemon=True)
        self._before, self.most = _threads() + 1, 0  # the one that counts
        self._counter.start()
        self._threads = set(threading.enumerate())
        return self

    def _count(self) -> None:
        while not self._ended.wait(POLL_S):
            self.most = max(self.most, _threads() - self._before)

    def __exit__(self, *_: object) -> None:
        self.most = max(self.most, _threads() - self._before)
        self._ended.set()
        self._counter.join()
        pools = _pools()
        self.changed, self.allowed = changes(self._settings, shared_settings(pools)), sum(pools.values())
        left = [thread for thread in threading.enumerate() if thread not in self._threads]
        for thread in left:
            thread.join(ENDING_S)
        self.left = [f"thread {thread.name}" for thread in left if thread.is_alive()]
        self.left += [f"process {name}" for name in _children(self._processes).values()]
        self.hindrance = changes(self._ways, ways_to_end())

    def require_bounded(self) -> None:
        """Settings of threads are those before, and there were never more threads than the pools of
        torch and BLAS may have, which start theirs when they are first needed."""
        require(not self.changed, self.changed)
        require(
            self.most <= self.allowed,
            f"there were {self.most} threads more than before, and torch and BLAS have {self.allowed} at most;"
            " how many a cell has is said by --threads",
        )

    def require_endable(self) -> None:
        """Nothing keeps a cell from ending with its time, and nothing goes on after it."""
        require(not self.hindrance, f"{self.hindrance}: a cell that runs over its time is ended by TERM")
        require(not self.left, f"still there afterwards: {', '.join(self.left)}")


def _pools() -> dict[str, int]:
    """Threads that each library for parallel loops and matrices may have, by its file."""
    return {f"threads of {Path(pool['filepath']).name}": pool["num_threads"] for pool in threadpool_info()}


def _threads() -> int:
    return int(psutil.Process().num_threads())


def _children(known: Set[int] = frozenset()) -> dict[int, str]:
    """Names of the processes below this one that live, by number, without those that are ``known``
    and what these have started."""
    found = {}
    for child in psutil.Process().children(recursive=True):
        try:
            line = {child.pid, *(each.pid for each in child.parents())}
            if known.isdisjoint(line) and child.status() != psutil.STATUS_ZOMBIE:
                found[child.pid] = child.name()
        except psutil.Error:  # it ended just now
            continue
    return found


@contextmanager
def seeds_given() -> Iterator[set[str]]:
    """The seeds that generators are started from meanwhile, as texts; not those that come from the
    system, and no generator that is given as it is, as scipy does."""
    found: set[str] = set()
    with ExitStack() as stack:
        for module, name in GENERATORS:
            start = getattr(module, name)

            def noting(*given: Any, _start: Any = start, **named: Any) -> Any:
                seed = next(iter((*given, *named.values())), None)
                if seed is not None and not isinstance(seed, np.random.Generator):
                    found.add(f"{_start.__name__}({seed!r})")
                return _start(*given, **named)

            stack.callback(setattr, module, name, start)
            setattr(module, name, noting)
        yield found


def require_obeyed(given: set[str], with_another: set[str]) -> None:
    """The seeds that generators are given differ when the system's own seed does, where any are
    given: one without random numbers has nothing to obey."""
    require(
        not given or given != with_another,
        f"its random generators start from the same seeds whatever its own is: {', '.join(sorted(given))}",
    )

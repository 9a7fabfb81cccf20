"""The fork server of a process of tests: some of its cells need large libraries, others none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from typing import Any

import pytest

from harness.running.engines import local

LIGHT = ["harness.running.engines.local"]
"""What a server imports for cells that need no torch."""

SERVER: Any = forkserver._forkserver  # it has no public name


@contextmanager
def only_heavier() -> Iterator[None]:
    """Have a server without libraries end before a process that needs them is started, and one that
    has them stay: without them each cell imports all anew, which takes longer than to train it."""
    whole, has = local.forking, list[str]()

    @contextmanager
    def forking(threads: int) -> Iterator[Any]:
        nonlocal has
        if SERVER._forkserver_pid is not None and not set(local.PRELOAD) <= set(has):
            SERVER._stop()
        if SERVER._forkserver_pid is None:
            has = local.PRELOAD
        with whole(threads) as context:
            yield context

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "forking", forking)
        yield

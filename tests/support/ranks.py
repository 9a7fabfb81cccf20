"""One function, run by several processes of a group at once, as a cell on several devices is."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import forkserver
from typing import Any

from harness.running.engines.local import PRELOAD
from tests.support.servers import free_port

SERVER: Any = forkserver._forkserver  # it has no public name


def results_by_rank(devices: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Results of the function in so many processes.

    All are forked from the server of the local engine, which has imported the large libraries:
    importing them takes longer than a small training.
    """
    context = multiprocessing.get_context("forkserver")
    if "torch" not in SERVER._preload_modules:  # tests of cells that need no torch may have started it before
        SERVER._stop()
    context.set_forkserver_preload([*PRELOAD, "harness.running.fork_server"])
    port = free_port()
    with ProcessPoolExecutor(devices, mp_context=context) as pool:
        told = [pool.submit(_as_rank, rank, devices, port, function, *arguments) for rank in range(devices)]
        return [each.result(timeout=300) for each in told]


def _as_rank(rank: int, devices: int, port: int, function: Callable[..., Any], *arguments: Any) -> Any:
    if devices > 1:
        place = {
            "LOCAL_RANK": rank,
            "NODE_RANK": 0,
            "WORLD_SIZE": devices,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        os.environ.update({name: str(value) for name, value in place.items()})
    return function(*arguments)

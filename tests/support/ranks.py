"""One function, run by several processes of a group at once, as a cell on several devices is."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from harness.data.batches import Batches
from harness.running.engines import local
from tests.support.servers import free_port


def results_by_rank(devices: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Results of the function in so many processes, forked as cells are."""
    port = free_port()
    with local.forking(threads=1) as context, ProcessPoolExecutor(devices, mp_context=context) as pool:
        told = [pool.submit(_as_rank, rank, devices, port, function, *arguments) for rank in range(devices)]
        return [each.result(timeout=300) for each in told]


def share_batches_of_eight(rows: int, devices: int) -> None:
    """Have each of so many processes of this one's group take its part of the same batches: eight
    rows in their order, and what is left in the last."""
    eights = [np.arange(i, min(i + 8, rows)) for i in range(0, rows, 8)]
    Batches._buckets = lambda self: [part for eight in eights for part in np.array_split(eight, devices)]


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

"""A row of ``tools.check_all`` whose process is killed; a module of its own, since that process
should import nothing else."""

from __future__ import annotations

import os
import signal


def row_of(id: str, task: str, minutes: int) -> dict[str, str]:
    """The row of a pair; that of ``dan`` ends as the kernel ends it where memory is short."""
    if id == "dan":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"architecture": id, "task": task, "word": "learns"}

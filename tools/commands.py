"""Commands of archbench, as a user calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = (sys.executable, "-m", "harness.cli")


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of archbench in a folder, as its user would call it."""
    path = os.pathsep.join([str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path.rstrip(os.pathsep), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )

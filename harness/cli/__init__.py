"""The ``archbench`` command: each module adds its commands to :data:`app`, in the order of
``archbench --help``."""

from harness.cli import listing, run, new_task, try_  # isort: skip
from harness.cli import plugins, results  # isort: skip
from harness.cli import models  # isort: skip
from harness.cli.app import app, main

__all__ = ["app", "listing", "main", "models", "new_task", "plugins", "results", "run", "try_"]

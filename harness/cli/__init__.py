"""The ``archbench`` command: each module adds its commands to :data:`app`, in the order of
``archbench --help``."""

from harness.cli import look, run, own, trying  # isort: skip
from harness.cli import plugins, results  # isort: skip
from harness.cli import kept  # isort: skip
from harness.cli.app import app, main

__all__ = ["app", "kept", "look", "main", "own", "plugins", "results", "run", "trying"]

"""The ``archbench`` command: each module adds its commands to :data:`app`."""

from harness.cli import look, plugins, results, run
from harness.cli.app import app, main

__all__ = ["app", "look", "main", "plugins", "results", "run"]

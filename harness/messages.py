"""The lines that the command prints to standard error: errors, and notes, which are none."""

from __future__ import annotations

import sys


def report(message: str) -> None:
    """Print an error for the user."""
    print(f"archbench: {message}", file=sys.stderr, flush=True)


def note(message: str) -> None:
    """Print a note for the user: nothing is wrong, and the exit code does not change."""
    report(f"note: {message}")

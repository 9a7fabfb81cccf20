"""Comparison of the files of this tree with those of a commit."""

from __future__ import annotations

import subprocess
from pathlib import Path


def changed_since(root: Path, commit: str) -> set[str] | None:
    """Files that differ from those of a commit; None where the repository does not have it."""
    if not git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", check=False):
        return None
    return set(git(root, "diff", "--name-only", commit).splitlines())


def git(root: Path, *arguments: str, check: bool = True) -> str:
    """Output of git."""
    return subprocess.run(["git", *arguments], cwd=root, check=check, capture_output=True, text=True).stdout.strip()

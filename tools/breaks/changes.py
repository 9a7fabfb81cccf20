"""Comparison of the files of this tree with those of a commit."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

PROSE = ("deviations", "vectors_of_paper")
"""Arguments of architectures for the pages alone, for which no check asks."""


def changed_since(root: Path, commit: str) -> set[str] | None:
    """Files that differ from those of a commit, in code if they are Python; None where the
    repository does not have it."""
    if not git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", check=False):
        return None
    names = git(root, "diff", "--name-only", commit).splitlines()
    return {name for name in names if not (name.endswith(".py") and _in_words_alone(root, commit, name))}


def _in_words_alone(root: Path, commit: str, name: str) -> bool:
    """True for a file of Python in which comments, docstrings or :data:`PROSE` changed, and nothing
    else."""
    file = root / name
    try:
        return file.is_file() and code(file.read_text()) == code(git(root, "show", f"{commit}:{name}"))
    except (subprocess.CalledProcessError, SyntaxError):  # a new one; or one that is broken
        return False


def code(source: str) -> str:
    """The syntax of a file without its words."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in PROSE]
        elif isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values, strict=True))
            pairs = [(key, value) for key, value in pairs if getattr(key, "value", None) not in PROSE]
            node.keys, node.values = [key for key, _ in pairs], [value for _, value in pairs]
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [each for each in node.body if not _is_text(each)]
    return ast.dump(tree)


def _is_text(node: ast.stmt) -> bool:
    """True for a text that stands alone. The harness has this too, but trials are forked from this
    process, which must not have loaded what they break."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def git(root: Path, *arguments: str, check: bool = True) -> str:
    """Output of git."""
    return subprocess.run(["git", *arguments], cwd=root, check=check, capture_output=True, text=True).stdout.strip()

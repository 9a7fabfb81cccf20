"""The style of docstrings that CONTRIBUTING asks for, as far as a program can see it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OPENERS = {"what", "how", "whether", "where", "which", "who", "why", "when"}


def indirect_questions(source: str) -> list[str]:
    """Beginnings of the docstrings, also of those below attributes, that are indirect questions."""
    return [text[:60] for text in _docstrings(ast.parse(source)) if text.split(maxsplit=1)[0].lower() in OPENERS]


def _docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str(text))) if text.strip():
                yield text.strip()


FOLDERS = ("archbench", "harness", "architectures", "tasks", "tools")
FILES = [ROOT / "leaderboard.py", *sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))]


def findings(paths: list[Path]) -> dict[str, list[str]]:
    """Docstrings to rewrite, by file."""
    by_file = {str(path.relative_to(ROOT)): indirect_questions(path.read_text(encoding="utf-8")) for path in paths}
    return {name: wrong for name, wrong in by_file.items() if wrong}


def test_no_docstring_begins_with_an_indirect_question():
    """A reader wants to know what a thing is: "Cells and their records", not "What a cell is and
    what it left behind"."""
    assert findings(FILES) == {}


@pytest.mark.parametrize(
    "source",
    [
        '"""What a cell is."""',
        'def f():\n    """How often\n    it runs."""',
        'class A:\n    b: int\n    """Whether to log."""',
        'async def f():\n    """ Where it lies."""',
    ],
)
def test_an_indirect_question_is_seen(source):
    assert len(indirect_questions(source)) == 1


def test_other_beginnings_and_other_strings_are_left_alone():
    assert not indirect_questions('"""Whatever fits."""\nWHERE = "Where"\nprint("How")\nf = lambda: "Why"\n')

"""Declarations read out of the source text of a file: listing needs neither torch nor the file's
own imports."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import RegistryError
from harness.registry import sorts
from harness.registry.fields import check_fields
from harness.registry.finding import DECORATOR
from harness.registry.sorts import Sort
from harness.settings import Budget, Recipe

_NAMES: dict[str, Sort] = {
    "register": "architectures",
    "register_input": "inputs",
    "register_task": "tasks",
    "register_problem": "problems",
    "register_metric": "metrics",
}
_DECORATORS = {
    f"{module}{name}": sort for name, sort in _NAMES.items() for module in ("", "registry.", "harness.registry.")
}
"""Decorators as a file may write them, after ``from harness.registry import register``, ``from
harness import registry`` or ``import harness.registry``."""
_DECLARATION = re.compile(DECORATOR.pattern + r".*?^class \w+", re.MULTILINE | re.DOTALL)


_SETTINGS: dict[str, type[Recipe | Budget]] = {"Recipe": Recipe, "Budget": Budget}
"""Calls that may stand among the literals."""


class Declaration(NamedTuple):
    """A decorator of ours above a class or a function; ``call`` has its arguments."""

    class_name: str
    decorator: str
    call: ast.Call

    def arguments(self) -> tuple[str, dict[str, Any]]:
        """The id and the options that the decorator is given; :class:`RegistryError` unless they
        are literals."""
        if len(self.call.args) != 1:
            raise RegistryError(f"{len(self.call.args)} arguments without a name, expected one literal, the id")
        return _literal(self.call.args[0]), _named(self.call)


def declarations(file: Path, sort: Sort, version: tuple[int, int]) -> Iterator[Declaration]:
    """The decorators of a sort in a version of a file; :class:`RegistryError` for a file that is no
    Python."""
    for node in _tree(file, version).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and _DECORATORS.get(decorator := _dotted(call.func)) == sort:
                yield Declaration(node.name, decorator, call)


def is_decorator(function: ast.expr) -> bool:
    """True for the name of a decorator of ours, as a file may write it."""
    return _dotted(function) in _DECORATORS


def _dotted(node: ast.expr) -> str:
    """A name as it is written, with dots; empty for another expression."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _literal(node: ast.expr) -> Any:
    """Value of a literal, in which ``Recipe(...)`` and ``Budget(...)`` with literal arguments may
    stand."""
    if isinstance(node, ast.Call) and (name := _dotted(node.func)) in _SETTINGS:
        return _settings(name, node)
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {_literal(key): _literal(value) for key, value in zip(node.keys, node.values, strict=True) if key}
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise RegistryError(
            f"{ast.unparse(node):.60} is no literal; a listing reads the values without running the file"
        ) from error


def _named(call: ast.Call) -> dict[str, Any]:
    """The values that a call gives by name."""
    for each in call.keywords:
        if each.arg is None:
            raise RegistryError(f"**{ast.unparse(each.value):.60} is no literal; give each value by its name")
    return {str(each.arg): _literal(each.value) for each in call.keywords}


def _settings(name: str, call: ast.Call) -> Recipe | Budget:
    """The value of ``Recipe(...)`` or ``Budget(...)``; :class:`RegistryError` says what is wrong
    with it."""
    made = _SETTINGS[name]
    values = dict(zip((each.name for each in fields(made)), map(_literal, call.args), strict=False)) | _named(call)
    check_fields(name, made, values)
    try:
        return made(**values)
    except (TypeError, ValueError) as error:  # a value is missing, or of no training
        raise RegistryError(f"{name}: {error}") from error


@functools.cache
def _tree(file: Path, _version: tuple[int, int]) -> ast.Module:
    """Syntax tree of a foreign file, or of the decorators of one of our own.

    That is 15 times as fast. The rest of our own files is checked by tests, and on import.
    """
    try:
        source = file.read_text(encoding="utf-8-sig")  # some editors begin with a byte order mark
        if _is_ours(file):
            with suppress(SyntaxError):  # an error in the whole file is named instead
                declarations = _decorators_alone(source)
                return ast.parse(declarations) if declarations else ast.Module(body=[], type_ignores=[])
        return ast.parse(source)
    except SyntaxError as error:
        raise RegistryError(f"{file}:{error.lineno}: {error.msg}") from error
    except (OSError, ValueError) as error:  # not UTF-8, null bytes
        raise RegistryError(f"{file}: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise RegistryError(f"{file}: nested too deeply for Python's parser") from error


def _decorators_alone(source: str) -> str:
    """The decorators of a file, each above an empty class, at their own line numbers."""
    text = ""
    for match in _DECLARATION.finditer(source):
        gap = source.count("\n", 0, match.start()) - text.count("\n")
        text += "\n" * gap + match[0] + ": pass\n"
    return text


def _is_ours(file: Path) -> bool:
    return str(file).startswith(tuple(os.path.join(sorts.ROOT, folder, "") for folder in sorts.FOLDERS.values()))

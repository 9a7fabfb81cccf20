"""Classes registered in a notebook or in the script itself, as a plugin file that cells can read.

A cell runs in a process of its own, which has neither the notebook nor may run the script again.
What such a class needs is therefore copied to a file: its statement, and of the other statements
at top level those that bind a name which it uses, and so on.
"""

from __future__ import annotations

import ast
import hashlib
import symtable
import sys
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from harness import registry
from harness.errors import UsageError
from harness.files import write_whole

_NO_DEFINITIONS = (ast.Expr, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Delete)

_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

_written: list[Path] = []
"""The plugin file that stands for the main module, if there is one."""


def add_plugin(folder: Path) -> list[Path]:
    """Writes what the main module registers to a file in ``folder``, named after its content, and
    adds it to the registry in place of an earlier one; returns the file, if there is one.

    Raises :class:`~harness.errors.UsageError` for a class without a statement at the top level of a
    script or of a notebook's cell, such as one that was typed into an interpreter.
    """
    classes = registry.registered_in("__main__")
    if not classes and not _written:
        return []
    statements = _statements(_sources())
    roots = [node for node in statements if _is_registered(node)]
    if missing := sorted(classes - {name for node in roots for name in _bound(node)}):
        raise UsageError(
            f"{', '.join(missing)}: registered in the main module, but not by a statement at the top level of a script"
            " or of a notebook's cell, so that no other process can have it; write it to a file, and name that in"
            " plugins=[...]"
        )
    text = _text(_needed(roots, statements))
    file = folder.resolve() / f"main_module_{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    if [file] == _written:
        return [file]
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, text.encode())
    for old in _written:
        registry.remove_plugin(old)
    registry.add_plugin(file)
    _written[:] = [file]
    return [file]


def _sources() -> Iterator[str]:
    """The text of the script, and of the cells that a notebook ran, in their order."""
    main = sys.modules["__main__"].__dict__
    file = main.get("__file__")
    if file and Path(file).suffix == ".py":
        with tokenize.open(file) as script:
            yield script.read()
    cells = main.get("In")  # IPython keeps there what was run
    yield from (cell for cell in cells if isinstance(cell, str)) if isinstance(cells, list) else ()


def _statements(sources: Iterable[str]) -> list[ast.stmt]:
    """Statements at top level that may define something. Of several definitions of one class or
    function the last counts, as in a notebook whose cell is run again."""
    found: list[ast.stmt] = []
    for source in sources:
        try:
            found += [node for node in ast.parse(source).body if not isinstance(node, _NO_DEFINITIONS)]
        except SyntaxError:  # a notebook keeps those cells too
            continue
    last = {node.name: node for node in found if isinstance(node, _DEFINITIONS)}
    return [node for node in found if not isinstance(node, _DEFINITIONS) or last[node.name] is node]


def _is_registered(node: ast.stmt) -> bool:
    """True for a class or a function under one of our decorators."""
    return isinstance(node, _DEFINITIONS) and any(
        isinstance(call, ast.Call) and registry.is_decorator(call.func) for call in node.decorator_list
    )


def _needed(roots: list[ast.stmt], statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that ``roots`` need, themselves included, in the order in which they come."""
    binding: dict[str, list[ast.stmt]] = {}
    for node in statements:
        for name in _bound(node):
            binding.setdefault(name, []).append(node)
    needed = [*roots, *binding.get("*", ()), *(node for node in statements if _is_future(node))]
    for node in needed:  # it grows
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        own = _bound(node) if isinstance(node, _DEFINITIONS) else set()  # its attributes, set below it
        for name in _used(node) | own:
            needed += [other for other in binding.get(name, ()) if other not in needed]
    return [node for node in statements if node in needed]


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement binds; ``*`` for an import of all names of a module."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, _DEFINITIONS):
        return {node.name}
    inner = (_bound(each) for each in ast.walk(node) if isinstance(each, ast.stmt) and each is not node)
    stored = (_base(each) for each in ast.walk(node) if isinstance(getattr(each, "ctx", None), ast.Store))
    return {name for name in stored if name}.union(*inner)


def _base(node: ast.AST) -> str | None:
    """The name that an assignment to a name, an item or an attribute changes."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _used(node: ast.stmt) -> set[str]:
    """Global names that a statement reads when it is run, or its functions when they are called;
    those of its annotations too, because the view of an architecture is one."""
    table = symtable.symtable(ast.unparse(node), "<main module>", "exec")
    quoted = (name.id for text in _quoted(node) for name in ast.walk(text) if isinstance(name, ast.Name))
    return {*_read(table), *quoted}


def _quoted(node: ast.stmt) -> Iterator[ast.expr]:
    """Annotations below a statement that are written as texts."""
    for each in ast.walk(node):
        for name in ("annotation", "returns"):
            annotation = getattr(each, name, None)
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
                with suppress(SyntaxError):
                    yield ast.parse(annotation.value, mode="eval").body


def _read(table: symtable.SymbolTable) -> Iterator[str]:
    """Names that a scope reads from outside, and those of the scopes in it. A class may read a name
    from outside and bind it then."""
    binds_late = table.get_type() in ("module", "class")
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (binds_late or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _read(inner)


def _text(statements: Iterable[ast.stmt]) -> str:
    """A plugin file; what changes the meaning of all others comes first."""
    parts = sorted(statements, key=lambda node: not _is_future(node))
    head = '"""Classes that a script or a notebook registered, copied by archbench.run."""'
    return "\n\n".join([head, *map(ast.unparse, parts)]) + "\n"

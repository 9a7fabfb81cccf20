"""Digests of the code that makes the result of a cell.

A digest stands for the syntax of a plugin's file and of the plugin code that it imports. Comments,
docstrings, formatting, line ends, the place of the files and what decorators say for the pages
leave it as it is. The harness itself is one number.
"""

from __future__ import annotations

import ast
import codecs
import functools
import hashlib
import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from harness import registry
from harness.errors import RegistryError
from harness.records.blocks import Code
from harness.records.cell import Cell
from harness.records.provenance import own_version
from harness.records.record import Record
from harness.registry import ArchitectureEntry, Entry, TaskEntry
from harness.registry.sorts import ROOT as _ROOT
from harness.registry.source_text import is_decorator
from harness.task import SUPPORTING_FACTS

HARNESS = 2
"""Number of what the harness computes. Raise it when the result of a cell changes: the golden
scores of the tests tell. A stricter choice of the learning rate left it at 2: the records that it
could concern were made again (results/CHANGELOG.md)."""

_OWN = ("architectures", "tasks")
_FOR_PAGES = (
    "name",
    "paper",
    "source",
    "year",
    "tiny",
    "deviations",
    "without_deviations",
    "vectors_of_paper",
    "protocol",
)
"""Arguments of the decorators that no result depends on."""
_METHODS_BESIDE = ("fitted_state", "restore_fitted", "memory_needed", "chosen_on_dev", "chosen_with")
"""Methods by which a system is kept or learns anew after its result, or is left out before it."""
_TOLD = ("cut", "from_dev")
"""Attributes that tell the contract alone what a system does."""
_SHOWN = {"support": SUPPORTING_FACTS}
"""Methods of a task that only the architectures use which name what they give in their
``sees``."""


def code_of(
    architecture: ArchitectureEntry, task: TaskEntry, hyperparameters: Mapping[str, Any] = MappingProxyType({})
) -> Code:
    """The code of the cells of an architecture on a task.

    ``hyperparameters`` are those of the cell: the architecture that a regime wraps counts too, and
    so do sources of further numbers for each word.
    """
    wrapped = registry.entries("architectures").get(_wraps(hyperparameters))
    return {
        "architecture": _architecture_digest(architecture, wrapped, _sources(hyperparameters)),
        "task": _task_digest(task, _not_shown(architecture), _companions(hyperparameters)),
        "harness": HARNESS,
        "packages": dict(filter(None, map(_package, (architecture, task)))),
    }


def _wraps(hyperparameters: Mapping[str, Any]) -> str:
    """The id of the architecture that a regime wraps; empty for others."""
    return str(hyperparameters.get("wraps") or "")


def _companions(hyperparameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Further tasks on which a cell was trained."""
    return tuple(sorted(hyperparameters.get("companions") or ()))


def _sources(hyperparameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the sources of further numbers for each word."""
    return tuple(sorted(hyperparameters.get("inputs") or ()))


def _architecture_digest(
    entry: ArchitectureEntry, wrapped: ArchitectureEntry | None, sources: tuple[str, ...] = ()
) -> str:
    known = registry.entries("inputs") if sources else {}
    of_sources = [known[name].file for name in sources if name in known]
    return _digest([entry.file, *([wrapped.file] if wrapped else []), *of_sources])


def _not_shown(architecture: ArchitectureEntry | None) -> tuple[str, ...]:
    """The methods of a task that an architecture does not use."""
    return tuple(method for method, shown in _SHOWN.items() if architecture is None or shown not in architecture.sees)


def _task_digest(entry: TaskEntry, unused: tuple[str, ...] = tuple(_SHOWN), companions: tuple[str, ...] = ()) -> str:
    """Digest of a task and its companions without the methods that are not used, and of their types
    where these are a plugin's."""
    known = registry.entries("tasks") if companions else {}
    files: list[Path] = []
    for each in (entry, *(known[name] for name in companions if name in known)):
        problem = registry.entry("problems", each.type)
        files += [each.file] if problem.shipped else [each.file, problem.file]
    return _digest(files, unused)


def code_of_cell(cell: Cell | Record) -> Code | None:
    """The code of a cell as the files are now; None where its architecture or task is not
    registered."""
    try:
        found = registry.entry("architectures", cell.architecture), registry.entry("tasks", cell.task)
    except RegistryError:
        return None
    return code_of(*found, cell.hyperparameters)


def architecture_of_cell(cell: Cell | Record) -> str | None:
    """The digest of the architecture of a cell as its files are now; None where it is not
    registered. The task need not be there."""
    known = registry.entries("architectures")
    if cell.architecture not in known:
        return None
    wrapped = known.get(_wraps(cell.hyperparameters))
    return _architecture_digest(known[cell.architecture], wrapped, _sources(cell.hyperparameters))


def made_by_other_code(records: Iterable[Record]) -> list[Record]:
    """The records whose code is not that of the files as they are now, and among the others those
    that started, at any distance, from one of these.

    A record that says nothing of its code is none of them, nor is one of a plugin that is not here.
    Versions of packages are not compared.
    """
    architectures, tasks = registry.entries("architectures"), registry.entries("tasks")

    @functools.cache
    def architecture(id: str, wraps: str, sources: tuple[str, ...]) -> str | None:
        known = id in architectures
        return _architecture_digest(architectures[id], architectures.get(wraps), sources) if known else None

    @functools.cache
    def task(id: str, unused: tuple[str, ...], companions: tuple[str, ...]) -> str | None:
        return _task_digest(tasks[id], unused, companions) if id in tasks else None

    def differs(then: Code, record: Record) -> bool:
        unused = _not_shown(architectures.get(record.architecture))
        settings = record.hyperparameters
        digest = architecture(record.architecture, _wraps(settings), _sources(settings))
        now = digest, task(record.task, unused, _companions(settings)), HARNESS
        before = then.get("architecture"), then.get("task"), then.get("harness")
        return None not in now and any(a is not None and a != b for a, b in zip(before, now, strict=True))

    told = [(record, bool(record.code and differs(record.code, record))) for record in records]
    keys = {record.key for record, other in told if other}
    return [record for record, other in told if other or started_from(keys, record)]


def started_from(keys: Collection[str], record: Record) -> bool:
    """True for the record of a cell that started, at any distance, from a cell with one of the
    keys."""
    return any(ancestor["key"] in keys for ancestor in record.lineage or ())


def _package(entry: Entry) -> tuple[str, str] | None:
    """Name and version of the installed package that an entry came from."""
    if entry.shipped:
        version = own_version()
        return ("archbench", version) if version else None
    package = registry.distribution(entry)
    return (package.name, package.version) if package else None


class _Import(NamedTuple):
    """One imported name: leading dots, and the dotted rest."""

    level: int
    name: str


class _Source(NamedTuple):
    """Digest of one file, and what it imports."""

    digest: str
    imports: tuple[_Import, ...]


def _digest(files: list[Path], unused: tuple[str, ...] = ()) -> str:
    """Digest of files and of the plugin code that they import, each once, in the order in which
    they are first named; without the methods of such names, and what these import."""
    order = dict.fromkeys(files)
    waiting = list(order)
    digests = []
    while waiting:
        file = waiting.pop(0)
        status = file.stat()
        source = _source(file, (status.st_mtime_ns, status.st_size), unused)
        digests.append(source.digest)
        for imported in (found for name in source.imports for found in _files(file, name)):
            if imported not in order:
                order[imported] = None
                waiting.append(imported)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


@functools.cache
def _source(file: Path, _version: tuple[int, int], unused: tuple[str, ...]) -> _Source:
    """One file, read once for each of its versions. What is no Python is taken as it is."""
    data = file.read_bytes()
    if file.suffix == registry.DESCRIPTION:
        return _Source(_described(data), ())
    try:
        tree = ast.parse(data)
        text = _written(tree, (*_METHODS_BESIDE, *unused))
        imports = tuple(_imports(tree))
    except (SyntaxError, ValueError, RecursionError):
        return _Source(hashlib.sha256(data).hexdigest(), ())
    return _Source(hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest(), imports)


def _described(data: bytes) -> str:
    """Digest of what a TOML file says, without what it says for the pages."""
    values = tomllib.loads(data.removeprefix(codecs.BOM_UTF8).decode())
    values = {name: value for name, value in values.items() if name not in (*_FOR_PAGES, "description", "languages")}
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def _written(tree: ast.AST, unused: Collection[str] = _METHODS_BESIDE) -> str:
    """A syntax tree as text, however deep; what classes have by the names ``unused``, and what they
    tell the contract alone, is taken out of it.

    Unlike that of :func:`ast.dump` it has no empty fields, which newer Pythons add, so that it is
    the same for each of them.
    """
    text: list[str] = []
    left_out = frozenset(unused)
    waiting: list[ast.AST | list[Any] | str] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            text.append(item)
        elif isinstance(item, list):
            parts = (part for value in item if not _is_docstring(value) for part in (_part(value), ","))
            waiting += reversed(["[", *parts, "]"])
        else:
            if isinstance(item, ast.ClassDef):
                item.decorator_list = [_without_prose(decorator) for decorator in item.decorator_list]
                item.body = [each for each in item.body if left_out.isdisjoint(_names(each)) and not _is_told(each)]
            fields = (part for name, value in _fields(item) for part in (f"{name}=", _part(value), ","))
            waiting += reversed([f"{type(item).__name__}(", *fields, ")"])
    return "".join(text)


def _names(statement: ast.stmt) -> list[str]:
    """The names of a class that a statement of its body gives a meaning."""
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id]
    return [statement.name] if isinstance(statement, ast.FunctionDef | ast.ClassDef) else []


def _is_told(statement: ast.stmt) -> bool:
    """True for an attribute for the contract alone; a method of that name may divide texts."""
    return isinstance(statement, ast.Assign | ast.AnnAssign) and not {*_TOLD}.isdisjoint(_names(statement))


def _fields(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Fields of a node that say something, by name."""
    for name, value in ast.iter_fields(node):
        if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
            yield name, value


def _part(value: Any) -> ast.AST | list[Any] | str:
    """A part of a tree that is still to be written, or a plain value as text."""
    return value if isinstance(value, ast.AST | list) else repr(value)


def _is_docstring(node: Any) -> bool:
    """True for a text that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _without_prose(decorator: ast.expr) -> ast.expr:
    """A decorator of a plugin without what it says for the pages alone, its variants included, and
    its budgets without their reasons."""
    if isinstance(decorator, ast.Call) and is_decorator(decorator.func):
        decorator.keywords = [keyword for keyword in decorator.keywords if keyword.arg not in _FOR_PAGES]
        for call in ast.walk(decorator):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Budget":
                call.keywords = [keyword for keyword in call.keywords if keyword.arg != "reason"]
        for variants in (keyword.value for keyword in decorator.keywords if keyword.arg == "variants"):
            for variant in getattr(variants, "values", ()):
                if isinstance(variant, ast.Dict):
                    kept = [
                        (key, value)
                        for key, value in zip(variant.keys, variant.values, strict=True)
                        if getattr(key, "value", None) not in _FOR_PAGES
                    ]
                    variant.keys, variant.values = [key for key, _ in kept], [value for _, value in kept]
    return decorator


def _imports(tree: ast.Module) -> Iterator[_Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_Import(0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else ""
            yield from (_Import(node.level, prefix + alias.name) for alias in node.names)


def _files(file: Path, name: _Import) -> Iterator[Path]:
    """Files of the plugin code that is loaded for a name that ``file`` imports; the last part of
    the name may be something in a module."""
    place = _base(file, name)
    if place is None:
        return
    if name.level and (package := place / "__init__.py").is_file():  # Python runs it first
        yield package
    for part in name.name.split("."):
        place = place / part
        yield from (found for found in (place / "__init__.py", place.parent / f"{part}.py") if found.is_file())


def _base(file: Path, name: _Import) -> Path | None:
    """The folder that an import begins in; None for what is no plugin code.

    That of another package is a folder of its name above the file. A module beside the file counts,
    unless all installed packages lie there.
    """
    if name.level:
        return file.parents[name.level - 1]
    first = name.name.partition(".")[0]
    if first in _OWN:
        return _ROOT
    if first == "harness" or any(file.is_relative_to(_ROOT / folder) for folder in _OWN):
        return None
    if above := next((folder for folder in file.parents if folder.name == first), None):
        return above.parent
    return None if file.parent.name in ("site-packages", "dist-packages") else file.parent

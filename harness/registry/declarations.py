"""Entries that decorators declare: the decorators themselves, and the listing of what stands in
files.

Both make entries of the same arguments in the same way: a listing reads them from the source text,
a decorator is given them when its file is imported.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, overload

from harness.errors import RegistryError, did_you_mean
from harness.registry import finding, source_text
from harness.registry.fields import check_fields, fits
from harness.registry.sorts import (
    FOLDERS,
    ArchitectureEntry,
    Entry,
    InputEntry,
    MetricEntry,
    ProblemEntry,
    Sort,
    TaskEntry,
    options_of,
)

_ENTRIES: dict[Sort, type[Entry]] = {
    "architectures": ArchitectureEntry,
    "inputs": InputEntry,
    "tasks": TaskEntry,
    "problems": ProblemEntry,
    "metrics": MetricEntry,
}
_registered: dict[tuple[Sort, str], tuple[type, dict[str, Any]]] = {}


def register(id: str, *, variants: Mapping[str, dict[str, Any]] = MappingProxyType({}), **options: Any):
    """Register an architecture class under ``id``, and under the ids of its ``variants`` with what
    each of them has otherwise.

    ``options`` are the fields of :class:`ArchitectureEntry`, such as ``name``, ``kind``, ``paper``
    and ``recipe``. A variant adds its ``deviations`` to these and leaves out the sentences whose
    beginnings it has in ``without_deviations``; all else that it names replaces. A variant that has
    little in common with the rest takes a decorator of its own. Every argument is a literal (or
    ``Recipe(...)`` or ``Budget(...)`` of literals), because listings are read from the source text.
    """
    return _register("architectures", id, options | {"variants": variants})


def register_input(id: str, **options: Any):
    """Register a source of further numbers for each word under ``id``; ``options`` are the fields
    of :class:`InputEntry`."""
    return _register("inputs", id, options)


def register_task(id: str, **options: Any):
    """Register a task class under ``id``; ``options`` are the fields of :class:`TaskEntry`."""
    return _register("tasks", id, options)


def register_problem(id: str, **options: Any):
    """Register a problem, the class of a task type, under ``id``; ``options`` are the fields of
    :class:`ProblemEntry`."""
    return _register("problems", id, options)


def register_metric(id: str, **options: Any):
    """Register a metric, a function of the predictions and their rows to a number, under ``id``;
    ``options`` are the fields of :class:`MetricEntry`."""
    return _register("metrics", id, options)


def _register(sort: Sort, id: str, options: dict[str, Any]):
    made = _made(sort, id, options)

    def keep(cls: type) -> type:
        for entry in made:
            known = _registered.get((sort, entry.id))
            if known and known[0].__qualname__ != cls.__qualname__:
                raise RegistryError(f"{entry.id} is registered twice: by {known[0].__module__} and by {cls.__module__}")
            _registered[sort, entry.id] = cls, entry.options
        return cls

    return keep


def registered(sort: Sort, id: str) -> dict[str, Any]:
    """Options under which an imported class was registered; equal to what :func:`entries` parsed (a
    test asserts it)."""
    return _registered[sort, id][1]


def registered_in(module: str) -> set[str]:
    """Names of the classes and functions that an imported module has registered."""
    return {cls.__qualname__ for cls, _ in _registered.values() if cls.__module__ == module}


def _made(sort: Sort, id: str, options: dict[str, Any], file: Path = Path(), class_name: str = "") -> list[Entry]:
    """The entry that a decorator declares, and those of its variants."""
    own = dict(options)
    variants: Any = own.pop("variants", {}) if sort == "architectures" else {}
    if not isinstance(id, str):
        raise RegistryError(f"the id is {id!r:.60}, expected str")
    if not fits(variants, dict[str, dict[str, Any]]):
        raise RegistryError(f"{id}: variants is {variants!r:.60}, expected a dict of options by id")
    own = _checked(sort, id, own)
    known = options_of(_ENTRIES[sort])
    needed = [name for name, each in known.items() if each.default is MISSING and each.default_factory is MISSING]
    if missing := [name for name in needed if name not in own]:
        raise RegistryError(f"{id}: {', '.join(missing)} missing")
    entry = _ENTRIES[sort](id=id, file=file, class_name=class_name, **own)
    entry.check()
    if isinstance(entry, TaskEntry):
        types = entries("problems")
        if entry.type not in types and ("problems", entry.type) not in _registered:
            raise RegistryError(f"{id}: type {entry.type!r} is none of {', '.join(types)}")
    return [entry, *(_variant(entry, each, changes) for each, changes in variants.items())]


def _checked(sort: Sort, id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as the fields of an entry; :class:`RegistryError` for an unknown one, or one of
    another type."""
    known = options_of(_ENTRIES[sort])
    for name, value in options.items():
        if name not in known:
            advice = did_you_mean(name, known, f"it takes {', '.join(known)}")
            raise RegistryError(f"{id}: there is no {name}; {advice}")
        if isinstance(value, str) and str(known[name].type).startswith("tuple"):
            raise RegistryError(f"{id}: {name} is one text; a tuple of one is written with a comma: ({value!r},)")
    check_fields(id, _ENTRIES[sort], options)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}


def _variant(base: Entry, id: str, changes: dict[str, Any]) -> Entry:
    """The entry of a variant; an error when it changes or leaves out what there is not."""
    assert isinstance(base, ArchitectureEntry)
    kept, own = list(base.deviations), dict(changes)
    left_out = own.pop("without_deviations", ())
    own = _checked("architectures", id, own)
    for beginning in left_out:
        meant = [sentence for sentence in kept if sentence.startswith(beginning)]
        if len(meant) != 1:
            number = "several deviations" if meant else "no deviation"
            raise RegistryError(f"{id}: without_deviations: {base.id} has {number} {beginning!r}")
        kept.remove(meant[0])
    return replace(base, id=id, **own | {"deviations": (*kept, *own.get("deviations", ()))})


def _parse(file: Path, sort: Sort) -> tuple[Entry, ...]:
    """Entries that the decorators in ``file`` declare, read from the source text; once for each
    version of the file."""
    try:
        status = os.stat(file)
    except OSError as error:
        raise RegistryError(f"{file}: {error}") from error
    return _parsed(file, sort, (status.st_mtime_ns, status.st_size))


@functools.cache
def _parsed(file: Path, sort: Sort, version: tuple[int, int]) -> tuple[Entry, ...]:
    if source := finding.task_source(file):
        return tuple(_described(file, source)) if sort == "tasks" else ()
    return tuple(_declared(file, sort, version))


def _described(file: Path, source: finding.TaskSource) -> list[Entry]:
    """The task that a file describes."""
    id, options = source.entry(file)
    try:
        return _made("tasks", id, options, file, source.class_name)
    except RegistryError as error:
        raise RegistryError(f"{file}: {error}") from error


def _declared(file: Path, sort: Sort, version: tuple[int, int]) -> Iterator[Entry]:
    for each in source_text.declarations(file, sort, version):
        try:
            id, options = each.arguments()
            yield from _made(sort, id, options, file, each.class_name)
        except RegistryError as error:
            raise RegistryError(f"{file}:{each.call.lineno}: @{each.decorator}: {error}") from error


@overload
def entries(sort: Literal["architectures"]) -> dict[str, ArchitectureEntry]: ...
@overload
def entries(sort: Literal["inputs"]) -> dict[str, InputEntry]: ...
@overload
def entries(sort: Literal["tasks"]) -> dict[str, TaskEntry]: ...
@overload
def entries(sort: Literal["problems"]) -> dict[str, ProblemEntry]: ...
@overload
def entries(sort: Literal["metrics"]) -> dict[str, MetricEntry]: ...
@overload
def entries(sort: Sort) -> dict[str, Entry]: ...
def entries(sort: Sort) -> Any:
    """All registered names of a sort, by id, without importing any plugin. A file that cannot be
    parsed is in :func:`broken`."""
    found: dict[str, Entry] = {}
    finding.unreadable[sort] = {}
    for file in dict.fromkeys(finding.files_of(sort)):
        try:
            for entry in _parse(file, sort):
                other = found.setdefault(entry.id, entry)
                if other is not entry:
                    way_out = "; say another id = in one of them" if entry.file.suffix == finding.DESCRIPTION else ""
                    raise RegistryError(
                        f"{entry.id!r} is registered twice: in {other.file} and in {entry.file}{way_out}"
                    )
        except RegistryError as error:
            if "registered twice" in str(error):
                raise
            finding.unreadable[sort][file] = str(error)
    return found


def unlisted(sort: Sort) -> dict[Path, str]:
    """Files that the last :func:`entries` could not read, each with its error."""
    return dict(finding.unreadable[sort])


def declared(file: Path) -> list[Entry]:
    """Entries of all sorts that a file declares, by its source text."""
    return [entry for sort in FOLDERS for entry in _parse(file, sort)]


def check_plugins() -> None:
    """Raise :class:`RegistryError` for a ``--plugin`` file that cannot be read or registers
    nothing."""
    for file in finding.plugin_files():
        if not declared(file):
            raise RegistryError(f"--plugin {file}: registers nothing; {finding.ADVICE}")

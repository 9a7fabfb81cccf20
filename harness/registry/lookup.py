"""Look-up of entries by id, by pattern, and in the order of checks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, overload

from harness.errors import RegistryError, UnknownName, unknown
from harness.registry.declarations import declared, entries
from harness.registry.finding import DESCRIPTION, add_plugin
from harness.registry.loading import broken
from harness.registry.sorts import ArchitectureEntry, Entry, InputEntry, ProblemEntry, Sort, TaskEntry
from harness.settings import FULL, Budget


@overload
def entry(sort: Literal["architectures"], id: str) -> ArchitectureEntry: ...
@overload
def entry(sort: Literal["inputs"], id: str) -> InputEntry: ...
@overload
def entry(sort: Literal["tasks"], id: str) -> TaskEntry: ...
@overload
def entry(sort: Literal["problems"], id: str) -> ProblemEntry: ...
@overload
def entry(sort: Sort, id: str) -> Entry: ...
def entry(sort: Sort, id: str) -> Any:
    """The entry of one id; :class:`UnknownName` with near names and the files that failed
    otherwise."""
    known = entries(sort)
    if id in known:
        return known[id]
    raise unknown_name((sort,), id, known)


def unknown_name(sorts: Sequence[Sort], name: str, known: Iterable[str]) -> UnknownName:
    """The error for a name that none of the ``sorts`` has; it names the files that failed too."""
    what = " or ".join(sort[:-1] for sort in sorts)
    error = unknown(what, name, known, f"see `{' '.join(['archbench list', *(sorts if len(sorts) == 1 else ())])}`")
    failed = {file: reason for sort in sorts for file, reason in broken(sort).items()}
    return UnknownName("\n  ".join([str(error), *(f"{file} could not be read: {why}" for file, why in failed.items())]))


@overload
def match(sort: Literal["architectures"], patterns: str) -> list[ArchitectureEntry]: ...
@overload
def match(sort: Literal["inputs"], patterns: str) -> list[InputEntry]: ...
@overload
def match(sort: Literal["tasks"], patterns: str) -> list[TaskEntry]: ...
@overload
def match(sort: Literal["problems"], patterns: str) -> list[ProblemEntry]: ...
@overload
def match(sort: Sort, patterns: str) -> list[Entry]: ...
def match(sort: Sort, patterns: str) -> Any:
    """Entries whose id fits one of the comma-separated shell wildcards; a pattern that fits nothing
    is an error, and so are none."""
    if not (wanted := comma_separated(patterns)):
        raise RegistryError(
            f"no {sort} are named: expected ids or wildcards with commas between them, found {patterns!r}"
        )
    files = {p: _add_descriptions(p) for p in wanted if sort == "tasks" and p.endswith(DESCRIPTION)}
    known = entries(sort)
    chosen: dict[str, Entry] = {}
    for pattern in wanted:
        found = files.get(pattern, ())
        hits = {id: e for id, e in known.items() if fnmatchcase(id, pattern) or e.file in found}
        if not hits and sort == "tasks" and os.path.isfile(pattern):
            raise RegistryError(f"-t {pattern}: a file of data; `archbench new-task {pattern}` describes it as a task")
        if not hits:
            raise unknown_name((sort,), pattern, known)
        chosen |= hits
    return list(chosen.values())


def comma_separated(text: str) -> list[str]:
    """The names or patterns of an option.

    >>> comma_separated("lstm, *cnn*,")
    ['lstm', '*cnn*']
    """
    return list(filter(None, map(str.strip, text.split(","))))


def _add_descriptions(pattern: str) -> list[Path]:
    """The TOML files of a shell wildcard, which are plugins from now on; an error for one that is
    none."""
    import glob  # most runs have none

    files = [pattern] if os.path.isfile(pattern) else sorted(glob.glob(pattern))
    if not files:
        raise RegistryError(f"-t {pattern}: no such file; `archbench new-task DATA` writes one")
    found = [Path(file).resolve() for file in files]
    for file in found:
        declared(file)
        add_plugin(file)
    return found


def budgets_of(task: TaskEntry) -> dict[str, Budget]:
    """The budgets of a task by name, its own or those of the task that it names; every task has
    ``full``."""
    named = [task.id]
    while isinstance(task.budgets, str):
        if task.budgets in named:
            raise RegistryError(
                f"{task.file}: budgets={task.budgets!r} of {task.id} leads back to itself; name a task that has"
                " budgets of its own"
            )
        named.append(task.budgets)
        task = entry("tasks", task.budgets)
    return task.budgets if FULL in task.budgets else {**task.budgets, FULL: Budget(task.epochs)}


def tasks_to_check_on() -> list[TaskEntry]:
    """The tasks in the order in which architectures are checked on the first that fits: those whose
    generated corpus a bag of words can learn come first, and parts of another one last."""
    return sorted(entries("tasks").values(), key=lambda task: (bool(task.part_of), task.mini_needs_order))

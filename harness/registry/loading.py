"""Import of the one file that holds a wanted class."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.errors import RegistryError
from harness.registry import finding, sorts
from harness.registry.declarations import declared, unlisted
from harness.registry.sorts import Entry, Sort

_broken: dict[Sort, dict[Path, str]] = {sort: {} for sort in sorts.FOLDERS}


def load(entry: Entry) -> type[Any]:
    """Import the file of ``entry`` and return its class; the error names the file when that
    fails."""
    if source := finding.task_source(entry.file):
        return source.class_of(entry.file)
    try:
        name = _shipped_module(entry.file) if entry.shipped else finding.modules.get(entry.file)
        module = sys.modules.get(name or _plugin_module(entry.file))
        if module is None:  # asked first, since a plan of many cells asks often
            with finding.said_when_slow(entry.file):
                module = importlib.import_module(name) if name else _import_file(entry.file)
        cls = getattr(module, entry.class_name)
    except (Exception, SystemExit) as error:  # a plugin may do anything, such as run its command line and exit
        _broken[entry.sort][entry.file] = f"{type(error).__name__}: {error}"
        clash = _clash(entry) if entry.shipped else ""
        raise RegistryError(f"{entry.file} could not be imported: {type(error).__name__}: {error}{clash}") from error
    _broken[entry.sort].pop(entry.file, None)
    entry.check_class(cls)
    return cls


def broken(sort: Sort) -> dict[Path, str]:
    """Files that could not be listed or imported so far, each with its error; the rest works
    without them."""
    return _broken[sort] | unlisted(sort)


def import_other_plugins(needed: Iterable[Entry]) -> None:
    """Import the files of ``--plugin`` that hold none of the ``needed`` entries: nothing else would
    find out that one cannot be imported."""
    files = {entry.file for entry in needed}
    for file in finding.plugin_files():
        if file not in files:
            load(declared(file)[0])


def _clash(entry: Entry) -> str:
    """Half a sentence on a module of a user that was imported in place of one of our folders; empty
    where there is none."""
    folder = sorts.FOLDERS[entry.sort].partition("/")[0]
    other = getattr(sys.modules.get(folder), "__file__", None)
    if other is None or Path(other).resolve().parent == sorts.ROOT / folder:
        return ""
    return f"; {other} has the name of a folder of archbench: rename it"


@functools.cache
def _shipped_module(file: Path) -> str:
    """The name by which a file of ours is imported."""
    return ".".join(file.relative_to(sorts.ROOT).with_suffix("").parts)


@functools.cache
def _plugin_module(file: Path) -> str:
    """Name under which a file of ``--plugin`` is imported."""
    import hashlib  # loads OpenSSL, which a listing does without

    return f"archbench_plugin_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"


def _import_file(file: Path) -> ModuleType:
    name = _plugin_module(file)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise RegistryError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

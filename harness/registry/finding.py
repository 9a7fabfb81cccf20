"""Files that may register something: this package's own, those that installed packages name as
entry points, and those of ``--plugin``."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import RegistryError
from harness.registry import sorts
from harness.registry.sorts import Entry, Sort

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

DESCRIPTION = ".toml"
"""Ending of a file that describes a task of a user's own data (:mod:`harness.user_data`)."""

PATIENCE = 10
"""Seconds after which an import that is still going on is named."""

ADVICE = "write @register(...), or another decorator of harness.registry, above a class (a metric: above a function)"

DECORATOR = re.compile(r"^@(?:harness\.)?(?:registry\.)?register", re.MULTILINE)

_plugins: list[Path] = []
_task_sources: list[TaskSource] = []
modules: dict[Path, str] = {}
"""Names by which files of installed packages are imported."""
unreadable: dict[Sort, dict[Path, str]] = {sort: {} for sort in sorts.FOLDERS}
"""Files that could not be read when a sort was last listed, each with its error."""


class TaskSource(Protocol):
    """A reader of tasks out of files that are no Python: those with the ending
    :data:`DESCRIPTION`."""

    class_name: str

    def entry(self, file: Path) -> tuple[str, dict[str, Any]]:
        """The id of the task that a file describes, and the options of its entry;
        :class:`RegistryError` for a file that describes none."""
        ...

    def class_of(self, file: Path) -> type:
        """The class of the task that a file describes."""
        ...


def offer_tasks(source: TaskSource) -> None:
    """Have descriptions of tasks read by ``source`` from now on."""
    _task_sources[:] = [source]


def task_source(file: Path) -> TaskSource | None:
    """The reader of a file that describes a task; None for a file of Python."""
    return _task_sources[0] if file.suffix == DESCRIPTION else None


def add_plugin(path: str | Path) -> None:
    """Add what ``--plugin`` names to what is listed and loaded from now on: a file (Python, or the
    TOML of a task), or of a folder and of a shell wildcard the Python files with a decorator of
    ours."""
    if os.path.isfile(path):
        files = [str(path)]
    else:
        import glob  # most runs have no plugin, or name its file

        wildcard = os.path.join(glob.escape(str(path)), "*.py") if os.path.isdir(path) else str(path)
        found = glob.glob(wildcard, recursive=True)
        if not found:
            raise RegistryError(f"--plugin {path}: no such file, and no Python file in such a folder or of such a name")
        files = sorted(file for file in found if file.endswith(".py") and has_decorator(file))
        if not files:
            raise RegistryError(f"--plugin {path}: none of its {len(found)} files registers anything; {ADVICE}")
    for file in map(Path.resolve, map(Path, files)):
        if file not in _plugins:
            _plugins.append(file)


def remove_plugin(file: Path) -> None:
    """Take back a file that :func:`add_plugin` added."""
    _plugins.remove(file)


def plugin_files() -> list[Path]:
    """The files given by ``--plugin``, so that a worker process can be given them too."""
    return list(_plugins)


def has_decorator(file: str) -> bool:
    """True for a file with a decorator of ours, by a look at its text; a file that is no text is
    named when it is parsed."""
    try:
        return DECORATOR.search(Path(file).read_text(encoding="utf-8")) is not None
    except (OSError, ValueError):
        return True


def files_of(sort: Sort) -> Iterator[Path]:
    """Every file that may register something: our own folders, installed entry points, then
    ``--plugin`` files."""
    folders = list(filter(os.path.isdir, [os.path.join(sorts.ROOT, sorts.FOLDERS[sort])]))
    if sorts.FOLDERS[sort] == "architectures":
        folders = sorted(f.path for root in folders for f in os.scandir(root) if f.is_dir() and f.name != "blocks")
    for folder in folders:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".py") and name != "__init__.py")
        yield from (_path(f"{folder}/{name}") for name in names)
    for point in _installed(f"archbench.{sort}"):
        try:
            with said_when_slow(point.module):
                spec = importlib.util.find_spec(point.module)
        except (Exception, SystemExit) as error:  # imports the packages above the module, which may do anything
            spec, reason = None, f"{type(error).__name__}: {error}"
        else:
            reason = f"there is no module {point.module}"
        if spec is None or spec.origin is None:
            unreadable[sort][Path(point.value)] = f"entry point {point.name} = {point.value}: {reason}"
            continue
        file = Path(spec.origin).resolve()
        modules[file] = point.module
        yield file
    yield from _plugins


_path = functools.cache(Path)
"""Paths made once: planning a grid asks for them many thousand times."""


@functools.cache
def _installed(group: str) -> tuple[EntryPoint, ...]:
    """Entry points of installed packages in a group."""
    if not _declares_entry_points():
        return ()
    from importlib import metadata

    return tuple(metadata.entry_points(group=group))


def distribution(entry: Entry) -> Distribution | None:
    """The installed package whose entry point names the file of an entry; None for any other
    file."""
    module = modules.get(entry.file)
    points = _installed(f"archbench.{entry.sort}") if module else ()
    return next((point.dist for point in points if point.module == module), None)


@functools.cache
def _declares_entry_points() -> bool:
    """False when no installed package can have an entry point of ours.

    Looking at the files is five times as fast as :mod:`importlib.metadata`, and few machines have
    such a package. Archives, and finders that know packages of their own, are not looked into.
    """
    if any(hasattr(f, "find_distributions") and f is not PathFinder for f in sys.meta_path):
        return True
    for folder in (path or os.curdir for path in sys.path):
        if os.path.isfile(folder):
            return True
        try:
            names = os.listdir(folder)
        except OSError:  # not there, or another user's
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if b"archbench." in file.read():
                            return True
                except OSError:  # most packages have none
                    continue
    return False


@contextmanager
def said_when_slow(what: Path | str) -> Iterator[None]:
    """Says on standard error what is being imported when that takes long: no limit ends it."""
    import threading  # a listing does without

    message = f"archbench: importing {what} takes more than {PATIENCE} s; Ctrl-C gives up"
    timer = threading.Timer(PATIENCE, print, [message], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()

"""Registered architectures, tasks and problems, found without importing them and loaded one at a
time.

A plugin is one Python file. Its classes carry ``@register(...)`` (an architecture) or
``@register_task(...)`` (a task) with literal arguments, so that a listing can be read from the
source text with :mod:`ast`: ``archbench list`` needs neither torch nor the plugin's own imports.
Loading imports the one file that holds the wanted name.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.machinery import PathFinder
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import RegistryError, UnknownName, did_you_mean
from harness.settings import Recipe

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

Sort = Literal["architectures", "tasks", "problems"]
KINDS = ("seq", "text", "tree", "pair", "tag", "span", "answer", "ctc", "generate", "plm", "fit", "regime")
TASK_TYPES = ("classify", "match", "rank", "tag", "extract", "answer", "transcribe")
"""The task types of this package; plugins may register more with :func:`register_problem`."""


@dataclass(frozen=True)
class Entry:
    """One registered architecture or task: what its decorator says, and where it stands.

    ``options`` holds the decorator's keyword arguments (an architecture's kind, paper, recipe, ...;
    a task's type, metrics, ...).
    """

    id: str
    sort: Sort
    file: Path
    class_name: str
    options: MappingProxyType[str, Any] = field(hash=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.options[name]
        except KeyError:
            raise AttributeError(f"{self.id} ({self.file}) does not declare {name!r}") from None

    @property
    def family(self) -> str:
        """Folder of the file: the architecture's family."""
        return self.file.parent.name


# --- what plugin files write ---

_registered: dict[tuple[Sort, str], tuple[type, dict[str, Any]]] = {}


def register(
    id: str,
    *,
    name: str,
    kind: str,
    paper: str,
    source: str,
    year: int,
    recipe: Recipe = Recipe(),
    hyperparameters: dict[str, Any] = MappingProxyType({}),
    tiny: dict[str, Any] = MappingProxyType({}),
    deviations: tuple[str, ...] = (),
    vectors_of_paper: str | None = None,
    version: int = 1,
    variants: dict[str, dict[str, Any]] = MappingProxyType({}),
):
    """Register an architecture class under ``id``, and under the ids of its ``variants`` with what
    each of them has otherwise.

    ``hyperparameters`` fixes constructor arguments for an id; ``tiny`` are sizes for the contract
    tests; ``deviations`` says, one sentence each, where this differs from the paper;
    ``vectors_of_paper`` names the word vectors that the paper starts from ("word2vec"), for a note
    at results without any; ``version`` is raised when results would change.
    A variant adds its ``deviations`` to these and leaves out the sentences that it repeats in
    ``without_deviations``; all else that it names replaces. A variant that has little in common
    with the rest takes a decorator of its own. Every argument is a literal (or ``Recipe(...)`` of
    literals), because listings are read from the source text.
    """
    if kind not in KINDS:
        raise RegistryError(f"{id}: kind {kind!r} is none of {', '.join(KINDS)}")
    options = dict(
        name=name,
        kind=kind,
        paper=paper,
        source=source,
        year=year,
        recipe=recipe,
        hyperparameters=dict(hyperparameters),
    )
    options |= dict(tiny=dict(tiny), deviations=deviations, vectors_of_paper=vectors_of_paper, version=version)
    return _register("architectures", _with_variants(id, options, variants))


def _with_variants(id: str, options: dict[str, Any], variants: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Options of ``id`` and of each of its variants, by id; an error for a variant that changes or
    leaves out what there is not."""
    options_of = {id: options}
    for variant, changes in variants.items():
        if unknown := set(changes) - {*options, "without_deviations"}:
            raise RegistryError(
                f"{variant}: a variant has no {', '.join(sorted(unknown))}; it may change {', '.join(options)}"
            )
        kept, own = list(options["deviations"]), dict(changes)
        for sentence in own.pop("without_deviations", ()):
            if sentence not in kept:
                raise RegistryError(f"{variant}: without_deviations: {id} has no deviation {sentence!r}")
            kept.remove(sentence)
        options_of[variant] = options | own | {"deviations": (*kept, *own.get("deviations", ()))}
    return options_of


def register_task(
    id: str,
    *,
    name: str,
    type: str,
    metrics: tuple[str, ...],
    main_metric: str,
    sizes: dict[str, int],
    epochs: int,
    protocol: str,
    version: int = 1,
):
    """Register a task class under ``id``.

    ``sizes`` are the official counts per split (a smaller training set makes a record ``partial``),
    ``epochs`` the most passes that protocol ``equal`` allows on it, ``protocol`` the choices of
    this adapter in words.
    """
    types = entries("problems")
    if type not in types and ("problems", type) not in _registered:
        raise RegistryError(f"{id}: type {type!r} is none of {', '.join(types)}")
    if main_metric not in metrics:
        raise RegistryError(f"{id}: main metric {main_metric!r} is not among its metrics {metrics}")
    options = dict(name=name, type=type, metrics=metrics, main_metric=main_metric, sizes=sizes, epochs=epochs)
    return _register("tasks", {id: options | dict(protocol=protocol, version=version)})


def register_problem(
    id: str,
    *,
    name: str,
    columns: tuple[str, ...],
    inputs: tuple[str, ...],
    texts: tuple[str, ...],
    metrics: tuple[str, ...],
    unit_texts: tuple[str, ...] | None = None,
    cluster: str | None = None,
    unit: str = "example",
    survey: str | None = None,
    short_predictions: bool = True,
    forms: dict[str, str] = MappingProxyType({}),
):
    """Register a problem, the class of a task type, under ``id``.

    ``columns`` are those that every row has beside ``id``, ``inputs`` those that a system may read;
    ``texts`` are the inputs that are texts, ``unit_texts`` the columns in whose words the length of
    a unit is counted (by default ``texts``). ``metrics`` fit its predictions, ``unit`` is what a
    score is a mean over, ``cluster`` the column that dependent rows share. ``survey`` is the table
    of the leaderboard that its tasks belong to; ``short_predictions`` says that predictions are
    words or sentences, which the leaderboard shows beside each other. ``forms`` names the form of a
    column (:data:`harness.rows.FORMS`), which every row is checked for; ``texts`` have one without.
    """
    if missing := set(texts) - set(inputs):
        raise RegistryError(f"{id}: texts that are no inputs: {', '.join(sorted(missing))}")
    options = dict(name=name, columns=columns, inputs=inputs, texts=texts, metrics=metrics, cluster=cluster)
    options |= dict(unit_texts=unit_texts, unit=unit, survey=survey, short_predictions=short_predictions, forms=forms)
    return _register("problems", {id: options})


def _register(sort: Sort, options_of: dict[str, dict[str, Any]]):
    def keep(cls: type) -> type:
        for id, options in options_of.items():
            known = _registered.get((sort, id))
            if known and known[0].__qualname__ != cls.__qualname__:
                raise RegistryError(f"{id} is registered twice: by {known[0].__module__} and by {cls.__module__}")
            _registered[sort, id] = cls, options
        return cls

    return keep


# --- what the harness asks ---

_CHECKS = {"architectures": register, "tasks": register_task, "problems": register_problem}
_DECORATORS: dict[str, Sort] = {"register": "architectures", "register_task": "tasks", "register_problem": "problems"}
_DEFAULTS: dict[Sort, dict[str, Any]] = {
    "architectures": dict(
        recipe=Recipe(), hyperparameters={}, tiny={}, deviations=(), vectors_of_paper=None, version=1
    ),
    "tasks": dict(version=1),
    "problems": dict(unit_texts=None, cluster=None, unit="example", survey=None, short_predictions=True, forms={}),
}
_ROOT = Path(__file__).resolve().parent.parent
_FOLDERS: dict[Sort, str] = {"architectures": "architectures", "tasks": "tasks", "problems": "harness/problems"}
_plugins: list[Path] = []


def add_plugin(path: str | Path) -> None:
    """Add one plugin file (``--plugin path/to/file.py``) to what is listed and loaded from now
    on."""
    path = Path(path).resolve()
    if not path.is_file():
        raise RegistryError(f"--plugin {path}: no such file")
    if path not in _plugins:
        _plugins.append(path)


def plugin_files() -> list[Path]:
    """The files given by ``--plugin``, so that a worker process can be given them too."""
    return list(_plugins)


def _files(sort: Sort) -> Iterator[Path]:
    """Every file that may register something: our own folders, installed entry points, then
    ``--plugin`` files."""
    pattern = "*/*.py" if sort == "architectures" else "*.py"
    yield from sorted(
        f
        for f in (_ROOT / _FOLDERS[sort]).glob(pattern)
        if f.stem != "__init__" and f.parent.name not in ("blocks", "mini", "readers")
    )
    for point in _installed(f"archbench.{sort}"):
        try:
            spec = importlib.util.find_spec(point.module)
        except Exception as error:  # the packages above the module are imported for this, and may do anything
            spec, reason = None, f"{type(error).__name__}: {error}"
        else:
            reason = f"there is no module {point.module}"
        if spec is None or spec.origin is None:
            _unlisted[sort][Path(point.value)] = f"entry point {point.name} = {point.value}: {reason}"
            continue
        file = Path(spec.origin).resolve()
        _modules[file] = point.module
        yield file
    yield from _plugins


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
    module = _modules.get(entry.file)
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
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if b"archbench." in file.read():
                            return True
                except OSError:  # most packages have none
                    continue
    return False


def _literal(node: ast.expr) -> Any:
    """Value of a literal, in which ``Recipe(...)`` with literal arguments may stand."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Recipe":
        return Recipe(**{str(k.arg): ast.literal_eval(k.value) for k in node.keywords})
    if isinstance(node, ast.Dict) and all(node.keys):
        return {ast.literal_eval(key): _literal(value) for key, value in zip(node.keys, node.values, strict=True)}
    return ast.literal_eval(node)


def _parse(file: Path, sort: Sort) -> tuple[Entry, ...]:
    """Entries that the decorators in ``file`` declare, read from the source text; once for each
    version of the file."""
    try:
        status = file.stat()
    except OSError as error:
        raise RegistryError(f"{file}: {error}") from error
    return _parsed(file, sort, (status.st_mtime_ns, status.st_size))


@functools.cache
def _parsed(file: Path, sort: Sort, version: tuple[int, int]) -> tuple[Entry, ...]:
    return tuple(_declared(file, sort, version))


_DECLARATION = re.compile(r"^@register.*?^class \w+", re.MULTILINE | re.DOTALL)


def _declarations(source: str) -> str:
    """The decorators of a file, each above an empty class, at their own line numbers."""
    text = ""
    for match in _DECLARATION.finditer(source):
        gap = source.count("\n", 0, match.start()) - text.count("\n")
        text += "\n" * gap + match[0] + ": pass\n"
    return text


@functools.cache
def _tree(file: Path, _version: tuple[int, int]) -> ast.Module:
    """Syntax tree of a foreign file, or of the decorators of one of our own.

    That is 15 times as fast. The rest of our own files is checked by tests, and on import.
    """
    try:
        source = file.read_text(encoding="utf-8")
        if file not in _plugins and file not in _modules:
            with suppress(SyntaxError):  # an error in the whole file is named instead
                declarations = _declarations(source)
                return ast.parse(declarations) if declarations else ast.Module(body=[], type_ignores=[])
        return ast.parse(source)
    except SyntaxError as error:
        raise RegistryError(f"{file}:{error.lineno}: {error.msg}") from error
    except (OSError, ValueError) as error:  # not UTF-8, null bytes
        raise RegistryError(f"{file}: {error}") from error


def _declared(file: Path, sort: Sort, version: tuple[int, int]) -> Iterator[Entry]:
    for node in _tree(file, version).body:
        for call in node.decorator_list if isinstance(node, ast.ClassDef) else []:
            if not isinstance(call, ast.Call) or _DECORATORS.get(getattr(call.func, "id", "")) != sort:
                continue
            try:
                id = ast.literal_eval(call.args[0])
                options = {str(k.arg): _literal(k.value) for k in call.keywords}
            except TypeError as error:  # Recipe(...) with a name it does not have
                raise RegistryError(f"{file}:{call.lineno}: @{call.func.id}: {error}") from error
            except (ValueError, IndexError) as error:
                raise RegistryError(
                    f"{file}:{call.lineno}: arguments of @{call.func.id} must be literals, the id first"
                ) from error
            try:
                _CHECKS[sort](id, **options)
            except (TypeError, RegistryError) as error:
                raise RegistryError(f"{file}:{call.lineno}: @{call.func.id}: {error}") from error
            variants = options.pop("variants", {})
            options = _DEFAULTS[sort] | options
            for each, own in _with_variants(id, options, variants).items():
                yield Entry(each, sort, file, node.name, MappingProxyType(own))


def entries(sort: Sort) -> dict[str, Entry]:
    """All registered names of a sort, by id, without importing any plugin. A file that cannot be
    parsed is in :func:`broken`."""
    found: dict[str, Entry] = {}
    _unlisted[sort] = {}
    for file in dict.fromkeys(_files(sort)):
        try:
            for entry in _parse(file, sort):
                other = found.setdefault(entry.id, entry)
                if other is not entry:
                    raise RegistryError(f"{entry.id!r} is registered twice: in {other.file} and in {entry.file}")
        except RegistryError as error:
            if "registered twice" in str(error):
                raise
            _unlisted[sort][file] = str(error)
    return found


_unlisted: dict[Sort, dict[Path, str]] = {sort: {} for sort in _FOLDERS}
_broken: dict[Sort, dict[Path, str]] = {sort: {} for sort in _FOLDERS}
_modules: dict[Path, str] = {}


def unlisted(sort: Sort) -> dict[Path, str]:
    """Files that the last :func:`entries` could not read, each with its error."""
    return dict(_unlisted[sort])


def broken(sort: Sort) -> dict[Path, str]:
    """Files that could not be listed or imported so far, each with its error; the rest works
    without them."""
    return _broken[sort] | _unlisted[sort]


def entry(sort: Sort, id: str) -> Entry:
    """The entry of one id; :class:`UnknownName` with near names and the files that failed
    otherwise."""
    known = entries(sort)
    if id in known:
        return known[id]
    raise UnknownName(_unknown(sort, id, known))


def _unknown(sort: Sort, id: str, known: dict[str, Entry]) -> str:
    message = f"no {sort[:-1]} is called {id!r}" + "; " + did_you_mean(id, known, f"see `archbench list {sort}`")
    for file, error in broken(sort).items():
        message += f"\n  {file} could not be read: {error}"
    return message


def match(sort: Sort, patterns: str) -> list[Entry]:
    """Entries whose id fits one of the comma-separated shell wildcards; a pattern that fits nothing
    is an error."""
    known = entries(sort)
    chosen: dict[str, Entry] = {}
    for pattern in filter(None, (p.strip() for p in patterns.split(","))):
        hits = {id: e for id, e in known.items() if fnmatchcase(id, pattern)}
        if not hits:
            raise UnknownName(_unknown(sort, pattern, known))
        chosen |= hits
    return list(chosen.values())


def load(entry: Entry) -> type:
    """Import the file of ``entry`` and return its class; the error names the file when that
    fails."""
    try:
        name = _modules.get(entry.file)
        if entry.file.is_relative_to(_ROOT / _FOLDERS[entry.sort]):
            name = ".".join(entry.file.relative_to(_ROOT).with_suffix("").parts)
        module = importlib.import_module(name) if name else _import_file(entry.file)
    except Exception as error:
        _broken[entry.sort][entry.file] = f"{type(error).__name__}: {error}"
        raise RegistryError(f"{entry.file} could not be imported: {type(error).__name__}: {error}") from error
    _broken[entry.sort].pop(entry.file, None)
    return getattr(module, entry.class_name)


def _import_file(file: Path):
    import hashlib  # loads OpenSSL, which a listing does without

    name = f"archbench_plugin_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
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


def registered(sort: Sort, id: str) -> dict[str, Any]:
    """Options under which an imported class was registered; equal to what :func:`entries` parsed (a
    test asserts it)."""
    return _registered[sort, id][1]

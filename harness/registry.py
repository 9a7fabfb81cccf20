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
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from importlib.machinery import PathFinder
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from harness.errors import RegistryError, UnknownName, unknown
from harness.settings import FULL, ROLES, Budget, Recipe

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

Sort = Literal["architectures", "inputs", "tasks", "problems", "metrics"]
KINDS = (
    "seq",
    "text",
    "tree",
    "pair",
    "tag",
    "span",
    "answer",
    "ctc",
    "generate",
    "lm",
    "plm",
    "fit",
    "regime",
    "floor",
)
TASK_TYPES = (
    "classify",
    "multilabel",
    "language_model",
    "text",
    "match",
    "rank",
    "tag",
    "extract",
    "answer",
    "transcribe",
    "translate",
    "regress",
    "regress_pair",
)
"""The task types of this package; plugins may register more with :func:`register_problem`."""

REFERENCE = "reference"
"""``source`` of a system of no paper, which everybody compares with."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One registered class: its place, and in subclasses the options of its decorator."""

    id: str
    file: Path
    class_name: str
    sort: ClassVar[Sort]

    @property
    def family(self) -> str:
        """Folder of the file: the architecture's family."""
        return self.file.parent.name

    @property
    def shipped(self) -> bool:
        """True for one of this package's own, as against a plugin's."""
        return self.file.is_relative_to(_ROOT / _FOLDERS[self.sort])

    def check(self) -> None:
        """Raise :class:`RegistryError` for options that do not fit each other."""

    @property
    def options(self) -> dict[str, Any]:
        """The decorator's keyword arguments by name, defaults included."""
        return {name: getattr(self, name) for name in _options(type(self))}


@dataclass(frozen=True, kw_only=True)
class ArchitectureEntry(Entry):
    """One id of an architecture."""

    sort = "architectures"
    name: str
    kind: str
    paper: str
    source: str
    year: int
    recipe: Recipe = Recipe()
    hyperparameters: dict[str, Any] = field(default_factory=dict, hash=False)
    """Constructor arguments that are fixed for this id."""
    tiny: dict[str, Any] = field(default_factory=dict, hash=False)
    """Sizes for the contract tests."""
    deviations: tuple[str, ...] = ()
    """Sentences, each on one difference from the paper."""
    sees: tuple[str, ...] = ()
    """Data that it learns from beside the labelled training examples, such as "texts of test"."""
    vectors_of_paper: str | None = None
    """Word vectors that the paper starts from ("word2vec"), for a note at results without any."""
    parents: dict[str, str] = field(default_factory=dict, hash=False)
    """Architectures that are trained first, by the role in which this one starts from them
    (:data:`harness.settings.ROLES`): ``"some_lm"``, or ``"some_lm@task"`` for another task than the
    cell's."""
    version: int = 1
    """Raised when results would change."""

    @property
    def is_reference(self) -> bool:
        """True for a system of no paper, which has no home, no settings of a paper and no published
        scores."""
        return self.source == REFERENCE

    def check(self) -> None:
        if self.kind not in KINDS:
            raise RegistryError(f"{self.id}: kind {self.kind!r} is none of {', '.join(KINDS)}")
        if strange := [role for role in self.parents if role not in ROLES]:
            raise RegistryError(f"{self.id}: parents: role {strange[0]!r} is none of {', '.join(ROLES)}")


@dataclass(frozen=True, kw_only=True)
class InputEntry(Entry):
    """A source of further numbers for each word, which a run names by ``--inputs``."""

    sort = "inputs"
    name: str
    paper: str
    source: str
    year: int
    tiny: dict[str, Any] = field(default_factory=dict, hash=False)
    """Sizes for the contract tests."""
    deviations: tuple[str, ...] = ()
    """Sentences, each on one difference from the paper."""
    version: int = 1
    """Raised when results would change."""


@dataclass(frozen=True, kw_only=True)
class TaskEntry(Entry):
    """A task."""

    sort = "tasks"
    name: str
    type: str
    metrics: tuple[str, ...]
    main_metric: str
    sizes: dict[str, int] = field(hash=False)
    """Official counts per split; a smaller training set makes a record ``partial``."""
    protocol: str
    """Choices of the adapter, in words."""
    epochs: int = 10
    """Passes of the budget ``full`` where ``budgets`` has none."""
    budgets: dict[str, Budget] | str = field(default_factory=dict, hash=False)
    """Amounts of training by name, the smallest first; ``full`` has all examples. Or the id of the
    task that has the same."""
    dropout: float = 0.1
    """Dropout of all encoders in protocol ``equal``."""
    equal_view: dict[str, Any] = field(default_factory=dict, hash=False)
    """Settings that protocol ``equal`` gives to views that have them, such as the sampling rate."""
    mini_needs_order: bool = False
    """True where the words of a text, without their order, do not tell its label in the generated
    corpus: architectures are checked on other tasks of the type first."""
    version: int = 1

    def check(self) -> None:
        if self.main_metric not in self.metrics:
            raise RegistryError(f"{self.id}: main metric {self.main_metric!r} is not among its metrics {self.metrics}")
        if isinstance(self.budgets, str):
            return
        sizes = [math.inf if each.examples is None else each.examples for each in self.budgets.values()]
        if sizes != sorted(sizes):
            raise RegistryError(f"{self.id}: budgets {', '.join(self.budgets)}: a later one has fewer examples")
        if FULL in self.budgets and self.budgets[FULL].examples is not None:
            raise RegistryError(f"{self.id}: budget {FULL} has all examples, not {self.budgets[FULL].examples}")

    @property
    def all_budgets(self) -> dict[str, Budget]:
        """The budgets, of which every task has ``full``."""
        if isinstance(self.budgets, str):
            return entry("tasks", self.budgets).all_budgets
        return self.budgets if FULL in self.budgets else {**self.budgets, FULL: Budget(self.epochs)}


@dataclass(frozen=True, kw_only=True)
class ProblemEntry(Entry):
    """A task type."""

    sort = "problems"
    name: str
    columns: tuple[str, ...]
    """Columns that every row has beside ``id``."""
    inputs: tuple[str, ...]
    """Columns that a system may read."""
    texts: tuple[str, ...]
    """Inputs that are texts."""
    metrics: tuple[str, ...]
    """Metrics that fit its predictions."""
    unit_texts: tuple[str, ...] | None = None
    """Columns in whose words the length of a unit is counted; None for ``texts``."""
    cluster: str | None = None
    """Column that dependent rows share; a row without it depends on no other."""
    stratum: str | None = None
    """Column of whose values a sample of the rows has as large shares as all rows."""
    equal_view: dict[str, Any] = field(default_factory=dict, hash=False)
    """Settings that protocol ``equal`` gives to views of words on such tasks, where they have
    them."""
    unit: str = "example"
    """One of those that a score is a mean over."""
    survey: str | None = None
    """Table of the leaderboard that its tasks belong to."""
    answers: str = "harness.problems.answers.base:Answers"
    """Class that says how its answers read, as module and name
    (:func:`harness.problems.answers.answers_of`); the default is for texts."""
    forms: dict[str, str] = field(default_factory=dict, hash=False)
    """Forms of columns (:data:`harness.rows.FORMS`), which every row is checked for; ``texts`` have
    one without."""

    def check(self) -> None:
        if missing := set(self.texts) - set(self.inputs):
            raise RegistryError(f"{self.id}: texts that are no inputs: {', '.join(sorted(missing))}")


@dataclass(frozen=True, kw_only=True)
class MetricEntry(Entry):
    """A metric: a function of the predictions and their rows to a number."""

    sort = "metrics"
    name: str
    """Label on pages."""
    better: Literal["higher", "lower"] = "higher"
    """Direction: ``higher`` or ``lower``."""
    unit: str = "%"
    """Unit of the shown value: "%" shows a fraction in percent, any other the number itself."""
    digits: int = 1
    """Decimals of the shown value."""
    per_row: bool = False
    """True where the function takes one prediction and its row, and the metric is the mean: only
    such a metric has intervals, paired tests and an error analysis."""

    def check(self) -> None:
        if self.better not in ("higher", "lower"):
            raise RegistryError(f'{self.id}: better={self.better!r} is neither "higher" nor "lower"')


_ENTRIES: dict[Sort, type[Entry]] = {
    "architectures": ArchitectureEntry,
    "inputs": InputEntry,
    "tasks": TaskEntry,
    "problems": ProblemEntry,
    "metrics": MetricEntry,
}


def _options(entry_class: type[Entry]) -> dict[str, Field[Any]]:
    """Options of a decorator, by name: the fields that its entries have beside their place."""
    place = {each.name for each in fields(Entry)}
    return {each.name: each for each in fields(entry_class) if each.name not in place}


# --- what plugin files write ---

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


def _made(sort: Sort, id: str, options: dict[str, Any], file: Path = Path(), class_name: str = "") -> list[Entry]:
    """The entry that a decorator declares, and those of its variants."""
    known = _options(_ENTRIES[sort])
    own = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    variants: Any = own.pop("variants", {}) if sort == "architectures" else {}
    if unknown := set(own) - set(known):
        raise RegistryError(f"{id}: there is no {', '.join(sorted(unknown))}; it takes {', '.join(known)}")
    needed = [name for name, each in known.items() if each.default is MISSING and each.default_factory is MISSING]
    if missing := [name for name in needed if name not in own]:
        raise RegistryError(f"{id}: {', '.join(missing)} missing")
    for name, value in own.items():
        if isinstance(value, str) and str(known[name].type).startswith("tuple"):
            raise RegistryError(f"{id}: {name} is one text; a tuple of one is written with a comma: ({value!r},)")
    entry = _ENTRIES[sort](id=id, file=file, class_name=class_name, **own)
    entry.check()
    if isinstance(entry, TaskEntry):
        types = entries("problems")
        if entry.type not in types and ("problems", entry.type) not in _registered:
            raise RegistryError(f"{id}: type {entry.type!r} is none of {', '.join(types)}")
    return [entry, *(_variant(entry, each, changes) for each, changes in variants.items())]


def _variant(base: Entry, id: str, changes: dict[str, Any]) -> Entry:
    """The entry of a variant; an error when it changes or leaves out what there is not."""
    assert isinstance(base, ArchitectureEntry)
    options = _options(ArchitectureEntry)
    if unknown := set(changes) - {*options, "without_deviations"}:
        raise RegistryError(f"{id}: a variant has no {', '.join(sorted(unknown))}; it may change {', '.join(options)}")
    kept, own = list(base.deviations), dict(changes)
    for beginning in own.pop("without_deviations", ()):
        meant = [sentence for sentence in kept if sentence.startswith(beginning)]
        if len(meant) != 1:
            number = "several deviations" if meant else "no deviation"
            raise RegistryError(f"{id}: without_deviations: {base.id} has {number} {beginning!r}")
        kept.remove(meant[0])
    return replace(base, id=id, **own | {"deviations": (*kept, *own.get("deviations", ()))})


# --- what the harness asks ---

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

_ROOT = Path(__file__).resolve().parent.parent
_FOLDERS: dict[Sort, str] = {
    "architectures": "architectures",
    "inputs": "architectures",
    "tasks": "tasks",
    "problems": "harness/problems",
    "metrics": "harness/metrics",
}
_plugins: list[Path] = []

DESCRIPTION = ".toml"
"""Ending of a file that describes a task of a user's own data (:mod:`harness.own`)."""

PATIENCE = 10
"""Seconds after which an import that is still going on is named."""


def add_plugin(path: str | Path) -> None:
    """Add what ``--plugin`` names to what is listed and loaded from now on: a file (Python, or the
    TOML of a task), or of a folder and of a shell wildcard the Python files with a decorator of
    ours."""
    if os.path.isfile(path):
        files = [str(path)]
    else:
        import glob  # most runs have no plugin, or name its file

        found = glob.glob(os.path.join(path, "*.py") if os.path.isdir(path) else str(path), recursive=True)
        if not found:
            raise RegistryError(f"--plugin {path}: no such file, and no Python file in such a folder or of such a name")
        files = sorted(file for file in found if file.endswith(".py") and _has_decorator(file))
        if not files:
            raise RegistryError(f"--plugin {path}: none of its {len(found)} files registers anything; {_ADVICE}")
    for file in map(Path.resolve, map(Path, files)):
        if file not in _plugins:
            _plugins.append(file)


def remove_plugin(file: Path) -> None:
    """Take back a file that :func:`add_plugin` added."""
    _plugins.remove(file)


_ADVICE = "write @register(...), or another decorator of harness.registry, above a class (a metric: above a function)"


def check_plugins() -> None:
    """Raise :class:`RegistryError` for a ``--plugin`` file that cannot be read or registers
    nothing."""
    for file in _plugins:
        if not declared(file):
            raise RegistryError(f"--plugin {file}: registers nothing; {_ADVICE}")


def declared(file: Path) -> list[Entry]:
    """Entries of all sorts that a file declares, by its source text."""
    return [entry for sort in _FOLDERS for entry in _parse(file, sort)]


def plugin_files() -> list[Path]:
    """The files given by ``--plugin``, so that a worker process can be given them too."""
    return list(_plugins)


def _files(sort: Sort) -> Iterator[Path]:
    """Every file that may register something: our own folders, installed entry points, then
    ``--plugin`` files."""
    folders = list(filter(os.path.isdir, [os.path.join(_ROOT, _FOLDERS[sort])]))
    if _FOLDERS[sort] == "architectures":
        folders = sorted(f.path for root in folders for f in os.scandir(root) if f.is_dir() and f.name != "blocks")
    for folder in folders:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".py") and name != "__init__.py")
        yield from (_path(f"{folder}/{name}") for name in names)
    for point in _installed(f"archbench.{sort}"):
        try:
            with _said_when_slow(point.module):
                spec = importlib.util.find_spec(point.module)
        except (Exception, SystemExit) as error:  # imports the packages above the module, which may do anything
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
    """Value of a literal, in which ``Recipe(...)`` and ``Budget(...)`` with literal arguments may
    stand."""
    if isinstance(node, ast.Call) and (made := {"Recipe": Recipe, "Budget": Budget}.get(getattr(node.func, "id", ""))):
        return made(*map(ast.literal_eval, node.args), **{str(k.arg): ast.literal_eval(k.value) for k in node.keywords})
    if isinstance(node, ast.Dict):
        keys = [ast.literal_eval(key) for key in node.keys if key is not None]
        return dict(zip(keys, map(_literal, node.values), strict=True))
    return ast.literal_eval(node)


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
    if file.suffix == DESCRIPTION:
        return tuple(_described(file)) if sort == "tasks" else ()
    return tuple(_declared(file, sort, version))


def _described(file: Path) -> list[Entry]:
    """The task that a TOML file describes."""
    id, options = importlib.import_module("harness.own.description").entry(file)
    try:
        return _made("tasks", id, options, file, "OwnTask")
    except RegistryError as error:
        raise RegistryError(f"{file}: {error}") from error


_DECORATOR = re.compile(r"^@(?:harness\.)?(?:registry\.)?register", re.MULTILINE)
_DECLARATION = re.compile(_DECORATOR.pattern + r".*?^class \w+", re.MULTILINE | re.DOTALL)


def _has_decorator(file: str) -> bool:
    """True for a file with a decorator of ours, by a look at its text; a file that is no text is
    named when it is parsed."""
    try:
        return _DECORATOR.search(Path(file).read_text(encoding="utf-8")) is not None
    except (OSError, ValueError):
        return True


def _is_ours(file: Path) -> bool:
    return str(file).startswith(tuple(os.path.join(_ROOT, folder, "") for folder in _FOLDERS.values()))


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
        if _is_ours(file):
            with suppress(SyntaxError):  # an error in the whole file is named instead
                declarations = _declarations(source)
                return ast.parse(declarations) if declarations else ast.Module(body=[], type_ignores=[])
        return ast.parse(source)
    except SyntaxError as error:
        raise RegistryError(f"{file}:{error.lineno}: {error.msg}") from error
    except (OSError, ValueError) as error:  # not UTF-8, null bytes
        raise RegistryError(f"{file}: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise RegistryError(f"{file}: nested too deeply for Python's parser") from error


def _declared(file: Path, sort: Sort, version: tuple[int, int]) -> Iterator[Entry]:
    for node in _tree(file, version).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if not isinstance(call, ast.Call) or _DECORATORS.get(decorator := _dotted(call.func)) != sort:
                continue
            try:
                id, options = _arguments(call)
                yield from _made(sort, id, options, file, node.name)
            except RegistryError as error:
                raise RegistryError(f"{file}:{call.lineno}: @{decorator}: {error}") from error


def is_decorator(function: ast.expr) -> bool:
    """True for the name of a decorator of ours, as a file may write it."""
    return _dotted(function) in _DECORATORS


def _dotted(node: ast.expr) -> str:
    """A name as it is written, with dots; empty for another expression."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _arguments(call: ast.Call) -> tuple[str, dict[str, Any]]:
    """The id and the options that a decorator is given."""
    try:
        return ast.literal_eval(call.args[0]), {str(k.arg): _literal(k.value) for k in call.keywords}
    except TypeError as error:  # Recipe(...) with a name it does not have
        raise RegistryError(str(error)) from error
    except (ValueError, IndexError) as error:
        raise RegistryError("its arguments must be literals, the id first") from error


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
    is an error."""
    wanted = comma_separated(patterns)
    files = {p: _add_descriptions(p) for p in wanted if sort == "tasks" and p.endswith(DESCRIPTION)}
    known = entries(sort)
    chosen: dict[str, Entry] = {}
    for pattern in wanted:
        found = files.get(pattern, ())
        hits = {id: e for id, e in known.items() if fnmatchcase(id, pattern) or e.file in found}
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
        _parse(file, "tasks")
        add_plugin(file)
    return found


def tasks_to_check_on() -> list[TaskEntry]:
    """The tasks in the order in which architectures are checked on the first that fits: those whose
    generated corpus a bag of words can learn come first."""
    return sorted(entries("tasks").values(), key=lambda task: task.mini_needs_order)


@functools.cache
def _shipped_module(file: Path) -> str:
    """The name by which a file of ours is imported."""
    return ".".join(file.relative_to(_ROOT).with_suffix("").parts)


def load(entry: Entry) -> type:
    """Import the file of ``entry`` and return its class; the error names the file when that
    fails."""
    if entry.file.suffix == DESCRIPTION:
        return importlib.import_module("harness.own.task").class_of(entry.file)
    try:
        name = _shipped_module(entry.file) if entry.shipped else _modules.get(entry.file)
        module = sys.modules.get(name or _plugin_module(entry.file))
        if module is None:  # asked first, since a plan of many cells asks often
            with _said_when_slow(entry.file):
                module = importlib.import_module(name) if name else _import_file(entry.file)
        cls = getattr(module, entry.class_name)
    except (Exception, SystemExit) as error:  # a plugin may do anything, such as run its command line and exit
        _broken[entry.sort][entry.file] = f"{type(error).__name__}: {error}"
        clash = _clash(entry) if entry.shipped else ""
        raise RegistryError(f"{entry.file} could not be imported: {type(error).__name__}: {error}{clash}") from error
    _broken[entry.sort].pop(entry.file, None)
    return cls


def import_other_plugins(needed: Iterable[Entry]) -> None:
    """Import the files of ``--plugin`` that hold none of the ``needed`` entries: nothing else would
    find out that one cannot be imported."""
    files = {entry.file for entry in needed}
    for file in plugin_files():
        if file not in files:
            load(declared(file)[0])


def _clash(entry: Entry) -> str:
    """Half a sentence on a module of a user that was imported in place of one of our folders; empty
    where there is none."""
    folder = _FOLDERS[entry.sort].partition("/")[0]
    other = getattr(sys.modules.get(folder), "__file__", None)
    if other is None or Path(other).resolve().parent == _ROOT / folder:
        return ""
    return f"; {other} has the name of a folder of archbench: rename it"


@contextmanager
def _said_when_slow(what: Path | str) -> Iterator[None]:
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


def registered(sort: Sort, id: str) -> dict[str, Any]:
    """Options under which an imported class was registered; equal to what :func:`entries` parsed (a
    test asserts it)."""
    return _registered[sort, id][1]


def registered_in(module: str) -> set[str]:
    """Names of the classes and functions that an imported module has registered."""
    return {cls.__qualname__ for cls, _ in _registered.values() if cls.__module__ == module}

"""Runs of a grid from Python."""

from __future__ import annotations

import inspect
import math
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.records import Record

_COUNTS = ("workers", "threads", "devices", "max_train", "labels", "max_epochs", "memory_limit")
_OPTIONS = {"architectures": "-a", "tasks": "-t", "plugins": "--plugin", "overrides": "-o", "parents": "--parent"}
_SUCH_AS = {"overrides": '{"dan.hidden": 100}', "parents": '{"vectors": "skipgram"}'}
_one_at_a_time = threading.Lock()


def run(
    architectures: str | Sequence[str] = "*",
    tasks: str | Path | Sequence[str | Path] = "*",
    *,
    seeds: Sequence[int] = (0,),
    home: bool = False,
    plugins: str | Path | Sequence[str | Path] = (),
    shard: str | None = None,
    retry_failed: bool = False,
    changed: bool = False,
    dry_run: bool = False,
    tier: str = "mini",
    data_dir: str | Path | None = None,
    max_train: int | None = None,
    labels: int | None = None,
    vectors: str | Path | None = None,
    inputs: str | Sequence[str] = (),
    protocol: str = "smoke",
    budget: str = "full",
    overrides: Mapping[str, object] = MappingProxyType({}),
    max_epochs: int | None = None,
    precision: str | int = "32",
    devices: int = 1,
    strategy: str = "auto",
    engine: str = "local",
    workers: int | None = None,
    threads: int = 1,
    timeout: float | None = None,
    cpu_limit: float | None = None,
    memory_limit: int | None = None,
    speed_alone: bool = False,
    results: str | Path = "results",
    mlflow: str | None = None,
    keep: bool = False,
    refit: bool = False,
    parents: Mapping[str, str] = MappingProxyType({}),
    ended: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Runs every chosen architecture on every chosen task with every seed, as ``archbench run``
    does, and returns the records of all these cells.

    Finished cells are not run again: their records are read, so that the same call gives the same
    records. A cell that fails is a record too (``record.status``). The records come seed by seed
    and task by task. Those that are missing are of cells that Ctrl-C kept from starting, or whose
    record is damaged; a warning tells of them, and of all else that the command would print.

    A script needs no ``if __name__ == "__main__"``. Architectures, tasks and metrics may be
    registered in the script or in a notebook's cell, by the decorators of ``harness.registry`` on a
    class at top level: it is copied, with the definitions and imports that it uses, to a plugin
    file in ``results/plugins``, which the processes of the cells import.

    ``architectures`` and ``tasks``: ids or shell wildcards, in a list or comma-separated; tasks are
    also TOML files of your own data.
    ``seeds``: whole numbers from 0; each is a cell of its own.
    ``home``: run each architecture on one task alone, the data set of its paper or the nearest.
    ``plugins``: Python files with architectures or tasks, folders of them, or wildcards.
    ``shard``: ``"I/N"``, part I (from 0) of N disjoint parts.
    ``retry_failed``: run cells that failed before again.
    ``changed``: run finished cells again that other code made.
    ``dry_run``: print what would run, and return the records that are there.
    ``tier``: ``mini``, ``local`` (official files in ``data_dir``, by default that of the variable
    ``ARCHBENCH_DATA``) or ``hub``.
    ``max_train`` and ``max_epochs``: limits on training examples and on passes over them, a budget
    of your own, which is never ranked.
    ``labels``: number of training examples that keep their answers, a budget with a name.
    ``vectors``: file of word vectors in GloVe or word2vec text format; random ones by default.
    ``inputs``: names of sources of further numbers for each word, such as ``char_cnn_words``, in a
    list or comma-separated.
    ``protocol``: ``smoke``, ``equal`` or ``paper``; the scores of ``smoke`` mean nothing.
    ``budget``: amount of training, by a name that the task declares.
    ``overrides``: hyperparameters by name, such as ``{"dan.hidden": 100, "dan.training.epochs":
    3}``.
    ``precision``, ``devices`` and ``strategy``: Lightning's, for each cell.
    ``engine``: ``local``, or ``ray`` for a cluster.
    ``workers``: cells at a time; None for one per GPU or share of cores.
    ``threads``: CPU threads of a cell.
    ``timeout``: seconds of wall clock of a cell. ``cpu_limit``: seconds of processor time of its
    processes together. ``memory_limit``: MiB of these processes.
    ``speed_alone``: one cell at a time and no other run on this machine.
    ``results``: folder of records, predictions and logs.
    ``mlflow``: tracking URI or ``none``; by default that of the variable ``ARCHBENCH_MLFLOW``, else
    a database in the results folder.
    ``keep``: keep what each cell learnt in ``results/models``, for ``archbench predict``.
    ``refit``: when its score is known, train each cell once more on all rows, those of test too,
    and keep that model.
    ``parents``: kept models from which the cells start, by role, such as ``{"vectors":
    "skipgram"}``: an architecture, which is trained first if it is not kept, or a key.
    ``ended``: called with the record of each cell that ran, as soon as it has ended.

    Raises :class:`~harness.errors.ArchbenchError` before anything is computed: ``UsageError`` for
    options that cannot be meant (named as those of the command), ``UnknownName``, ``RegistryError``
    for a plugin, ``DataError`` for data files, ``RecordError`` for a results folder that cannot be
    written.
    """
    asked = dict(locals())
    from harness.errors import UsageError

    if threading.current_thread() is not threading.main_thread():
        raise UsageError("archbench.run: call it from the main thread, which alone hears of Ctrl-C")
    if not _one_at_a_time.acquire(blocking=False):
        raise UsageError("archbench.run was called by a file that a run imports: write what it registers elsewhere")
    try:
        return _run(**asked)
    finally:
        _one_at_a_time.release()


def _run(*, ended: Callable[[Record], None] | None, **options: Any) -> list[Record]:
    from archbench import main_module
    from harness import registry
    from harness.leaderboard.catalogue import chosen_homes
    from harness.records import Store, portable_command
    from harness.running.request import Request
    from harness.running.session import Session

    _check(options)
    results = Path(options["results"])
    data_dir = options["data_dir"] or os.environ.get("ARCHBENCH_DATA")
    data_dir = Path(data_dir) if data_dir else None
    if isinstance(options["plugins"], str | Path):
        options["plugins"] = [options["plugins"]]
    options["precision"] = str(options["precision"])
    if not options["dry_run"]:
        Store(results.resolve()).check_writable()
    for file in options["plugins"]:
        registry.add_plugin(file)
    own = main_module.add_plugin(results / "plugins")
    registry.check_plugins()
    chosen = {name: _pattern(options[name]) for name in ("architectures", "tasks")}
    plugins = [*map(Path, options["plugins"]), *own]
    overrides = [f"{name}={_plain(value)!r}" for name, value in options["overrides"].items()]
    parents = [f"{role}={name}" for role, name in options["parents"].items()]
    inputs = registry.comma_separated(_pattern(options["inputs"]))
    as_typed = options | chosen | {"plugins": plugins, "overrides": overrides, "parents": parents, "inputs": inputs}
    as_typed["seeds"] = list(dict.fromkeys(options["seeds"]))
    home = as_typed.pop("home")
    request = Request(
        **as_typed
        | {
            "results": results,
            "data_dir": data_dir,
            "vectors": Path(options["vectors"]) if options["vectors"] else None,
            "mlflow": options["mlflow"] or os.environ.get("ARCHBENCH_MLFLOW") or None,
            "homes": chosen_homes(**chosen, results=results, tell=warnings.warn) if home else None,
            "command": portable_command(_command(as_typed | {"home": home}), data_dir),
        }
    )
    session = Session(request)
    if request.dry_run:
        from harness.running.progress import show

        show(session.pending, session.estimate, session.slots)
    records = session.run(ended=ended or (lambda record: None))
    session.tell_of_models(records)
    if waiting := len(session.pending.run) - len(records) if not request.dry_run else 0:
        warnings.warn(f"cells not started: {waiting}; the same call goes on with them", stacklevel=3)
    found = {record.key: record for record in [*session.pending.finished, *records]}
    for item in session.pending.skip if not request.dry_run else ():
        if record := session.store.find(item.cell):
            found[record.key] = record
    return [found[cell.key] for cell in session.cells if cell.key in found]


def _check(options: Mapping[str, Any]) -> None:
    """Raises :class:`~harness.errors.UsageError` for values that no option can have."""
    from harness.errors import UsageError

    for name in ("architectures", "tasks", "inputs", "plugins"):
        value = options[name]
        if not isinstance(value, str | Path) and not _are_names(value):
            raise UsageError(f"{name}={value!r:.80}: expected names, in a list or comma-separated; a class has an id")
    for name in ("overrides", "parents"):
        if not isinstance(options[name], Mapping):
            raise UsageError(f"{name}={options[name]!r:.80}: expected a mapping, such as {_SUCH_AS[name]}")
    for name in ("timeout", "cpu_limit"):
        value = options[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and 0 <= value < math.inf):
            raise UsageError(f"{name}={value!r:.80}: expected seconds, a number from 0")
    for name in _COUNTS:
        value = options[name]
        if value is not None and (type(value) is not int or value < 1):
            raise UsageError(f"{name}={value!r}: expected a whole number from 1")
    seeds = options["seeds"]
    if isinstance(seeds, str) or not isinstance(seeds, Sequence | Set) or not all(type(n) is int for n in seeds):
        raise UsageError(f"seeds={seeds!r:.80}: expected whole numbers from 0 in a list, such as (0, 1, 2)")


def _plain(value: Any) -> Any:
    """A value without NumPy's types, which stand as ``np.float64(0.1)`` in a text."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _are_names(value: object) -> bool:
    return isinstance(value, Sequence | Set) and all(isinstance(name, str | Path) for name in value)


def _pattern(names: str | Path | Sequence[str | Path]) -> str:
    return str(names) if isinstance(names, str | Path) else ",".join(map(str, names))


def _command(options: Mapping[str, Any]) -> list[str]:
    """The words of the command line that does the same, which the records keep."""
    words = ["archbench", "run"]
    for name, parameter in inspect.signature(run).parameters.items():
        value = options.get(name)
        if value is None or value == parameter.default or (value == [] and not parameter.default):
            continue
        option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
        if value is True:
            words.append(option)
        elif name in ("plugins", "overrides", "parents"):
            words += [word for each in value for word in (option, str(each))]
        else:
            words += [option, ",".join(map(str, value)) if name in ("seeds", "inputs") else str(value)]
    return words

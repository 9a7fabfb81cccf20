"""The ``archbench`` command. Thin: each command imports what it needs when it is called, so that
help and listings answer at once."""

from __future__ import annotations

import difflib
import json
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from harness import registry

if TYPE_CHECKING:
    from rich.console import Console

    from harness.grid import Pending, Settings
    from harness.records import Cell, Record, Store
    from harness.schedule import Estimate

app = typer.Typer(
    help="Compares NLP architectures on the same tasks under the same protocol.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Results = Annotated[Path, typer.Option("--results", metavar="DIR", help="Results folder.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", metavar="DIR", envvar="ARCHBENCH_DATA", help="Folder of the official data files (tier local)."
    ),
]
Plugins = Annotated[
    list[Path] | None, typer.Option("--plugin", metavar="FILE", help="A plugin file of your own; may be repeated.")
]
Architectures = Annotated[
    str, typer.Option("-a", "--architectures", metavar="PATTERN", help="Shell wildcards, comma-separated.")
]
Tasks = Annotated[str, typer.Option("-t", "--tasks", metavar="PATTERN", help="Shell wildcards, comma-separated.")]
Mlflow = Annotated[
    str | None,
    typer.Option(
        "--mlflow", metavar="URI", help="MLflow tracking URI, or none; by default mlflow.db in the results folder."
    ),
]

TIERS = ("mini", "local", "hub")
PRECISIONS = ("32", "64", "bf16-mixed", "bf16-true")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the console script. Exit code 0: all well; 1: a cell or check failed; 2: the
    command cannot be carried out."""
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        app(args=arguments, prog_name="archbench")
    except Exception as error:
        if not isinstance(error, _expected()):
            raise
        print(f"archbench: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(0)


def _expected() -> tuple[type[Exception], ...]:
    """Errors whose message is all that a user needs."""
    from harness.grid import UsageError
    from harness.records import RecordError
    from harness.task import DataError

    return registry.RegistryError, UsageError, RecordError, DataError


def _add_plugins(files: list[Path] | None) -> None:
    for file in files or []:
        registry.add_plugin(file)


def _chosen(option: str, value: str, known: Sequence[str]) -> str:
    """``value`` if it is known; else an error with a near one."""
    if value in known:
        return value
    from harness.grid import UsageError

    near = difflib.get_close_matches(value, known, n=1, cutoff=0.5)
    raise UsageError(
        f"{option} {value}: {'did you mean ' + near[0] + '? ' if near else ''}there are {', '.join(known)}"
    )


def _console() -> Console:
    """Standard output; lines of a table are not cut where it is no terminal."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=240, soft_wrap=True)


# --- what there is ---


@app.command("list")
def list_(
    what: Annotated[str | None, typer.Argument(metavar="[architectures|tasks]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    plugin: Plugins = None,
) -> None:
    """List the architectures and tasks."""
    _add_plugins(plugin)
    sorts: list[Any] = [_chosen("list", what, ("architectures", "tasks"))] if what else ["architectures", "tasks"]
    found = {sort: registry.entries(sort) for sort in sorts}
    if as_json:
        print(
            json.dumps({sort: [_described(e) for e in entries.values()] for sort, entries in found.items()}, indent=1)
        )
    else:
        for sort, entries in found.items():
            _table(sort, entries)
    for sort in sorts:
        for error in registry.broken(sort).values():
            print(f"archbench: left out: {error}", file=sys.stderr)


def _described(entry: registry.Entry) -> dict[str, Any]:
    """What a listing says of an entry."""
    names = ("name", "kind", "paper", "year", "source", "version")
    if entry.sort == "tasks":
        names = ("name", "type", "metrics", "main_metric", "sizes", "protocol", "version")
    family = {"family": entry.family} if entry.sort == "architectures" else {}
    return {"id": entry.id} | family | {name: getattr(entry, name) for name in names}


def _table(sort: str, entries: dict[str, registry.Entry]) -> None:
    from rich.table import Table

    columns = (
        ("id", "name", "kind", "paper", "year")
        if sort == "architectures"
        else ("id", "name", "type", "main_metric", "sizes")
    )
    families: dict[str, list[dict[str, Any]]] = {}
    for row in map(_described, entries.values()):
        families.setdefault(row.get("family", "tasks"), []).append(row)
    for family, rows in sorted(families.items()):
        table = Table(
            *(column.replace("_", " ") for column in columns),
            title=f"{family} ({len(rows)})",
            title_justify="left",
            box=None,
        )
        for row in rows:
            sizes = ", ".join(f"{split} {count}" for split, count in row.get("sizes", {}).items())
            table.add_row(*(sizes if column == "sizes" else str(row[column]) for column in columns))
        _console().print(table, "")


# --- running the grid ---


@app.command()
def run(
    architectures: Architectures = "*",
    tasks: Tasks = "*",
    tier: Annotated[
        str, typer.Option(metavar="|".join(TIERS), help="Which data: embedded, official files, or the hub.")
    ] = "mini",
    data_dir: DataDir = None,
    protocol: Annotated[str, typer.Option(metavar="smoke|equal|paper", help="Rules of training.")] = "smoke",
    seeds: Annotated[str, typer.Option(metavar="N,N,...")] = "0",
    results: Results = Path("results"),
    workers: Annotated[
        str, typer.Option(metavar="N|auto", help="Cells at a time; auto: one per GPU or share of cores.")
    ] = "auto",
    threads: Annotated[
        int, typer.Option(min=1, help="CPU threads of a cell; a result is bit-identical for the same number.")
    ] = 1,
    engine: Annotated[str, typer.Option(metavar="NAME", help="Where cells run.")] = "local",
    devices: Annotated[int, typer.Option(min=1, help="Devices of one cell.")] = 1,
    strategy: Annotated[
        str, typer.Option(metavar="auto|ddp|fsdp", help="Lightning's strategy for several devices.")
    ] = "auto",
    precision: Annotated[str, typer.Option(metavar="|".join(PRECISIONS), help="Lightning's precision.")] = "32",
    speed_alone: Annotated[
        bool,
        typer.Option(
            "--speed-alone",
            help="One cell at a time, and no other run on this machine meanwhile: speeds are measured alone.",
        ),
    ] = False,
    timeout: Annotated[float | None, typer.Option(min=0, metavar="S", help="Seconds of wall clock per cell.")] = None,
    memory_limit: Annotated[int | None, typer.Option(min=1, metavar="MIB", help="Resident memory per cell.")] = None,
    max_train: Annotated[
        int | None, typer.Option(min=1, help="Cap on training examples; makes the record partial.")
    ] = None,
    max_epochs: Annotated[int | None, typer.Option(min=1, help="Cap on passes over the training examples.")] = None,
    vectors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Word vectors, GloVe or word2vec text format.")
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("-o", "--override", metavar="ID.NAME=VALUE", help="A hyperparameter; may be repeated."),
    ] = None,
    plugin: Plugins = None,
    mlflow: Mlflow = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run cells again that failed before.")] = False,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Only part I (from 0) of N: the same cells on every machine, none twice."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run, and about how long.")] = False,
) -> None:
    """Run architectures x tasks x seeds. Finished cells are left out, so the same command again
    resumes."""
    from harness import grid, machine
    from harness.progress import show, summarise
    from harness.protocols import PROTOCOLS
    from harness.records import Store
    from harness.schedule import Estimate, in_shard, parse_shard

    _add_plugins(plugin)
    _chosen("--tier", tier, TIERS)
    _chosen("--protocol", protocol, tuple(PROTOCOLS))
    _chosen("--precision", precision, PRECISIONS)
    _chosen("--strategy", strategy, grid.STRATEGIES)
    if strategy == "fsdp" and devices > 1:
        _chosen("--strategy fsdp --precision", precision, grid.FSDP_PRECISIONS)
    run_cells = _engine(engine)
    folder = _data_dir(tier, data_dir)
    numbers = _seeds(seeds)
    slots = _alone(workers, engine) if speed_alone else _workers(workers)
    part = parse_shard(shard) if shard else None
    store = Store(results.resolve())
    if not dry_run:
        store.check_writable()
        store.sweep()

    chosen_architectures, errors = grid.loadable(registry.match("architectures", architectures))
    chosen_tasks, more = grid.loadable(registry.match("tasks", tasks))
    unread = {**registry.unlisted("architectures"), **registry.unlisted("tasks")}
    broken = [*errors, *more, *unread.values()]
    for error in broken:
        print(f"archbench: left out: {error}", file=sys.stderr)
    planned = grid.plan(
        chosen_architectures,
        chosen_tasks,
        tier=tier,
        protocol=protocol,
        seeds=numbers,
        overrides=override or [],
        max_train=max_train,
        max_epochs=max_epochs,
        vectors=vectors,
        precision=precision,
        devices=devices,
    )
    if part:
        planned = [item for item in planned if in_shard(item.cell, part)]
    pending = grid.pending(planned, store, retry_failed=retry_failed)
    if tier == "local":
        _drop_other_data(pending, folder, store, dry_run)
    for error in pending.damaged:
        print(f"archbench: damaged record, its cell is left out until you move the file away: {error}", file=sys.stderr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # damaged records of this grid were just named
        estimate = Estimate(store.all())
    pending.run[:] = estimate.longest_first(pending.run)
    if dry_run:
        return show(pending, estimate, _slots(engine, slots, threads, pending.run))

    settings = grid.Settings(
        results=store.folder,
        data_dir=folder,
        plugins=tuple(registry.plugin_files()),
        threads=threads,
        timeout=timeout,
        memory_limit_mib=memory_limit,
        work=store.folder / "work",
        command=shlex.join(["archbench", *sys.argv[1:]]),
        strategy=strategy,
        vectors=vectors.resolve() if vectors else None,
    )
    if speed_alone and (
        kept := [record for record in pending.finished if record.speed and record.speed.get("beside") != 0]
    ):
        told = f"{len(kept)} finished cells keep speeds that are not known to be measured alone"
        print(f"archbench: {told}; another --results has them run again", file=sys.stderr)
    with machine.run_of_cells(alone=speed_alone):
        for item in pending.skip:
            store.write(grid.skipped(item, settings.command))
        records = run_cells(pending, settings, estimate, slots, _Mirror(mlflow, store))
    summarise(pending, records, store)
    stopped = len(records) < len(pending.run)
    if (
        broken
        or pending.damaged
        or stopped
        or any(r.status not in ("ok", "skipped") for r in [*pending.finished, *records])
    ):
        raise typer.Exit(1)


def _drop_other_data(pending: Pending, folder: Path, store: Store, dry_run: bool) -> None:
    """Run again what was made with other data files than those at hand; the old records are kept
    under another name."""
    from harness.freshness import DataFolder
    from harness.task import DataError

    data = DataFolder(folder, store.folder / "work" / "fingerprints.json")
    for record in [record for record in pending.finished if record.status == "ok"]:
        name = f"{record.architecture} on {record.task}, seed {record.seed}"
        try:
            differing = data.differing(record)
        except DataError as error:
            print(f"archbench: {name} is finished, but its data cannot be compared: {error}", file=sys.stderr)
            continue
        if differing:
            kept = "" if dry_run else f"; the old record is {store.set_aside(record).name}"
            print(
                f"archbench: {name} runs again: its {' and '.join(differing)} data were other ones{kept}",
                file=sys.stderr,
            )
            pending.finished.remove(record)
            pending.run.append(record.cell)


def _workers(text: str) -> int | None:
    """Number of cells at a time; None: as many as the engine sees fit."""
    from harness.grid import UsageError

    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--workers {text}: expected a whole number from 1, or auto")
    return int(text)


def _alone(workers: str, engine: str) -> int:
    """Number of cells at a time for ``--speed-alone``: one."""
    from harness.grid import UsageError

    if engine != "local":
        raise UsageError(
            f"--speed-alone with --engine {engine}: only the runs of this machine can be kept apart, with --engine"
            " local"
        )
    if workers not in ("auto", "1"):
        raise UsageError(f"--speed-alone with --workers {workers}: it measures one cell at a time")
    return 1


def _seeds(text: str) -> list[int]:
    from harness.grid import UsageError

    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"--seeds {text}: expected whole numbers from 0, comma-separated, such as 0,1,2")
    return list(dict.fromkeys(map(int, parts)))


def _data_dir(tier: str, folder: Path | None) -> Path | None:
    from harness.grid import UsageError

    if tier != "local":
        return folder and folder.resolve()
    if folder is None:
        raise UsageError(
            "--tier local needs --data-dir DIR (or ARCHBENCH_DATA): the folder that holds sst/, squad/, ..."
        )
    if not folder.is_dir():
        raise UsageError(f"--data-dir {folder}: no such folder")
    return folder.resolve()


def _engine(name: str) -> Callable[[Pending, Settings, Estimate, int | None, Callable[[Record], None]], list[Record]]:
    """A module of :mod:`harness.engines`, made ready to run what is pending under a display of
    progress."""
    import pkgutil

    from harness import engines

    _chosen("--engine", name, [module.name for module in pkgutil.iter_modules(engines.__path__)])

    def run_cells(
        pending: Pending, settings: Settings, estimate: Estimate, workers: int | None, mirror: Callable[[Record], None]
    ) -> list[Record]:
        import importlib

        from harness.progress import Display

        if not pending.run:
            return []
        engine = importlib.import_module(f"harness.engines.{name}")
        slots = _slots(name, workers, settings.threads, pending.run)
        with Display(pending.run, slots, estimate, settings.log, _console()) as display:
            return engine.run(
                pending.run, settings, workers=slots, started=display.start, ended=display.end, afterwards=mirror
            )

    return run_cells


def _slots(engine: str, workers: int | None, threads: int, cells: Sequence[Cell]) -> int:
    """Cells at a time: as many as were asked for or the engine sees fit, and no more than there
    are."""
    import importlib

    if not cells:
        return 1
    return min(
        workers or importlib.import_module(f"harness.engines.{engine}").default_workers(threads, cells[0].devices),
        len(cells),
    )


class _Mirror:
    """Sends records to MLflow until that fails once: the records are safe, and ``archbench sync``
    repairs the mirror."""

    def __init__(self, uri: str | None, store: Any):
        self.uri, self.store = uri, store
        self.tracker: Any = None

    def __call__(self, record: Record) -> None:
        if self.uri == "none":
            return
        from harness.tracking import Tracker, TrackingError, default_uri

        try:
            self.tracker = self.tracker or Tracker(self.uri or default_uri(self.store.folder))
            predictions = self.store.folder / record.predictions["path"] if record.predictions else None
            log = self.store.folder / "work" / "logs" / f"{record.task}-{record.architecture}-{record.key}.log"
            self.tracker.log(record, predictions, log if log.is_file() else None)
        except TrackingError as error:
            self.uri = "none"
            print(f"archbench: {error}", file=sys.stderr)


# --- plugins ---


@app.command()
def check(name: Annotated[str, typer.Argument(metavar="NAME")], plugin: Plugins = None) -> None:
    """Check that an architecture keeps the contract: shapes, gradients, padding, seeds, saving,
    overfitting a few examples."""
    _add_plugins(plugin)
    entry = registry.entry("architectures", name)
    from rich.markup import escape
    from rich.table import Table

    from harness.contract import check as checks

    found = checks(entry)
    table = Table("check", "", "", box=None, show_header=False)
    for result in found:
        table.add_row(
            "[green]passed[/green]" if result.passed else "[red]failed[/red]", result.name, escape(result.message or "")
        )
    _console().print(table)
    if not all(result.passed for result in found):
        raise typer.Exit(1)


@app.command()
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Id of the architecture: lower case, digits, underscores.")
    ],
    kind: Annotated[str, typer.Option("--kind", help="What it reads and returns: text, seq, pair or tag.")] = "text",
    family: Annotated[str, typer.Option("--family", help="Folder below architectures/.")] = "contributed",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write both files there instead, as a plugin.")
    ] = None,
) -> None:
    """Write a working plugin file and its test, to be changed into your model."""
    from harness import scaffold

    _chosen("--kind", kind, scaffold.KINDS)
    plugin, test = scaffold.write(name, kind, family, out)
    given = f" --plugin {shlex.quote(str(plugin))}" if out else ""
    print(
        f"{plugin}\n{test}\nnext:\n  archbench check {name}{given}\n  archbench run -a {name} -t"
        f" {scaffold.TASKS[kind]}{given}"
    )


# --- results ---


@app.command()
def rescore(
    architectures: Architectures = "*",
    tasks: Tasks = "*",
    results: Results = Path("results"),
    data_dir: DataDir = None,
    plugin: Plugins = None,
) -> None:
    """Score saved predictions again, after a metric was corrected, and say how each test unit came
    out; nothing is trained."""
    from harness import rescore as scores
    from harness.records import Store

    _add_plugins(plugin)

    def wanted(record: Record) -> bool:
        pairs = ((record.architecture, architectures), (record.task, tasks))
        return all(any(fnmatchcase(id, p.strip()) for p in patterns.split(",")) for id, patterns in pairs)

    changed = scores.rescore(Store(results.resolve()), data_dir and data_dir.resolve(), wanted)
    for path, changes in changed:
        print(path)
        for metric, (before, now) in changes.items():
            print(f"  {metric}: {'none' if before is None else f'{before:.6f}'} -> {now:.6f}")
    print(f"{len(changed)} records changed" + ("; `archbench sync` brings MLflow up to date" if changed else ""))


@app.command()
def sync(results: Results = Path("results"), mlflow: Mlflow = None) -> None:
    """Rebuild MLflow from the record files."""
    from harness import tracking
    from harness.records import Store, without_passwords

    uri = mlflow or tracking.default_uri(results)
    try:
        added, kept, replaced = tracking.sync(Store(results.resolve()), uri)
    except tracking.TrackingError as error:
        print(f"archbench: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    print(f"{without_passwords(uri)}: {added} runs added, {replaced} replaced, {kept} up to date")


@app.command()
def ui(results: Results = Path("results"), port: Annotated[int, typer.Option(min=1, max=65535)] = 5000) -> None:
    """Show the runs in MLflow's own pages, on this machine only, until Ctrl-C."""
    from harness import mlflow_ui

    raise typer.Exit(mlflow_ui.serve(results.resolve(), port))


@app.command()
def leaderboard(
    results: Results = Path("results"),
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the pages go.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the pages on 127.0.0.1.")] = False,
) -> None:
    """Build the leaderboard pages; the same as `python leaderboard.py`."""
    import leaderboard as pages

    arguments = ["--results", str(results), *(["--out", str(out)] if out else []), *(["--serve"] if serve else [])]
    raise typer.Exit(pages.main(arguments))


@app.command()
def doctor(results: Results = Path("results"), data_dir: DataDir = None, plugin: Plugins = None) -> None:
    """Look at what a run needs: versions, threads, memory allocator, data files, GPU, results
    folder, plugin files."""
    from rich.markup import escape
    from rich.table import Table

    from harness.doctor import examine

    _add_plugins(plugin)
    findings = list(examine(results.resolve(), data_dir))
    table = Table("", "", "", box=None, show_header=False)
    for finding in findings:
        table.add_row("[green]ok[/green]" if finding.well else "[red]wrong[/red]", finding.what, escape(finding.found))
    _console().print(table)
    if not all(finding.well for finding in findings):
        raise typer.Exit(1)


if __name__ == "__main__":
    main()

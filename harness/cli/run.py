"""The ``run`` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.app import add_plugins, app, chosen, console
from harness.cli.options import PRECISIONS, TIERS, Architectures, DataDir, Mlflow, Plugins, Results, Tasks
from harness.errors import UsageError


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
    from harness.records import portable_command
    from harness.running.grid import FSDP_PRECISIONS, STRATEGIES
    from harness.running.progress import Display, show, summarise
    from harness.running.session import ENGINES, Request, Session
    from harness.training.protocols import PROTOCOLS

    add_plugins(plugin)
    chosen("--tier", tier, TIERS)
    chosen("--protocol", protocol, tuple(PROTOCOLS))
    chosen("--precision", precision, PRECISIONS)
    chosen("--strategy", strategy, STRATEGIES)
    if strategy == "fsdp" and devices > 1:
        chosen("--strategy fsdp --precision", precision, FSDP_PRECISIONS)
    chosen("--engine", engine, ENGINES)
    request = Request(
        results=results,
        architectures=architectures,
        tasks=tasks,
        tier=tier,
        data_dir=_data_dir(tier, data_dir),
        protocol=protocol,
        seeds=_seeds(seeds),
        workers=_alone(workers, engine) if speed_alone else _workers(workers),
        threads=threads,
        engine=engine,
        devices=devices,
        strategy=strategy,
        precision=precision,
        speed_alone=speed_alone,
        timeout=timeout,
        memory_limit=memory_limit,
        max_train=max_train,
        max_epochs=max_epochs,
        vectors=vectors,
        overrides=override or (),
        mlflow=mlflow,
        retry_failed=retry_failed,
        shard=shard,
        dry_run=dry_run,
        command=portable_command(["archbench", *sys.argv[1:]], data_dir),
    )
    session = Session(request, tell=lambda message: print(f"archbench: {message}", file=sys.stderr))
    pending = session.pending
    if dry_run:
        return show(pending, session.estimate, session.slots)
    if speed_alone and (
        kept := [record for record in pending.finished if record.speed and record.speed.get("beside") != 0]
    ):
        told = f"{len(kept)} finished cells keep speeds that are not known to be measured alone"
        print(f"archbench: {told}; another --results has them run again", file=sys.stderr)
    if pending.run:
        with Display(pending.run, session.slots, session.estimate, session.settings.log, console()) as display:
            records = session.run(display.start, display.end)
    else:
        records = session.run()
    summarise(pending, records, session.store)
    if not session.complete(records):
        raise typer.Exit(1)


def _workers(text: str) -> int | None:
    """Number of cells at a time; None: as many as the engine sees fit."""
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--workers {text}: expected a whole number from 1, or auto")
    return int(text)


def _alone(workers: str, engine: str) -> int:
    """Number of cells at a time for ``--speed-alone``: one."""
    if engine != "local":
        raise UsageError(
            f"--speed-alone with --engine {engine}: only the runs of this machine can be kept apart, with --engine"
            " local"
        )
    if workers not in ("auto", "1"):
        raise UsageError(f"--speed-alone with --workers {workers}: it measures one cell at a time")
    return 1


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"--seeds {text}: expected whole numbers from 0, comma-separated, such as 0,1,2")
    return list(dict.fromkeys(map(int, parts)))


def _data_dir(tier: str, folder: Path | None) -> Path | None:
    if tier != "local":
        return folder and folder.resolve()
    if folder is None:
        raise UsageError(
            "--tier local needs --data-dir DIR (or ARCHBENCH_DATA): the folder that holds sst/, squad/, ..."
        )
    if not folder.is_dir():
        raise UsageError(f"--data-dir {folder}: no such folder")
    return folder.resolve()

"""The ``run`` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness import registry
from harness.cli.app import add_plugins, app
from harness.cli.options import (
    DATA,
    EXECUTION,
    GRID,
    RUNNING,
    TRAINING,
    Architectures,
    DataDir,
    Mlflow,
    Plugins,
    Results,
    Tasks,
)
from harness.cli.showing import run_and_show
from harness.errors import UsageError
from harness.messages import note


@app.command(rich_help_panel=RUNNING)
def run(
    architectures: Architectures = "*",
    tasks: Tasks = "*",
    seeds: Annotated[
        str,
        typer.Option(metavar="N,N,...", help="Random seeds; each one is a cell of its own.", rich_help_panel=GRID),
    ] = "0",
    home: Annotated[
        bool,
        typer.Option(
            "--home",
            help="Run each architecture on one task: the data set of its paper, or the nearest of"
            " ours. Floors, references and plugins have none.",
            rich_help_panel=GRID,
        ),
    ] = False,
    plugin: Plugins = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Run only part I (counted from 0) of N. The parts are disjoint and the same on every machine.",
            rich_help_panel=GRID,
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run cells that failed before again.", rich_help_panel=GRID)
    ] = False,
    changed: Annotated[
        bool,
        typer.Option(
            "--changed",
            help="Run finished cells again whose record was made by other code; the old record is set aside.",
            rich_help_panel=GRID,
        ),
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Keep what each cell learnt in models/ of the results folder, for `archbench predict`; finished cells"
            " that are not kept run again.",
            rich_help_panel=GRID,
        ),
    ] = False,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit",
            help="When its score is known, train each cell once more on all rows, those of test too, with the settings"
            " that were found, and keep that model.",
            rich_help_panel=GRID,
        ),
    ] = False,
    parent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=NAME",
            help="Start from a kept model in the role weights, teacher, inputs, vectors, tokens or tags: an"
            " architecture (or ARCHITECTURE@TASK, or @FIRST+SECOND for tasks in turn), which is trained first if it"
            " is not kept, the beginning of a key, or none; may be repeated.",
            rich_help_panel=GRID,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only list the cells that would run and estimate their time.", rich_help_panel=GRID
        ),
    ] = False,
    tier: Annotated[
        str,
        typer.Option(
            metavar="mini|local|hub",
            help="Source of the data: corpora built in, official files in --data-dir, or the Hugging Face hub.",
            rich_help_panel=DATA,
        ),
    ] = "mini",
    data_dir: DataDir = None,
    max_train: Annotated[
        int | None,
        typer.Option(
            min=1, help="Limit on training examples: a budget of your own, never ranked.", rich_help_panel=DATA
        ),
    ] = None,
    labels: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of training examples that keep their answers, a budget with a name of its own. The texts of"
            " the others are for systems that learn from unlabelled ones. Dev keeps all of its answers.",
            rich_help_panel=DATA,
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Pre-trained word vectors in GloVe or word2vec text format. Default: random vectors.",
            rich_help_panel=DATA,
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Sources of further numbers for each word, which stand behind its vector, such as char_cnn_words;"
            " `archbench list inputs` lists them.",
            rich_help_panel=DATA,
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="smoke|equal|paper",
            help="Rules of training: one short pass, the same settings for all, or each paper's own settings.",
            rich_help_panel=TRAINING,
        ),
    ] = "smoke",
    budget: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Amount of training that each task declares: full has all examples, small a fixed sample on"
            " which most architectures train within a minute.",
            rich_help_panel=TRAINING,
        ),
    ] = "full",
    override: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--override",
            metavar="ID.NAME=VALUE",
            help="Set a hyperparameter, such as dan.hidden=100, dan.training.patience=3 or dan.view.min_count=1; may"
            " be repeated.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    max_epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Limit on passes over the training examples: a budget of your own, never ranked.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="32|64|bf16-mixed|bf16-true",
            help="Number format of training, by Lightning's names.",
            rich_help_panel=TRAINING,
        ),
    ] = "32",
    devices: Annotated[
        int, typer.Option(min=1, help="Devices (GPUs or processes) that train one cell.", rich_help_panel=TRAINING)
    ] = 1,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="auto|ddp|fsdp",
            help="Lightning's strategy for several devices; auto is ddp.",
            rich_help_panel=TRAINING,
        ),
    ] = "auto",
    engine: Annotated[
        str,
        typer.Option(
            metavar="local|ray", help="Run cells on this machine or on a Ray cluster.", rich_help_panel=EXECUTION
        ),
    ] = "local",
    workers: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Cells at a time; auto: one per GPU, or share of cores and memory.",
            rich_help_panel=EXECUTION,
        ),
    ] = "auto",
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            help="CPU threads of a cell. Results are bit-identical only for the same number.",
            rich_help_panel=EXECUTION,
        ),
    ] = 1,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="S",
            help="Limit on the wall-clock time of a cell, in seconds from its start. One whose first pilot shows that"
            " it will pass the limit ends at once.",
            rich_help_panel=EXECUTION,
        ),
    ] = None,
    cpu_limit: Annotated[
        float | None,
        typer.Option(
            "--cpu-limit",
            min=0,
            metavar="S",
            help="Limit on the processor time of a cell and all its processes, in seconds. Unlike --timeout it does"
            " not depend on what else this machine does.",
            rich_help_panel=EXECUTION,
        ),
    ] = None,
    memory_limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="MIB",
            help="Limit on the resident memory of a cell and all its processes, in MiB.",
            rich_help_panel=EXECUTION,
        ),
    ] = None,
    speed_alone: Annotated[
        bool,
        typer.Option(
            "--speed-alone",
            help="Run one cell at a time and refuse other runs on this machine, so that speeds are comparable.",
            rich_help_panel=EXECUTION,
        ),
    ] = False,
    results: Results = Path("results"),
    mlflow: Mlflow = None,
) -> None:
    """Run every chosen architecture on every chosen task with every seed.

    Each combination is a cell and ends in one record. Finished cells are not run again, so the
    same command resumes an interrupted run.
    """
    from harness.leaderboard.catalogue import chosen_homes
    from harness.records import portable_command
    from harness.running.request import Request

    add_plugins(plugin)
    request = Request(
        results=results,
        architectures=architectures,
        tasks=tasks,
        tier=tier,  # type: ignore[arg-type]  # the request checks it
        data_dir=data_dir,
        protocol=protocol,
        budget=budget,
        seeds=_seeds(seeds),
        workers=_workers(workers),
        threads=threads,
        engine=engine,
        devices=devices,
        strategy=strategy,
        precision=precision,
        speed_alone=speed_alone,
        timeout=timeout,
        cpu_limit=cpu_limit,
        memory_limit=memory_limit,
        max_train=max_train,
        max_epochs=max_epochs,
        labels=labels,
        vectors=vectors,
        inputs=registry.comma_separated(inputs or ""),
        overrides=override or (),
        plugins=plugin or (),
        mlflow=mlflow,
        retry_failed=retry_failed,
        changed=changed,
        shard=shard,
        homes=chosen_homes(architectures, tasks, results, note) if home else None,
        keep=keep,
        refit=refit,
        parents=parent or (),
        dry_run=dry_run,
        command=portable_command(["archbench", *sys.argv[1:]], data_dir),
    )
    run_and_show(request)


def _workers(text: str) -> int | None:
    """Number of cells at a time; None for ``auto``."""
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--workers {text}: expected a whole number from 1, or auto")
    return int(text)


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= 20 for part in parts):  # Python reads no number of 5,000 digits
        raise UsageError(f"--seeds {text}: expected whole numbers from 0, comma-separated, such as 0,1,2")
    return list(dict.fromkeys(map(int, parts)))

"""Commands on finished results: ``rescore``, ``sync``, ``ui`` and ``leaderboard``."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.app import add_plugins, app
from harness.cli.options import Architectures, DataDir, Mlflow, Plugins, Results, Tasks

if TYPE_CHECKING:
    from harness.records import Record


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
    from harness.records import Store
    from harness.scoring import rescore as scores

    add_plugins(plugin)

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
    from harness.records import Store, without_passwords
    from harness.tracking import mlflow_runs

    uri = mlflow or mlflow_runs.default_uri(results)
    try:
        added, kept, replaced = mlflow_runs.sync(Store(results.resolve()), uri)
    except mlflow_runs.TrackingError as error:
        print(f"archbench: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    print(f"{without_passwords(uri)}: {added} runs added, {replaced} replaced, {kept} up to date")


@app.command()
def ui(results: Results = Path("results"), port: Annotated[int, typer.Option(min=1, max=65535)] = 5000) -> None:
    """Show the runs in MLflow's own pages, on this machine only, until Ctrl-C."""
    from harness.tracking import ui

    raise typer.Exit(ui.serve(results.resolve(), port))


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

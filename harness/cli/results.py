"""Commands on finished results: ``leaderboard``, ``ui``, ``rescore`` and ``sync``."""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.app import add_plugins, app
from harness.cli.options import DATA, OUTPUT, READING, Architectures, DataDir, MlflowToSync, Plugins, Results, Tasks
from harness.errors import UsageError
from harness.messages import note, report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.records import Record


@app.command(rich_help_panel=READING)
def leaderboard(
    results: Results = Path("results"),
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the pages. Default: leaderboard/ in the results folder.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Show the texts of the test examples on the compare page, read from this folder of the official data"
            " files. Most licences do not allow to publish them. Default: they are not read.",
            rich_help_panel=DATA,
        ),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Add a page on what changed since an earlier build, whose leaderboard.json this is.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the pages on 127.0.0.1 until Ctrl-C.", rich_help_panel=OUTPUT)
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of each page that cannot be built.", rich_help_panel=OUTPUT),
    ] = False,
    plugin: Plugins = None,
) -> None:
    """Build the leaderboard pages from the records.

    `python leaderboard.py` does the same, without --plugin.

    The files of --plugin are read for names, papers and sizes. Only with --data-dir are those of
    tasks imported, to read their test examples.
    """
    import leaderboard as pages

    add_plugins(plugin)
    paths = {"--results": results, "--out": out, "--data-dir": data_dir, "--since": since}
    arguments = [part for name, path in paths.items() if path for part in (name, str(path))]
    raise typer.Exit(pages.main([*arguments, *(["--serve"] if serve else []), *(["--debug"] if debug else [])]))


@app.command(rich_help_panel=READING)
def ui(
    results: Results = Path("results"),
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 5000,
    browser: Annotated[
        bool | None,
        typer.Option(
            "--browser/--no-browser",
            help="Open the first table in your browser, or not. Default: where there is a screen.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve MLflow's own pages over the results folder, on this machine only, until Ctrl-C.

    On a folder that MLflow does not know yet, the records are logged first.
    """
    from harness.tracking import ui

    screen = sys.platform in ("darwin", "win32") or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())
    raise typer.Exit(ui.serve(results.resolve(), port, note, screen if browser is None else browser))


@app.command(rich_help_panel=READING)
def rescore(
    architectures: Architectures = "*",
    tasks: Tasks = "*",
    results: Results = Path("results"),
    data_dir: DataDir = None,
    plugin: Plugins = None,
) -> None:
    """Score the saved predictions again, after a metric was corrected.

    Nothing is trained. The scores of the single test units are written again too, and records
    whose task was edited, and reads the same rows as ever, no longer count as made by other code
    of it.
    """
    from rich.console import Console
    from rich.progress import track

    from harness.records import Store
    from harness.registry import DESCRIPTION, comma_separated, match
    from harness.scoring import rescore as scores

    add_plugins(plugin)
    Store(results).check_there()

    described = {p: [task.id for task in match("tasks", p)] for p in comma_separated(tasks) if p.endswith(DESCRIPTION)}
    of_tasks = [id for pattern in comma_separated(tasks) for id in described.get(pattern, [pattern])]
    chosen = comma_separated(architectures), of_tasks
    fitting: set[str] = set()

    def matches(record: Record) -> bool:
        hits = [
            [pattern for pattern in patterns if fnmatchcase(id, pattern)]
            for id, patterns in zip((record.architecture, record.task), chosen, strict=True)
        ]
        fitting.update(*hits)
        return all(hits)

    def shown(records: Sequence[Record]) -> Iterable[Record]:
        console = Console(stderr=True)
        return track(records, "records", console=console, transient=True, disable=not console.is_terminal)

    changed = scores.rescore(Store(results.resolve()), data_dir and data_dir.resolve(), matches, shown)
    scored = [(path, changes) for path, changes in changed if changes]
    for path, changes in scored:
        print(path)
        for metric, (before, now) in changes.items():
            print(f"  {metric}: {'none' if before is None else f'{before:.6f}'} -> {now:.6f}")
    if alike := len(changed) - len(scored):
        print(f"{alike} records have the digest of their task's code as it is now, which reads the same rows")
    print(f"{len(scored)} records changed" + ("; run `archbench sync` to update MLflow" if changed else ""))
    if idle := sorted({*chosen[0], *chosen[1]} - fitting - {"*"}):
        raise UsageError(f"no record in {results} ended ok that is of {' or '.join(idle)}; `archbench list` has names")


@app.command(rich_help_panel=READING)
def sync(results: Results = Path("results"), mlflow: MlflowToSync = None, plugin: Plugins = None) -> None:
    """Make the runs in MLflow agree with the record files."""
    from harness.records import Store
    from harness.tracking import Tracker, TrackingError, default_uri, shown_uri

    add_plugins(plugin)
    uri = mlflow or default_uri(results)
    if uri == "none":
        raise UsageError(
            "--mlflow none (or ARCHBENCH_MLFLOW=none) names nothing to sync; the database that runs without the option"
            f" write to is --mlflow {default_uri(results)}"
        )
    Store(results).check_there()
    try:
        store = Store(results.resolve())
        tracker = Tracker(uri, store.folder)
        added, kept, replaced = tracker.sync(store)
    except TrackingError as error:
        report(str(error))
        raise typer.Exit(1) from None
    refused = f", {tracker.refused} not mirrored" if tracker.refused else ""
    print(f"{shown_uri(uri)}: {added} runs added, {replaced} replaced, {kept} up to date{refused}")
    if tracker.refused:
        raise typer.Exit(1)

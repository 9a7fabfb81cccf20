"""Commands that look: ``list``, and ``doctor``, which makes the results folder to see that it can
be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from harness import registry
from harness.cli.app import LightCommand, add_plugins, app, console
from harness.cli.options import GRID, RUNNING, SORTS, DataDir, Plugins, Results
from harness.errors import check_choice
from harness.leaderboard.tables.overlap import Counted, overlaps, short
from harness.messages import report


@app.command("list", cls=LightCommand, rich_help_panel=RUNNING)
def list_(
    what: Annotated[
        str | None, typer.Argument(metavar="[architectures|inputs|tasks]", help="List only these. Default: all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    plugin: Plugins = None,
    results: Results = Path("results"),
) -> None:
    """List the architectures, the sources of further inputs, and the tasks.

    The list is read from the source text of their files; none of them is imported.

    Tasks say how many test examples stand in train, exactly / nearly, by the records in --results.
    """
    add_plugins(plugin)
    if what:
        check_choice("list", what, SORTS)
    listing = {sort: registry.entries(sort) for sort in SORTS if what in (None, sort)}
    described = {sort: list(map(_described, entries.values())) for sort, entries in listing.items()}
    counted = overlaps(Path(results)) if "tasks" in described else {}  # a light command's options are texts
    if as_json:
        for row in described.get("tasks", ()):
            row["overlap"] = counted[row["id"]]._asdict() if row["id"] in counted else None
        print(json.dumps(described, indent=1))
    else:
        for sort, rows in described.items():
            _print_table(sort, rows, counted)
    for sort in listing:
        for error in registry.broken(sort).values():
            report(f"left out: {error}")


def _described(entry: registry.Entry) -> dict[str, Any]:
    """Fields of an entry in a listing."""
    names: tuple[str, ...] = ("name", "kind", "paper", "year", "source", "vectors_of_paper", "version")
    if entry.sort == "inputs":
        names = ("name", "paper", "year", "source", "version")
    if entry.sort == "tasks":
        names = ("name", "type", "metrics", "main_metric", "sizes", "protocol", "version")
    family = {"family": entry.family} if entry.sort == "architectures" else {}
    return {"id": entry.id} | family | {name: getattr(entry, name) for name in names}


def _print_table(sort: registry.Sort, described: list[dict[str, Any]], counted: dict[str, Counted]) -> None:
    """Print architectures by family, inputs and tasks in one table each; that of the tasks with a
    column for overlaps where some are known."""
    columns = {
        "architectures": ("id", "name", "kind", "paper", "year"),
        "inputs": ("id", "name", "paper", "year"),
        "tasks": ("id", "name", "type", "main_metric", "sizes", *(("test in train",) if counted else ())),
    }[sort]
    families: dict[str, list[list[str]]] = {}
    for row in described:
        if sort == "tasks":
            row["sizes"] = ", ".join(f"{split} {count}" for split, count in row["sizes"].items())
            row["test in train"] = short(counted[row["id"]]) if row["id"] in counted else "unknown"
        families.setdefault(row.get("family", sort), []).append([str(row[column]) for column in columns])
    header = [column.replace("_", " ") for column in columns]
    for family, rows in sorted(families.items()):
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        print(f"{family} ({len(rows)})")
        for cells in (header, *rows):
            print(" ", "  ".join(map(str.ljust, cells, widths)).rstrip())
        print()


@app.command(rich_help_panel=RUNNING)
def doctor(
    results: Results = Path("results"),
    data_dir: DataDir = None,
    plugin: Plugins = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            "-t",
            "--tasks",
            metavar="PATTERN",
            help="Look at these tasks alone, as `archbench check` does. Default: whether the files of every task in"
            " --data-dir can be read.",
            rich_help_panel=GRID,
        ),
    ] = None,
) -> None:
    """Check that this machine can run a grid.

    Checks versions, threads, memory allocator, GPU, results folder, plugin files and, with
    --data-dir, data files.
    """
    from rich.markup import escape
    from rich.table import Table

    from harness.cli.doctor import examine

    add_plugins(plugin)
    findings = list(examine(results.resolve(), data_dir and data_dir.resolve(), tasks))
    table = Table("", "", "", box=None, show_header=False)
    for finding in findings:
        table.add_row(
            "[green]ok[/green]" if finding.ok else "[red]wrong[/red]", finding.subject, escape(finding.message)
        )
    console().print(table)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)

"""Commands that look and change nothing: ``list`` and ``doctor``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from harness import registry
from harness.cli.app import add_plugins, app, chosen, console
from harness.cli.options import DataDir, Plugins, Results


@app.command("list")
def list_(
    what: Annotated[str | None, typer.Argument(metavar="[architectures|tasks]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    plugin: Plugins = None,
) -> None:
    """List the architectures and tasks."""
    add_plugins(plugin)
    sorts: list[Any] = [chosen("list", what, ("architectures", "tasks"))] if what else ["architectures", "tasks"]
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
    names = ("name", "kind", "paper", "year", "source", "vectors_of_paper", "version")
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
        console().print(table, "")


@app.command()
def doctor(results: Results = Path("results"), data_dir: DataDir = None, plugin: Plugins = None) -> None:
    """Look at what a run needs: versions, threads, memory allocator, data files, GPU, results
    folder, plugin files."""
    from rich.markup import escape
    from rich.table import Table

    from harness.cli.doctor import examine

    add_plugins(plugin)
    findings = list(examine(results.resolve(), data_dir))
    table = Table("", "", "", box=None, show_header=False)
    for finding in findings:
        table.add_row("[green]ok[/green]" if finding.well else "[red]wrong[/red]", finding.what, escape(finding.found))
    console().print(table)
    if not all(finding.well for finding in findings):
        raise typer.Exit(1)

"""Commands for plugin authors: ``check`` and ``new``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from harness import registry
from harness.cli.app import add_plugins, app, chosen, console
from harness.cli.options import Plugins


@app.command()
def check(name: Annotated[str, typer.Argument(metavar="NAME")], plugin: Plugins = None) -> None:
    """Check that an architecture keeps the contract: shapes, gradients, padding, seeds, saving,
    overfitting a few examples."""
    add_plugins(plugin)
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
    console().print(table)
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
    from harness.cli import scaffold

    chosen("--kind", kind, scaffold.KINDS)
    plugin, test = scaffold.write(name, kind, family, out)
    given = f" --plugin {shlex.quote(str(plugin))}" if out else ""
    print(
        f"{plugin}\n{test}\nnext:\n  archbench check {name}{given}\n  archbench run -a {name} -t"
        f" {scaffold.TASKS[kind]}{given}"
    )

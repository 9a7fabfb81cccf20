"""Commands for plugin authors: ``check`` and ``new``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from harness import registry
from harness.cli.app import add_plugins, app, console, import_other_plugins
from harness.cli.options import EXTENDING, Plugins
from harness.errors import check_choice


@app.command(rich_help_panel=EXTENDING)
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Id of the architecture.")], plugin: Plugins = None
) -> None:
    """Check that an architecture keeps the contract of its kind.

    Checks shapes, gradients, padding, seeds, saving, and that it can overfit a few examples.
    """
    add_plugins(plugin)
    entry = registry.entry("architectures", name)
    import_other_plugins([entry])
    from rich.markup import escape
    from rich.table import Table

    from harness.contract import check as checks

    results = checks(entry)
    table = Table("check", "", "", box=None, show_header=False)
    for result in results:
        table.add_row(
            "[green]passed[/green]" if result.passed else "[red]failed[/red]", result.name, escape(result.message or "")
        )
    console().print(table)
    if not all(result.passed for result in results):
        raise typer.Exit(1)


@app.command(rich_help_panel=EXTENDING)
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Id of the new architecture: lower-case letters, digits, underscores.")
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Input and output of the model: text, seq, tree, pair, tag, span, answer, ctc, generate, plm (starts"
            " from random weights), fit (no gradients) or regime (trains another architecture).",
        ),
    ] = "text",
    family: Annotated[
        str | None,
        typer.Option(
            "--family",
            metavar="NAME",
            help="In a checkout of archbench: write to architectures/NAME/ and tests/architectures/NAME/.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for both files. Default: the current folder."),
    ] = None,
) -> None:
    """Write a working plugin file and its test as a starting point for your model."""
    from harness.cli import scaffold

    check_choice("--kind", kind, scaffold.KINDS)
    plugin, test = scaffold.write(name, kind, family, out)
    given = "" if family else f" --plugin {shlex.quote(str(plugin))}"
    print(
        f"{plugin}\n{test}\nnext:\n  archbench check {name}{given}\n  archbench run -a {name} -t"
        f" {scaffold.TASKS[kind]}{given}"
    )
    if family is None and out is None and scaffold.is_checkout(Path()):
        print("to contribute it: `archbench new` with --family writes to architectures/ and tests/ of this checkout")

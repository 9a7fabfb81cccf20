"""Commands for plugin authors: ``check`` and ``new``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import registry
from harness.cli.app import add_plugins, app, console
from harness.cli.options import EXTENDING, SORTS, DataDir, Plugins
from harness.errors import UsageError, check_choice

if TYPE_CHECKING:
    from harness.contract import Result


@app.command(rich_help_panel=EXTENDING)
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Id of the architecture, input source or task.")],
    plugin: Plugins = None,
    data_dir: DataDir = None,
    default_size: Annotated[
        bool,
        typer.Option(
            "--default-size",
            help="Also train the architecture as it is shipped: default sizes, its own recipe, about two minutes of"
            " the processor.",
        ),
    ] = False,
) -> None:
    """Check that an architecture, an input source or a task keeps its contract.

    Of an architecture: shapes, gradients, padding, seeds, saving, threads, that it can overfit a
    few examples, and that it learns from train alone. Of an input source: the same, of a mean of
    words that reads it. Of a task: its rows in every split, its
    metrics, and that systems see no answer; with --data-dir also what its files hold.
    """
    add_plugins(plugin)
    known: dict[str, registry.Entry] = {id: entry for sort in SORTS for id, entry in registry.entries(sort).items()}
    if name not in known:
        raise registry.unknown_name(SORTS, name, known)
    registry.import_other_plugins([known[name]])
    results = _results(known[name], data_dir, default_size)
    from rich.markup import escape
    from rich.table import Table

    table = Table("check", "", "", box=None, show_header=False)
    for result in results:
        table.add_row(
            "[green]passed[/green]" if result.passed else "[red]failed[/red]", result.name, escape(result.message or "")
        )
    console().print(table)
    if not all(result.passed for result in results):
        raise typer.Exit(1)


def _results(entry: registry.Entry, data_dir: Path | None, default_size: bool) -> list[Result]:
    if isinstance(entry, registry.TaskEntry):
        from harness.contract import tasks

        return tasks.check(entry, data_dir and data_dir.resolve())
    from harness import contract

    if isinstance(entry, registry.InputEntry):
        from harness.contract import inputs

        return inputs.check(entry)
    assert isinstance(entry, registry.ArchitectureEntry)
    results = contract.check(entry)
    if default_size:
        from harness.contract.default_size import as_shipped

        results.append(as_shipped(entry))
    return results


@app.command(rich_help_panel=EXTENDING)
def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Id of the new architecture or task: lower-case letters, digits, underscores."
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Input and output of the model: text, seq, tree, pair, tag, span, answer, ctc, generate, lm, plm"
            " (starts from random weights), fit (no gradients) or regime (trains another architecture). Or task: a"
            " task of your own, not a model.",
        ),
    ] = "text",
    type: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="With --kind task: answer, audio, classify (the default), extract, language_model, match,"
            " multilabel, rank, regress, regress_pair, tag, text, transcribe or translate.",
        ),
    ] = None,
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
    """Write a working plugin file and its test as a starting point for your model or task."""
    from harness.cli import scaffold

    check_choice("--kind", kind, scaffold.KINDS)
    if kind == "task":
        return _new_task(name, type or "classify", family, out)
    if type is not None:
        raise UsageError(f"--type {type} is of a task: give --kind task")
    plugin, test = scaffold.write(name, kind, family, out)
    given = "" if family else f" --plugin {shlex.quote(str(plugin))}"
    print(
        f"{plugin}\n{test}\nnext:\n  archbench check {name}{given}\n  archbench run -a {name} -t"
        f" {scaffold.TASKS[kind]}{given}"
    )
    if family is None and out is None and scaffold.is_checkout(Path()):
        print("to contribute it: `archbench new` with --family writes to architectures/ and tests/ of this checkout")


def _new_task(name: str, type: str, family: str | None, out: Path | None) -> None:
    from harness.cli import scaffold

    check_choice("--type", type, scaffold.TYPES)
    if family is not None:
        raise UsageError(f"--family {family} is of an architecture; a task goes to --out DIR")
    plugin, test = scaffold.write_task(name, type, out)
    given = f"--plugin {shlex.quote(str(plugin))}"
    print(
        f"{plugin}\n{test}\nnext:\n  archbench check {name} {given}\n  archbench run -a '*' -t {name} {given} --dry-run"
    )

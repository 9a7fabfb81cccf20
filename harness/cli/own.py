"""The ``new-task`` command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import registry
from harness.cli.app import app, report
from harness.cli.options import DATA, GRID, OUTPUT, RUNNING
from harness.errors import check_choice

if TYPE_CHECKING:
    from harness.own.description import Column


@app.command("new-task", rich_help_panel=RUNNING)
def new_task(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, JSONL or Parquet file, CoNLL columns, or a folder of WAV files with such a list of them.",
        ),
    ],
    text: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the texts, by name or by number from 1.", rich_help_panel=DATA),
    ] = None,
    second: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the second texts of pairs.", rich_help_panel=DATA)
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the answers: labels, scores or tags.", rich_help_panel=DATA),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column whose values never stand in two splits, such as the writer.",
            rich_help_panel=DATA,
        ),
    ] = None,
    dev: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of the dev split.", rich_help_panel=DATA)
    ] = None,
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of the test split.", rich_help_panel=DATA)
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv, tsv, jsonl, parquet or conll. Default: as the ending of the file says.",
            rich_help_panel=DATA,
        ),
    ] = None,
    type: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Question asked, such as classify, match or tag.", rich_help_panel=GRID),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="TOML file. Default: of the data's name, in the current folder.",
                     rich_help_panel=OUTPUT),
    ] = None,
) -> None:  # fmt: skip
    """Describe your own data as a task, without code.

    Looks at every row and writes a TOML file with what it guessed and what it counted. Then
    `archbench run -t ./FILE.toml` runs architectures on it. The file is yours: correct it.
    """
    from typing import get_args

    from harness.own.description import Format, Source
    from harness.own.writing import new_task

    if form is not None:
        check_choice("--format", form, get_args(Format))
    if type is not None:
        check_choice("--type", type, tuple(registry.entries("problems")))
    columns = {"text": _column(text), "second": _column(second), "label": _column(label)}
    others = {"dev": dev, "test": test}
    file, warnings = new_task(
        data,
        columns=columns,
        type=type,
        group=_column(group),
        others={split: path for split, path in others.items() if path is not None},  # type: ignore[misc]
        source=Source(format=form),  # type: ignore[arg-type]  # checked above
        out=out,
    )
    for warning in warnings:
        report(f"warning: {warning}")
    name = str(file) if file.is_absolute() else f"./{file}"
    command = f"archbench run -a 'avg_vectors,nbsvm' -t {shlex.quote(name)} --protocol equal"
    print(f"{file}\nnext: look at it, then\n  {command}")


def _column(text: str | None) -> Column | None:
    """A column by its name, or by its number if the option is one."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and int(text) else text

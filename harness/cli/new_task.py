"""The ``new-task`` command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from harness import registry
from harness.cli.app import app
from harness.cli.options import DATA, GRID, OUTPUT, RUNNING
from harness.errors import check_choice
from harness.messages import report

if TYPE_CHECKING:
    from harness.task import Split
    from harness.user_data.description import Column


Text = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of the texts, by name or by number from 1.", rich_help_panel=DATA),
]
Second = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of the second texts of pairs.", rich_help_panel=DATA)
]
Label = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of the answers: labels, scores or tags.", rich_help_panel=DATA),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column whose values never stand in two splits, such as the writer.",
        rich_help_panel=DATA,
    ),
]
Type = Annotated[
    str | None,
    typer.Option(metavar="TYPE", help="Question asked, such as classify, match or tag.", rich_help_panel=GRID),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="csv, tsv, jsonl, parquet or conll. Default: as the ending of the file says.",
        rich_help_panel=DATA,
    ),
]
"""Options by which a user tells of a data file what is not to be guessed."""


@app.command("new-task", rich_help_panel=RUNNING)
def new_task(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, JSONL or Parquet file, CoNLL columns, or a folder of WAV files with such a list of them.",
        ),
    ],
    text: Text = None,
    second: Second = None,
    label: Label = None,
    group: Group = None,
    dev: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of the dev split.", rich_help_panel=DATA)
    ] = None,
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of the test split.", rich_help_panel=DATA)
    ] = None,
    form: Form = None,
    type: Type = None,
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
    from harness.model_selection.evidence import to_begin_with
    from harness.user_data.writing import NOT_RUN

    columns = {"text": text, "second": second, "label": label}
    others: dict[Split, Path | None] = {"dev": dev, "test": test}
    given = {split: path for split, path in others.items() if path is not None}
    file, warnings = describe(data, columns, group, form, type, given, out)
    if any(warning.startswith(NOT_RUN) for warning in warnings):
        print(f"{file}\nnext: correct it, or the data")
        return
    [task] = (each for each in registry.declared(file) if isinstance(each, registry.TaskEntry))
    name = str(file) if file.is_absolute() else f"./{file}"
    command = f"archbench run -a {','.join(to_begin_with(task))} -t {shlex.quote(name)} --protocol equal"
    print(f"{file}\nnext: look at it, then\n  {command}")


def describe(
    data: Path,
    columns: Mapping[str, str | None],
    group: str | None,
    form: str | None,
    type: str | None,
    others: Mapping[Split, Path] = MappingProxyType({}),
    out: Path | None = None,
) -> tuple[Path, list[str]]:
    """Write the TOML file of a data file by the options of a command, tell its warnings, and return
    both."""
    from typing import get_args

    from harness.user_data.description import Format, Source
    from harness.user_data.writing import new_task

    if form is not None:
        check_choice("--format", form, get_args(Format))
    if type is not None:
        check_choice("--type", type, tuple(registry.entries("problems")))
    file, warnings = new_task(
        data,
        columns={name: as_column(column) for name, column in columns.items()},
        type=type,
        group=as_column(group),
        others=others,
        source=Source(format=form),  # type: ignore[arg-type]  # checked above
        out=out,
    )
    for warning in warnings:
        report(f"warning: {warning}")
    return file, warnings


def as_column(text: str | None) -> Column | None:
    """A column by its name, or by its number if the option is one."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and int(text) else text

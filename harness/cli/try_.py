"""The ``try`` command."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import registry
from harness.cli.app import add_plugins, app
from harness.cli.new_task import Form, Group, Label, Second, Text, Type, as_column, describe
from harness.cli.options import EXECUTION, RUNNING, Architectures, Plugins, Results
from harness.errors import UsageError
from harness.model_selection.wish import Preference, Wish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.leaderboard.tables.table import Table
    from harness.model_selection.choice import Tried
    from harness.model_selection.trial import Trial
    from harness.user_data.description import Column

NAMED = 8
"""Architectures that a terminal shows of those which one reason leaves out."""


@app.command("try", rich_help_panel=RUNNING)
def try_(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A file that `new-task` takes, or a TOML file of one data file (`all = ...`).",
        ),
    ],
    minutes: Annotated[
        float,
        typer.Option(
            min=0.5,
            metavar="N",
            help="Wall-clock time of the whole trial. The last trainings may pass it, by twice their time at most.",
            rich_help_panel=EXECUTION,
        ),
    ] = 20.0,
    architectures: Architectures = "*",
    text: Text = None,
    second: Second = None,
    label: Label = None,
    group: Group = None,
    form: Form = None,
    type: Type = None,
    prefer: Annotated[
        Preference,
        typer.Option(
            help="Of those that chance cannot tell from the best: the one with the best score, or the one that trains"
            " in the shortest time.",
            rich_help_panel=EXECUTION,
        ),
    ] = Preference.best,
    latency_ms: Annotated[
        float | None,
        typer.Option(
            min=0.0, metavar="MS", help="Most milliseconds for an answer to one text.", rich_help_panel=EXECUTION
        ),
    ] = None,
    size_mib: Annotated[
        float | None,
        typer.Option(
            min=0.0, metavar="MIB", help="Most MiB of weights; unknown sizes fail.", rich_help_panel=EXECUTION
        ),
    ] = None,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit/--no-refit",
            help="Hand over a model that was trained once more on all rows, or the one that was scored: none where a"
            " cross-validation scored several.",
            rich_help_panel=EXECUTION,
        ),
    ] = True,
    results: Results = Path("results"),
    plugin: Plugins = None,
) -> None:
    """Find out which architecture suits your own data.

    Trains what fits as long as there is time: the cheapest first, then what committed records of
    like tasks let expect most of. The choice falls by rows that no
    training saw, and is confirmed once on rows that were sealed until then; then the chosen one
    learns from all of them. Ends with a table, a page, and a reason for each architecture that was
    left out. The same command goes on where it was stopped.
    """
    began = time.monotonic()
    add_plugins(plugin)
    from harness.user_data.description import file_of

    file = data if data.suffix == registry.DESCRIPTION else file_of(data)
    columns = {"text": text, "second": second, "label": label}
    if not file.exists() and file != data:
        describe(data, columns, group, form, type, out=file)
    else:
        if file != data:
            _refuse_other_data(file, data)
        _refuse_otherwise(file, columns, {"group": group, "format": form, "type": type})
    [entry] = registry.match("tasks", str(file if file.is_absolute() else f"./{file}"))
    from harness.model_selection.report import lines, sentences, tables, write_page
    from harness.model_selection.trial import Trial
    from harness.records import portable_command
    from harness.saved_models.storage import place

    task = registry.load(entry)(entry)
    command = portable_command(["archbench", *sys.argv[1:]])
    wish = Wish(prefer, latency_ms, size_mib)
    trial = Trial(task, results, began + 60 * minutes, architectures, command, wish, refit)
    print(f"{file}: {trial.slices.words}", flush=True)
    fitting = [each for each in trial.waiting if not each.is_floor]
    print(f"{len(fitting)} architectures fit. {trial.order.reason}", flush=True)
    trial.run(lambda ended: _show(trial, ended))
    print()
    for table in map(_shortened, tables(trial)):
        print("\n".join([table.title, "", *lines(table), ""]))
    print("\n".join(sentences(trial)))
    print(write_page(trial))
    if trial.handed_over is not None:
        ending = task.description.path("all").suffix
        print(f"next:\n  archbench predict {place(trial.folder, trial.handed_over.key)} NEW{ending}")
    if trial.stopped or not any(not each.is_floor for each in trial.tried):
        raise typer.Exit(1)


def _shortened(table: Table) -> Table:
    """The table of what was left out with some names for each reason, another one as it is."""
    from harness.leaderboard.tables.table import Block, Part

    if table.id != "left-out":
        return table
    rows = []
    for row in table.blocks[0].rows:
        [[part]] = row.cells
        names = part.text.split(", ")
        if len(names) > NAMED:
            part = Part(f"{', '.join(names[:NAMED])} and {len(names) - NAMED} others, which the page names")
        rows.append(replace(row, cells=[[part]]))
    return replace(table, blocks=[Block("", rows)])


def _refuse_other_data(file: Path, data: Path) -> None:
    """Raise :class:`UsageError` where a description is not of these data, but of others of that
    name."""
    from harness.user_data.description import described
    from harness.user_data.inspection import list_in

    found = described(file)
    own = (list_in(data) if data.is_dir() else data).resolve()
    if own not in {found.path(place).resolve() for place in found.places}:
        raise UsageError(f"{file} exists already and is of other data than {data}: name {file} itself, or move it away")


def _refuse_otherwise(file: Path, columns: Mapping[str, str | None], others: Mapping[str, str | None]) -> None:
    """Raise :class:`UsageError` where a description says otherwise than the options of a call."""
    from harness.user_data import raw_tables
    from harness.user_data.description import described
    from harness.user_data.inspection import roles

    found = described(file)
    has = {option: found.columns.get(name) for option, name in roles(found.type).items()} | {"group": found.group}
    if "transcript" in found.columns:  # the only text beside recordings
        has["text"] = found.columns["transcript"]
    given = {**columns, "group": others["group"]}
    names: Sequence[Column] = ()
    if any(isinstance(column, int) for column in (*map(as_column, given.values()), *has.values())):
        names = raw_tables.read(found.path(next(iter(found.places))), found.source, None).columns

    def same(column: Column | None) -> Column | None:
        """A column by its name, or by its number where it has none or shares it."""
        number = as_column(column) if isinstance(column, str) and column not in names else column
        if not isinstance(number, int) or number > len(names):
            return number
        name = names[number - 1]
        return name if names.count(name) == 1 and str(name).strip() else number

    said = {option: same(text) for option, text in given.items()}
    said |= {each: others[each] for each in ("format", "type")}
    has = {option: same(column) for option, column in has.items()}
    has |= {"format": found.source.format, "type": found.type}
    for option, value in said.items():
        if value is not None and value != has.get(option):
            raise UsageError(f"{file} exists already and says otherwise than --{option} {value}: correct it there")


def _show(trial: Trial, ended: Sequence[Tried]) -> None:
    """Tell what ended: the whole table at first, then the new lines."""
    from harness.model_selection.report import lines, tables, write_page

    if not ended:
        return
    page, table = write_page(trial, running=True), lines(tables(trial)[0])
    if len(trial.tried) == len(ended):
        print("\n".join(["", *table, "", f"so far; {page} has each architecture as it ends"]), flush=True)
        return
    for place, each in enumerate(trial.choice.rows, 1):
        if each.tried in ended:
            print(table[place], flush=True)

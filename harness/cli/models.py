"""Commands on kept models: ``predict`` and ``models``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.app import add_plugins, app
from harness.cli.options import DATA, OUTPUT, READING, Plugins, Results
from harness.errors import UsageError, check_choice
from harness.messages import report

if TYPE_CHECKING:
    from harness.records import Store
    from harness.saved_models.storage import Kept


@app.command(rich_help_panel=READING)
def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A kept model: its folder, or the beginning of its key in --results.")
    ],
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="The texts. Default: standard input.")] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="lines|csv|tsv|jsonl|parquet|conll|wav",
            help="Format of the texts. Default: by the name of the file, else lines.",
            rich_help_panel=DATA,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="The column of the file in the place of one that the model reads, such as text=review, or its number"
            " from 1; may be repeated.",
            rich_help_panel=DATA,
        ),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="table|csv|jsonl", help="Format of the answers.", rich_help_panel=OUTPUT)
    ] = "table",
    results: Results = Path("results"),
    plugin: Plugins = None,
) -> None:
    """Answer new texts with a model that `archbench run --keep` kept.

    A model of your own data reads a file as these were read (columns, delimiter, encoding), if the
    file has their ending and no --from is given. A line that cannot be read is named on standard
    error and passed over; the exit code is then 1.
    """
    from harness.saved_models.reading import READERS, asked, manner_of
    from harness.saved_models.storage import find
    from harness.user_data.description import Manner

    if source is not None:
        check_choice("--from", source, tuple(READERS))
    check_choice("--to", to, ("table", "csv", "jsonl"))
    add_plugins(plugin)
    folder = find(model, results)
    manner = manner_of(file, folder) if file is not None and source is None else Manner(source or "lines")
    try:
        stream = sys.stdin.buffer if file is None else file.open("rb")
    except OSError as error:
        raise UsageError(f"FILE {file}: {error.strerror}") from error
    import torch

    from harness.problems.answers import answers_of
    from harness.saved_models.model import load
    from harness.saved_models.prediction import WRITERS, answered, wanted_by

    kept = load(folder, "cuda" if torch.cuda.is_available() else "cpu")
    name = str(file or "standard input")
    wanted = wanted_by(kept, name, manner, _columns(column or [], list(kept.description.inputs)))
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a label may be no text
    passed_over = 0
    with stream:
        write = WRITERS[to](sys.stdout, answers_of(kept.problem.entry))
        try:
            for each in answered(kept, asked(stream, wanted)):
                if each.answer is None:
                    passed_over += 1
                    report(f"{name}:{each.question.line}: passed over: {each.question.fault}")
                else:
                    write(each)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever reads the answers has enough of them
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
    if passed_over:
        report(f"{passed_over} passed over")
        raise typer.Exit(1)


def _columns(given: list[str], known: list[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise UsageError(f"--column {text}: expected NAME=COLUMN, such as {known[0]}=review")
        check_choice(f"--column {text}: NAME", name, known)
        names[name] = value
    return names


@app.command(rich_help_panel=READING)
def models(
    results: Results = Path("results"),
    remove: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN", help="Remove the models whose keys these shell wildcards fit, comma-separated."
        ),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """List the kept models with their sizes and who starts from them, or remove some.

    A model of which the architecture's code has changed since is named; --plugin has the code of
    your own.
    """
    from harness.records import Store
    from harness.saved_models import storage

    add_plugins(plugin)
    Store(results).check_there()
    if remove is not None:
        removed = storage.remove(remove, results)
        for kept in removed:
            print(f"removed {kept.folder.name}, {_mib(kept.size)}")
        return
    found = list(storage.kept_models(results))
    store = Store(results)
    needed = _needed(found, store)
    for kept in found:
        told = "; ".join([_described(kept, store), *needed.get(kept.folder.name, ())])
        print(f"{kept.folder.name}  {_mib(kept.size):>10}  {told}")
    print(f"{len(found)} kept, {_mib(sum(kept.size for kept in found))}")


def _needed(found: list[Kept], store: Store) -> dict[str, list[str]]:
    """Those that start from each kept model or cannot answer without it, in words, by its key."""
    from harness.saved_models.storage import asked_parents_of

    needed: dict[str, list[str]] = {}
    for record in store.all() if found else ():
        for role, parent in record.cell.parents.items():
            needed.setdefault(parent["key"], []).append(f"{role} of {record.cell.words}")
    for kept in found:
        for parent in asked_parents_of(kept.description).values() if kept.description else ():
            needed.setdefault(parent["key"], []).append(f"without it {kept.folder.name} cannot answer")
    return needed


def _described(kept: Kept, store: Store) -> str:
    """A kept model in words, with what a user should know before asking it."""
    if kept.description is None:
        return f"damaged: {kept.fault}"
    from harness.errors import RecordError
    from harness.records import Cell
    from harness.saved_models.storage import of_other_code

    origin, notes = kept.description.origin, []
    try:
        cell = Cell.from_dict(origin.cell)
    except (RecordError, TypeError) as error:
        return f"of no cell: {error}"
    try:
        record, damage = store.find(cell), None
    except RecordError as error:
        record, damage = None, str(error)
    if kept.description.transductive:
        notes.append("transductive: it cannot answer new texts")
    if of_other_code(kept.description):
        notes.append("the code of its architecture has changed since")
    if record is None:
        notes.append(damage or "there is no record of its cell here")
    elif record.predictions is None or record.predictions["sha256"] != origin.predictions:
        notes.append("the record of its cell is of another run")
    return "; ".join([f"{cell.words}, {cell.protocol} on {cell.tier}", *notes])


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"

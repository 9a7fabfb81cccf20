"""The ``archbench`` command itself.

Each command imports what it needs when it is called, so that help and listings answer at once.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from harness import registry
from harness.errors import ArchbenchError
from harness.messages import report

if TYPE_CHECKING:
    from rich.console import Console


class _AsTyped:
    """Gives a command its arguments as they were typed: text, None and flags.

    Typer would import pydantic to convert them, which takes longer than a listing. A command that
    needs numbers or paths is an ordinary one.
    """

    def get_params(self, context: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(context)  # type: ignore[misc]
        for parameter in parameters:
            parameter.process_value = functools.partial(self._value, parameter)
        return parameters

    @staticmethod
    def _value(parameter: Any, context: Any, value: Any) -> Any:
        return value if parameter.callback is None else parameter.callback(context, parameter, value)


class LightCommand(_AsTyped, TyperCommand):
    """A command without conversion of its arguments."""


class LightGroup(_AsTyped, TyperGroup):
    """Commands under options that are all flags."""


app = typer.Typer(cls=LightGroup, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)


def _print_version(asked: bool) -> None:
    if asked:
        import harness

        print(f"archbench {harness.__version__}")
        raise typer.Exit


@app.callback()
def archbench(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit."),
    ] = False,
) -> None:
    """Compare NLP architectures, neural and classical, on the same tasks under the same protocol.

    A grid is architectures x tasks x seeds. Each combination is a cell, runs in a process of its
    own, and ends in one record. The leaderboard is built from the records.

    \b
    archbench list                        shows what can be run
    archbench run -a lstm,dan -t sst2     trains two architectures on a small built-in corpus
    archbench leaderboard                 writes results/leaderboard/index.html
    """  # noqa: D301 - the backslash is a sign for click, which keeps the lines below as they are


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the console script.

    Exit code 0: all well; 1: a cell or check failed; 2: the command cannot be carried out.
    """
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        app(args=arguments, prog_name="archbench")
    except ArchbenchError as error:
        report(str(error))
        sys.exit(2)
    sys.exit(0)


def add_plugins(given: list[Path] | None) -> None:
    """Add the files, folders and wildcards of ``--plugin`` to the registry; an error for a file
    that is of no use."""
    for path in given or []:
        registry.add_plugin(path)
    registry.check_plugins()


def console() -> Console:
    """Standard output. Lines of a table are not cut where it is no terminal."""
    from rich.console import Console

    output = Console()
    return output if output.is_terminal else Console(width=240, soft_wrap=True)

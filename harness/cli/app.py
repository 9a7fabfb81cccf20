"""The ``archbench`` command itself. Each command imports what it needs when it is called, so that
help and listings answer at once."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from harness import registry
from harness.errors import ArchbenchError, UsageError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    help="Compares NLP architectures on the same tasks under the same protocol.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the console script.

    Exit code 0: all well; 1: a cell or check failed; 2: the command cannot be carried out.
    """
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        app(args=arguments, prog_name="archbench")
    except ArchbenchError as error:
        print(f"archbench: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(0)


def add_plugins(files: list[Path] | None) -> None:
    """Add the files of ``--plugin`` to the registry."""
    for file in files or []:
        registry.add_plugin(file)


def chosen(option: str, value: str, known: Sequence[str]) -> str:
    """``value`` if it is known; :class:`~harness.errors.UsageError` with a near one otherwise."""
    if value in known:
        return value
    near = did_you_mean(value, known, "")
    raise UsageError(f"{option} {value}: unknown. {near + ' ' if near else ''}Choose from {', '.join(known)}")


def console() -> Console:
    """Standard output; lines of a table are not cut where it is no terminal."""
    from rich.console import Console

    output = Console()
    return output if output.is_terminal else Console(width=240, soft_wrap=True)

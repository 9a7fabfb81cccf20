"""Options that several commands share, and the panels of ``--help`` that group options and
commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from harness.registry import Sort

GRID, DATA, TRAINING, EXECUTION, OUTPUT = "Grid", "Data", "Training", "Execution", "Output"
"""Panels of options."""

RUNNING, EXTENDING, READING = "Run a grid", "Add a model", "Work with results"
"""Panels of commands."""

SORTS: tuple[Sort, ...] = ("architectures", "inputs", "tasks")
"""Sorts of plugins that a user lists and checks."""

Results = Annotated[
    Path,
    typer.Option(
        "--results", metavar="DIR", help="Folder of records, predictions, logs and pages.", rich_help_panel=OUTPUT
    ),
]

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        envvar="ARCHBENCH_DATA",
        help="Folder of the official data files, needed by tier local.",
        rich_help_panel=DATA,
    ),
]

Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="PATH",
        help="Python file with architectures or tasks of your own, a folder of them, or a quoted wildcard such as"
        " 'mine/*.py'; may be repeated.",
        rich_help_panel=GRID,
    ),
]

Architectures = Annotated[
    str,
    typer.Option(
        "-a",
        "--architectures",
        metavar="PATTERN",
        help="Ids of architectures as shell wildcards, comma-separated, such as 'lstm,*cnn*'.",
        rich_help_panel=GRID,
    ),
]

Tasks = Annotated[
    str,
    typer.Option(
        "-t",
        "--tasks",
        metavar="PATTERN",
        help="Ids of tasks as shell wildcards, comma-separated, such as 'sst*,snli'; or the TOML file of a task of your"
        " own data.",
        rich_help_panel=GRID,
    ),
]


def _mlflow(place: str) -> Any:
    return typer.Option(
        "--mlflow",
        metavar="URI",
        envvar="ARCHBENCH_MLFLOW",
        help=f"{place}. Default: mlflow.db in the results folder. One with a password belongs"
        " into the variable, since every user of the machine sees the options of a running program.",
        rich_help_panel=OUTPUT,
    )


Mlflow = Annotated[str | None, _mlflow("MLflow tracking URI, or none")]

MlflowToSync = Annotated[str | None, _mlflow("MLflow tracking URI")]
"""As :data:`Mlflow`, for a command that does nothing else."""

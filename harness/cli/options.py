"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Results = Annotated[Path, typer.Option("--results", metavar="DIR", help="Results folder.")]


DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", metavar="DIR", envvar="ARCHBENCH_DATA", help="Folder of the official data files (tier local)."
    ),
]


Plugins = Annotated[
    list[Path] | None, typer.Option("--plugin", metavar="FILE", help="A plugin file of your own; may be repeated.")
]


Architectures = Annotated[
    str, typer.Option("-a", "--architectures", metavar="PATTERN", help="Shell wildcards, comma-separated.")
]


Tasks = Annotated[str, typer.Option("-t", "--tasks", metavar="PATTERN", help="Shell wildcards, comma-separated.")]


Mlflow = Annotated[
    str | None,
    typer.Option(
        "--mlflow", metavar="URI", help="MLflow tracking URI, or none; by default mlflow.db in the results folder."
    ),
]


TIERS = ("mini", "local", "hub")


PRECISIONS = ("32", "64", "bf16-mixed", "bf16-true")

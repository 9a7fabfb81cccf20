"""A process that tells which tasks have their files in a data folder, and reads no row of them
(``python -m harness.running.presence``).

It takes the JSON of :mod:`harness.running.reading` from standard input and prints a line of JSON
for each task: ``{"task", "missing"}``, a message on the first file that is not there, or null.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from pathlib import Path
from typing import Any, get_args

from harness import registry
from harness.errors import MissingFile
from harness.running.reading import answer_each
from harness.task import Split


class _Opened(BaseException):
    """A file of the folder is there: no exception that the code of a task expects."""


def missing(id: str, folder: Path) -> str | None:
    """A message on the first file that a task lacks, or None: each split has the file that is
    opened first. What else is wrong with it is found when it is read."""
    for split in get_args(Split):
        entry = registry.entry("tasks", id)
        try:
            deque(registry.load(entry)(entry).local(folder, split), maxlen=0)
        except _Opened:
            continue
        except (MissingFile, FileNotFoundError, NotADirectoryError) as error:
            return str(error)
        except (Exception, SystemExit):
            return None
    return None


def main() -> None:
    """Answer what standard input asks."""
    folder: Path | None = None

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook: the interpreter calls it before it opens a file."""
        if event == "open" and folder is not None and isinstance(arguments[0], str | bytes):
            path = Path(os.fsdecode(arguments[0])).absolute()
            if path.is_relative_to(folder) and path.is_file():
                raise _Opened

    def answer(id: str, asked: dict[str, str]) -> dict[str, str | None]:
        nonlocal folder
        folder = Path(asked["folder"]).absolute()
        try:
            return {"missing": missing(id, folder)}
        finally:
            folder = None

    sys.addaudithook(refuse)
    answer_each(answer)


if __name__ == "__main__":
    main()

"""A process that reads the data of tasks and prints what is wrong with them, and no row
(``python -m harness.running.reading``).

It reads test splits too, which the process that plans a run therefore never sees. It takes one JSON
object from standard input, ``{"plugins", "tasks", "tier", "folder"}``, and prints a line of JSON
for each task as soon as it is read: ``{"task", "counts", "faults", "notes", "train_bytes"}``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pyarrow

from harness import registry
from harness.errors import ArchbenchError, MissingFile
from harness.running.orphans import end_with_parent
from harness.task import Split, Task, Tier


def read(id: str, tier: Tier, folder: Path | None) -> dict[str, Any]:
    """The number of rows in each split of a task that can be used, a message for each fault, the
    task's own notes, and the size of the training rows."""
    counts: dict[str, int] = {}
    faults: list[str] = []
    notes: list[str] = []
    task: Task | None = None
    train_bytes = 0
    for split in get_args(Split):
        try:
            task = task or _task(id)
            counts[split], size = _count(task, split, tier, folder)
            train_bytes = size if split == "train" else train_bytes
            if len(counts) == len(get_args(Split)):
                notes = task.notes()
        except (MissingFile, OSError) as error:
            faults.append(f"{id}: split {split}: {error}")
            break  # the other splits lie in the same place
        except ArchbenchError as error:
            faults += [line if line.startswith(f"{id}: ") else f"{id}: {line}" for line in str(error).splitlines()]
        except (Exception, SystemExit) as error:  # a task's code may raise anything
            place = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{type(error).__name__}: {error} ({place.filename}, line {place.lineno})"
            faults.append(f"{id}: split {split}: {message}")
    return {"counts": counts, "faults": faults, "notes": notes, "train_bytes": train_bytes}


def _task(id: str) -> Task:
    entry = registry.entry("tasks", id)
    task: Task = registry.load(entry)(entry)
    return task


def _count(task: Task, split: Split, tier: Tier, folder: Path | None) -> tuple[int, int]:
    """Number and bytes of the rows of a split, which are checked as a cell does when it loads them;
    but the table is made by Arrow alone, because importing ``datasets`` takes longer than most
    corpora."""
    if type(task).load is not Task.load:
        loaded = task.load(split, tier, folder)
        return len(loaded), loaded.data.nbytes
    rows = task.read(split, tier, folder)
    try:
        table = pyarrow.Table.from_pylist(rows)
    except (TypeError, ValueError, OverflowError):
        table = task.load(split, tier, folder).data  # or it names the fault, if a data set cannot hold them either
    return len(rows), table.nbytes


def answer_each(answer: Callable[[str, dict[str, Any]], dict[str, Any]]) -> None:
    """Print the answer to each task that standard input asks for, as soon as there is one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is told by the process that waits for this one
    end_with_parent()  # a reader that hangs must not outlive a run that is killed
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a task's code prints is no answer
    asked = json.load(sys.stdin)
    for plugin in asked["plugins"]:
        registry.add_plugin(plugin)
    for id in asked["tasks"]:
        print(json.dumps({"task": id} | answer(id, asked)), file=answers, flush=True)


def main() -> None:
    """Read what standard input asks for."""
    answer_each(lambda id, asked: read(id, asked["tier"], asked["folder"] and Path(asked["folder"])))


if __name__ == "__main__":
    main()

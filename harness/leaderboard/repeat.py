"""The command that repeats one row."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from harness.records import Record

KEPT = {
    *("--plugin", "--parent", "--tier", "--data-dir", "--max-train", "--max-epochs", "--labels"),
    *("--vectors", "--inputs"),
    *("--protocol", "--budget", "-o", "--override", "--precision", "--devices", "--strategy"),
    *("--threads", "--cpu-limit"),
}
"""Options of `archbench run` that say what a cell is, or how much it may take; all have a value.
The others say which cells there are and who runs them."""


def repeat(records: Sequence[Record]) -> str:
    """A command that runs the cells of these records, the seeds of one row, and no others; empty
    where they hold no command.

    It is that of the first record without what concerned its other cells.
    """
    first = records[0]
    if not first.command.startswith("archbench run"):
        return ""
    seeds = ",".join(str(record.seed) for record in records)
    words = ["archbench", "run", "-a", first.architecture, "-t", first.task, "--seeds", seeds, *_kept(first.command)]
    return shlex.join(words).replace("'$ARCHBENCH_DATA'", '"$ARCHBENCH_DATA"')


def _kept(command: str) -> Iterator[str]:
    words = iter(shlex.split(command)[2:])
    for word in words:
        option, equals, _ = word.partition("=")
        if option in KEPT:
            yield word
            if not equals:
                yield next(words, "")


def checkout(record: Record) -> str:
    """The command that fetches the code of a record; empty where its commit is not known."""
    return f"git checkout {record.commit}" if record.commit and not record.dirty else ""

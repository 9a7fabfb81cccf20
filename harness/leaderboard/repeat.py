"""The commands that repeat one row."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain, pairwise

from harness.records import Record

OVERRIDE = ("-o", "--override")
"""Options whose value begins with the id that it concerns; no blank need stand between the short
one and its value."""
KEPT = {
    *("--plugin", "--parent", "--tier", "--data-dir", "--max-train", "--max-epochs", "--labels"),
    *("--vectors", "--inputs"),
    *("--protocol", "--budget", *OVERRIDE, "--precision", "--devices", "--strategy"),
    *("--threads", "--cpu-limit"),
}
"""Options of `archbench run` that say what a cell is, or how much it may take; all have a value.
The others say which cells there are and who runs them."""


def repeat(records: Sequence[Record]) -> list[str]:
    """The commands that run the cells of these records, the seeds of one row, and no others, with
    the code that made them; none where they hold no command.

    Seeds of one commit stand below the command that fetches it; those of unknown code come first,
    where no other code stands above them. Seeds that were given the same parents have one command:
    that of the first of them without what concerned its other cells. A parent that it names by a
    key has to be kept in the results folder.
    """
    alike: dict[str, dict[tuple[str, ...], list[Record]]] = {}
    for record in records:
        if record.command.startswith("archbench run"):
            alike.setdefault(_checkout(record), {}).setdefault(_parents(record), []).append(record)
    commands = [[code, *map(_command, alike[code].values())] for code in sorted(alike, key=bool)]
    return list(filter(None, chain.from_iterable(commands)))


def _checkout(record: Record) -> str:
    """The command that fetches the code of a record; empty where nobody has that."""
    return f"git checkout {record.commit}" if record.commit and not record.dirty else ""


def _parents(record: Record) -> tuple[str, ...]:
    """The values of the options of a record's command that name parents."""
    pairs = pairwise([*_kept(record), ""])
    return tuple(value if word == "--parent" else word for word, value in pairs if word.startswith("--parent"))


def _command(records: Sequence[Record]) -> str:
    first = records[0]
    seeds = ",".join(str(record.seed) for record in records)
    words = ["archbench", "run", "-a", first.architecture, "-t", first.task, "--seeds", seeds, *_kept(first)]
    return shlex.join(words).replace("'$ARCHBENCH_DATA'", '"$ARCHBENCH_DATA"')


def _kept(record: Record) -> Iterator[str]:
    words = iter(shlex.split(record.command)[2:])
    for word in words:
        option, equals, value = word.partition("=")
        if option.startswith("-o"):
            option, equals, value = "-o", "", word[2:]
        if option not in KEPT:
            continue
        if not equals and not value:
            value = next(words, "")
        if option not in OVERRIDE or _is_of(record, value.partition(".")[0]):
            yield from [f"{option}={value}"] if equals else [option, value]


def _is_of(record: Record, pattern: str) -> bool:
    """True for an override of the record's architecture, of the one that it wraps, of a source of
    its inputs or of a parent; one that nothing in the command takes is an error."""
    settings = record.hyperparameters
    parents = [parent["architecture"] for parent in (settings.get("parents") or {}).values()]
    ids = [record.architecture, str(settings.get("wraps") or ""), *(settings.get("inputs") or {}), *parents]
    return any(fnmatchcase(id, pattern) for id in ids)

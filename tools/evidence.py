"""``python -m tools.evidence``: what the committed records say of each architecture, as the table
by which ``archbench try`` puts architectures in order
(:mod:`harness.model_selection.evidence`).

A line is made of one record alone, so a new record makes no line false; ``--check`` tells which
lines a new table would add, and which it would no longer have, and writes nothing. ``--halving``
tells which trainings of these records :mod:`harness.running.behind` would have ended.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from harness import registry
from harness.files import taking_the_place_of
from harness.metrics import display_info
from harness.model_selection.candidates import PROTOCOL
from harness.model_selection.evidence import EVIDENCE, Line, lines, read_by
from harness.records import Record, Store
from harness.running import grid
from harness.running.behind import COUNTED, SHARE, interval
from harness.settings import CUSTOM
from harness.views.words import Words

RESULTS = Path("results")


def counted(records: Iterable[Record]) -> Iterator[Record]:
    """The records that a trial may learn from: of official files and protocol ``equal``, of the
    settings and versions that are registered today, and of architectures that see nothing which new
    rows do not have."""
    architectures, tasks = registry.entries("architectures"), registry.entries("tasks")
    sound = [
        record
        for record in records
        if (record.status, record.tier, record.protocol) == ("ok", "local", PROTOCOL)
        and record.architecture in architectures
        and record.task in tasks
        and record.cell.budget["name"] != CUSTOM
        and not architectures[record.architecture].sees
    ]

    def of(record: Record) -> tuple[str, str, int]:
        return record.task, record.cell.budget["name"], record.seed

    for (task, budget, seed), group in groupby(sorted(sound, key=of), key=of):
        if budget not in registry.budgets_of(tasks[task]):
            continue
        planned = grid.plan(
            list(architectures.values()), [tasks[task]], tier="local", protocol=PROTOCOL, budget=budget, seeds=[seed]
        )
        today = {each.cell.key for each in planned}
        yield from (record for record in group if record.key in today)


def line_of(record: Record, store: Store) -> Line:
    """The line of a record."""
    task, name = registry.entry("tasks", record.task), record.cell.budget["name"]
    outcomes, spent = store.load_outcomes(record), record.spent or {}
    words = (record.view or {}).get("view") == Words.__name__ and spent.get("tokens")
    return Line(
        record.key,
        task.type,
        record.task,
        name,
        record.architecture,
        read_by(registry.budgets_of(task)[name], record.counts["train"]),
        round(words / spent["examples"], 1) if words else None,
        len(outcomes.confusion[0]) if outcomes is not None and outcomes.confusion else None,
        round(display_info(record.main_metric).quality(record.scores["test"][record.main_metric]), 4),
    )


def table(results: Path) -> list[Line]:
    """The lines of a results folder, by task, budget and architecture."""
    store = Store(results)
    found = [line_of(record, store) for record in counted(store.all())]
    return sorted(found, key=lambda line: (line.task, line.budget, line.architecture, line.key))


def write(found: Iterable[Line], file: Path) -> None:
    """Write the table."""
    with taking_the_place_of(file) as partial, partial.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(Line._fields)
        writer.writerows(["" if value is None else value for value in line] for line in found)


class Ended(NamedTuple):
    """Trainings with a curve and pilots, of which some would have ended early, and of these the
    ones that came into the interval of their task's best in the end; by a share of the epochs, and
    by their pilots beside the best pilot."""

    trainings: int
    ended: int
    wrongly: int
    by_pilots: int
    wrongly_by_pilots: int


def halved(records: Iterable[Record], rows: int) -> Ended:
    """Trainings that would have ended early on so many dev rows: beside the best of all, which is
    the strictest rival."""
    groups: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        if record.main_metric in COUNTED and record.registered["task"]["type"] != "tag":
            groups.setdefault((record.task, record.cell.budget["name"], record.seed), []).append(record)
    counts = [0] * len(Ended._fields)
    for group in groups.values():
        metric = group[0].main_metric
        floor = interval(max(record.scores["dev"][metric] for record in group), rows)[0]
        pilots = {record.key: max(filter(None, _pilots(record)), default=0.0) for record in group if _pilots(record)}
        of_pilots = interval(max(pilots.values(), default=0.0), rows)[0]
        for record in group:
            if record.key in pilots:
                curve = [row[metric] for row in record.training["curve"]]
                asked_at = math.ceil(SHARE * len(curve))
                ended = asked_at < len(curve) and interval(max(curve[:asked_at]), rows)[1] < floor
                by_pilots = interval(pilots[record.key], rows)[1] < of_pilots
                in_front = record.scores["dev"][metric] >= floor
                each = (True, ended, ended and in_front, by_pilots, by_pilots and in_front)
                counts = [count + new for count, new in zip(counts, each, strict=True)]
    return Ended(*counts)


def _pilots(record: Record) -> list[float | None]:
    """Dev scores of a training's pilots; none where one rate needed none."""
    tried = list((record.training or {}).get("learning_rates", {}).values())
    return tried if len(tried) > 1 else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table, or tell how it would change; the exit code of a check is 1 then."""
    parser = argparse.ArgumentParser(prog="python -m tools.evidence", description=__doc__.partition(": ")[2])
    parser.add_argument("--results", type=Path, default=RESULTS, help="the records (default: results)")
    parser.add_argument("--out", type=Path, default=EVIDENCE, help="where the table goes")
    parser.add_argument("--check", action="store_true", help="tell what would change, and write nothing")
    parser.add_argument("--halving", type=int, metavar="ROWS", help="tell who would end early on so many dev rows")
    options = parser.parse_args(arguments)
    if options.halving:
        print(halved(counted(Store(options.results).all()), options.halving))
        return 0
    found = table(options.results)
    if not options.check:
        write(found, options.out)
        print(f"{options.out}: {len(found)} lines of {len({line.architecture for line in found})} architectures")
        return 0
    there, new = set(lines(options.out)), set(found)
    for sign, some in (("+", new - there), ("-", there - new)):
        for line in sorted(some, key=lambda line: (line.task, line.architecture)):
            print(sign, line.task, line.budget, line.architecture, line.key)
    return int(there != new)


if __name__ == "__main__":
    sys.exit(main())

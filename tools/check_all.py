"""``python -m tools.check_all``: the check at default size over all architectures, as a table.

Each architecture gets two minutes on the mini corpus of its home, and every classifier two more
on one whose classes are unevenly common; what stands at chance then gets fifteen. The table is
written after each of them, and a further call goes on where one stopped.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from fnmatch import fnmatchcase
from pathlib import Path

from harness.contract.default_size import FAR, learned
from tools import tables

FAR_AFTER = {2: FAR, 15: 2 * FAR}
"""Minutes that a pair gets, and how far above the floor its dev score ends the training: the first
round, and the one for what the first did not teach. The second asks for more, or the same seed
would stop at the same epoch again."""

COLUMNS = ("architecture", "task", "metric", "word", "floor", "dev", "test", "epochs", "seconds", "minutes", "note")

MOST_AT_CHANCE = 8
"""Architectures that may stand at chance, each with a learning curve on real data that shows that
it learns there."""

UNBALANCED = "ohsumed"
"""A task of many classes, of which some are rare: the first tasks have as many of each."""

RESULTS = Path("results")
"""Folder of the table, and of a catalogue with homes where it has one of its own."""

Row = dict[str, str]
Pair = tuple[str, str]
"""Architecture and task."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the chosen architectures; the exit code is 0 when few enough stand at chance."""
    from harness import registry

    parser = argparse.ArgumentParser(prog="python -m tools.check_all", description=__doc__.partition(": ")[2])
    parser.add_argument("ids", nargs="*", default=["*"], help="architectures, or shell wildcards (default: all)")
    parser.add_argument("--table", type=Path, default=RESULTS / "default_size.csv", help="where the rows go")
    parser.add_argument("--jobs", type=int, default=2, help="architectures at a time (default: 2)")
    parser.add_argument("--anew", action="store_true", help="check those again that the table has")
    options = parser.parse_args(arguments)
    known = [id for id, entry in registry.entries("architectures").items() if entry.kind != "floor"]
    ids = [id for id in known if any(fnmatchcase(id, one) for one in options.ids)]
    rows = read(options.table)
    pairs = list(pairs_of(ids, rows))
    if options.anew:
        rows = {pair: row for pair, row in rows.items() if pair not in pairs}
    for minutes in FAR_AFTER:
        left = [pair for pair in pairs if wants(rows.get(pair), minutes)]
        for number, row in enumerate(checked(left, minutes, options.jobs), start=1):
            rows[row["architecture"], row["task"]] = row
            write(options.table, rows)
            print(
                f"[{number}/{len(left)}] {row['word']:8} {row['architecture']} {row['task']} {row['note']}", flush=True
            )
    words = Counter(rows[pair]["word"] for pair in pairs)
    print(", ".join(f"{count} {word}" for word, count in words.most_common()))
    at_chance = {id for id, task in pairs if rows[id, task]["word"] == "chance"}
    return 1 if len(at_chance) > MOST_AT_CHANCE or words["diverged"] or words["failed"] else 0


def pairs_of(ids: Sequence[str], rows: Collection[Pair] = ()) -> Iterator[Pair]:
    """Each architecture with its home, or else with the first task that it fits, and with the
    unbalanced one if it fits that too. A task on which the table has it stays its first when homes
    change or others are registered."""
    from harness import registry
    from harness.leaderboard.catalogue import homes
    from harness.running import grid

    tasks = registry.tasks_to_check_on()
    entries = [registry.entry("architectures", id) for id in ids]
    at_home, _ = homes(entries, [task.id for task in tasks], RESULTS)
    for entry in entries:
        planned = grid.plan([entry], tasks, tier="mini", protocol="paper", seeds=[0])
        fitting = [item.cell.task for item in planned if item.reason is None]
        tried = [task for task in fitting if task != UNBALANCED and (entry.id, task) in rows]
        home = [task for task in fitting if task == at_home.get(entry.id)]
        first = [*tried, *home, *fitting][0]
        yield from ((entry.id, task) for task in fitting if task in (first, UNBALANCED))


def wants(row: Row | None, minutes: int) -> bool:
    """True if a pair is to be checked with this much time: it never was, or it had less
    and stood at chance."""
    if row is None:
        return minutes == min(FAR_AFTER)
    return row["word"] == "chance" and float(row["minutes"]) < minutes


def checked(pairs: Sequence[Pair], minutes: int, jobs: int) -> Iterator[Row]:
    """The rows of pairs, as they end."""
    threads = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([threads.submit(row_of_its_own, id, task, minutes) for id, task in pairs]):
            yield future.result()
    finally:
        threads.shutdown(cancel_futures=True)


def row_of_its_own(id: str, task: str, minutes: int) -> Row:
    """As :func:`row_of`, in a process of its own: one that is killed must not end the others, nor
    be asked first again by the next call."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        try:
            return process.submit(row_of, id, task, minutes).result()
        except BrokenProcessPool:
            note = "its process was killed, perhaps because memory ran out"
            return unknown(id, task, minutes) | {"word": "failed", "note": note}


def unknown(id: str, task: str, minutes: int) -> Row:
    """The row of a pair of which nothing is known yet."""
    return dict.fromkeys(COLUMNS, "") | {"architecture": id, "task": task, "minutes": str(minutes)}


def row_of(id: str, task: str, minutes: int) -> Row:
    """The row of one architecture on one task."""
    import torch

    from harness import registry
    from harness.errors import MissingWeights

    torch.set_num_threads(1)
    for stream in (1, 2):  # Lightning and the hub talk much
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    row = unknown(id, task, minutes)
    try:
        entries = registry.entry("architectures", id), registry.entry("tasks", task)
        found = learned(entries[0], 60 * minutes, entries[1], FAR_AFTER[minutes])
    except MissingWeights:
        return row | {"word": "skipped", "note": "its weights are not at hand"}
    except Exception as error:  # one that fails must not end the others
        return row | {"word": "failed", "note": f"{type(error).__name__}: {error}"[:200]}
    row |= {"metric": found.metric, "word": found.word, "epochs": str(found.epochs)}
    row |= {name: f"{getattr(found, name):.3f}" for name in ("floor", "dev", "test")}
    return row | {"seconds": f"{found.seconds:.0f}"}


def read(table: Path) -> dict[Pair, Row]:
    """The rows of a table; none where there is no table."""
    return {(row["architecture"], row["task"]): row for row in tables.read(table)}


def write(table: Path, rows: dict[Pair, Row]) -> None:
    """Write the table, in the order of the ids."""
    tables.write_lines((rows[pair] for pair in sorted(rows)), COLUMNS, table)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.exit(main())

"""``python -m tools.plans P1 --data-dir DIR --out DIR``: the plans that follow a first plan, from
the records that it left.

A plan is a file with a line of options of ``archbench run`` for each part of a grid, and comments
that begin with ``#``. The first one, P1, ran every architecture on its home. ``P2.txt`` has more
seeds of its rows, ``P3.txt`` the recipes of the papers, ``P4.txt`` the cells that published values
are of.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import registry
from harness.leaderboard.board import Board, read
from harness.leaderboard.catalogue import homes
from harness.metrics import info
from harness.records import Record
from harness.running import fitting, grid
from harness.running.estimate import Estimate
from harness.running.preflight import absent

CHEAP_S = 300
"""Processor seconds of a training below which a row gets more seeds."""
BEST = 3
"""Rows of a task that get more seeds whatever they cost."""
LIMIT_S = 780
SEEDS = "1,2"


@dataclass(frozen=True)
class Part:
    """One task of a line of P1: the budget on which it ran, and whether each architecture ran there
    only if it is its home."""

    task: str
    budget: str
    home: bool


def parts(plan: str) -> list[Part]:
    """The tasks of a plan in their order; :class:`SystemExit` for a line that is none."""
    parser = argparse.ArgumentParser(prog="a line of the plan", add_help=False)
    parser.add_argument("-t", required=True)
    parser.add_argument("--budget", default="full")
    parser.add_argument("--home", action="store_true")
    found = []
    for line in plan.splitlines():
        if words := shlex.split(line, comments=True):
            options, _ = parser.parse_known_args(words)
            found += [Part(task, options.budget, options.home) for task in options.t.split(",")]
    return found


def rows(board: Board, asked: Iterable[Part], home: dict[str, str]) -> dict[tuple[str, str], list[Record]]:
    """The records of seed 0 that P1 left and that ended well, by task and budget."""
    floors = {id for id, entry in registry.entries("architectures").items() if entry.kind == "floor"}
    found: dict[tuple[str, str], list[Record]] = {}
    for task, budget in dict.fromkeys((part.task, part.budget) for part in asked):
        found[task, budget] = [
            record
            for record in board.records
            if (record.task, record.cell.budget["name"]) == (task, budget)
            and (record.tier, record.protocol, record.seed, record.status) == ("local", "equal", 0, "ok")
            and (home.get(record.architecture) == task or record.architecture in floors)
        ]
    return found


def processor_s(record: Record) -> float:
    """Seconds of training on the processor, or of the clock in a record that does not tell."""
    return record.seconds.get("train_processor", record.seconds.get("train", 0.0))


def more_seeds(found: dict[tuple[str, str], list[Record]]) -> Iterator[str]:
    """P2: two more seeds of rows that trained fast, and of the best ones of each task on dev, which
    have no limit of time. By test, the means of three would keep one seed that was lucky there."""
    for (task, budget), records in found.items():
        quality = info(registry.entry("tasks", task).main_metric).quality
        scored = [record for record in records if record.main_metric in record.scores.get("dev", {})]
        ranked = sorted(scored, key=lambda record: -quality(record.scores["dev"][record.main_metric]))
        best = list(dict.fromkeys(record.architecture for record in ranked))[:BEST]
        cheap = {each.architecture for each in records if processor_s(each) < CHEAP_S}.difference(best)
        options = f"--protocol equal --budget {budget} --seeds {SEEDS}"
        for chosen, limit in ((best, ""), (cheap, f" --cpu-limit {LIMIT_S}")):
            if chosen:
                yield f"-a {','.join(sorted(chosen))} -t {task} {options}{limit}"


def recipes(board: Board, asked: Sequence[Part], home: dict[str, str]) -> Iterator[str]:
    """P3: every architecture once by its paper's recipe, on its home; the cheapest tasks first."""
    estimate = Estimate(board.records, limit=LIMIT_S)
    budgets = {part.task: part.budget for part in asked if part.home}
    seconds = {}
    for task, budget in budgets.items():
        chosen, _ = fitting.loadable(registry.entries("architectures")[id] for id, at in home.items() if at == task)
        planned = grid.plan(
            chosen, [registry.entry("tasks", task)], tier="local", protocol="paper", budget=budget, seeds=[0]
        )
        if runs := [cell for cell, reason, _ in planned if reason is None]:
            seconds[task] = sum(estimate(cell) or LIMIT_S for cell in runs)
    for task in sorted(seconds, key=seconds.__getitem__):
        options = f"--protocol paper --budget {budgets[task]} --seeds 0 --cpu-limit {LIMIT_S}"
        yield f"-a '*' --home -t {task} {options}"


def published(board: Board, data_dir: Path) -> Iterator[str]:
    """P4: the cells of published values whose method is registered and whose data are at hand."""
    architectures, tasks = registry.entries("architectures"), registry.entries("tasks")
    wanted: dict[str, set[str]] = {}
    for value in board.published:
        if value.counterpart in architectures and value.dataset in tasks:
            wanted.setdefault(value.dataset, set()).add(value.counterpart)
    without = absent([tasks[id] for id in wanted], data_dir)
    for task in (id for id in wanted if id not in without):
        chosen, _ = fitting.loadable(architectures[id] for id in sorted(wanted[task]))
        planned = grid.plan(chosen, [tasks[task]], tier="local", protocol="equal", seeds=[0])
        if fits := [cell.architecture for cell, reason, _ in planned if reason is None]:
            yield f"-a {','.join(fits)} -t {task} --protocol equal --budget full --seeds 0 --cpu-limit {LIMIT_S}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the three plans."""
    parser = argparse.ArgumentParser(prog="python -m tools.plans", description=__doc__.partition(": ")[2])
    parser.add_argument("plan", type=Path, help="P1: lines of options of `archbench run`")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--data-dir", type=Path, required=True, help="the official files, as `archbench run` has them")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the plans (default: this one)")
    options = parser.parse_args(arguments)
    board, asked = read(options.results), parts(options.plan.read_text(encoding="utf-8"))
    home, _ = homes(registry.entries("architectures").values(), registry.entries("tasks"), options.results)
    plans = {
        "P2: more seeds of the rows of P1, and of the best of each task whatever they cost": more_seeds(
            rows(board, asked, home)
        ),
        "P3: each paper's recipe, once, the cheapest tasks first": recipes(board, asked, home),
        "P4: the cells of published values": published(board, options.data_dir),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    for title, lines in plans.items():
        file = options.out / f"{title.partition(':')[0]}.txt"
        file.write_text("\n".join([f"# {title}.", *lines, ""]), encoding="utf-8")
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())

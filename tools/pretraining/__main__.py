"""``python -m tools.pretraining``: the worth of pre-training where plain text tells what few labels
do not.

Each architecture that learns from plain text is tuned with 32 labels (``few_labels.py``), at a size
that learns the corpus in a minute: from weights that it learnt from the plain text, from ones that
it learnt from the same words shuffled, and from random ones. A call goes on where one stopped: a
row of the table is not made again.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from harness import registry
from harness.records import Record, Store
from harness.registry import ArchitectureEntry
from harness.running import grid
from harness.running.parents import parse_parent
from tools.commands import call
from tools.tables import Line, read, write_lines

PLUGIN = Path(__file__).parent / "few_labels.py"
TEXT, SHUFFLED, NONE = "few_labels_text", "few_labels_shuffled", "none"
DIVISIONS = "few_labels", "few_labels_second", "few_labels_third"
ASKED = {TEXT: DIVISIONS[:1], SHUFFLED: DIVISIONS, NONE: DIVISIONS}
"""Tasks of the children of each parent, whose scores are averaged."""
SEEDS = (0, 1, 2)
SMALL = {"layers": 2, "hidden": 64, "heads": 2, "max_length": 32, "stride": 16}
"""Sizes of each architecture that has a hyperparameter of the name."""
OWN: dict[str, dict[str, Any]] = {
    "electra": {"hidden": 128, "heads": 4},
    "elmo": {"filters": [16, 16, 32], "cells": 128, "projection": 64, "training.patience": 15},
    "ernie": {"training.min_steps": 12_000},
    "ernie2": {"training.batch_size": 80},
    "reformer": {"chunk": 8, "rounds": 2},
}
"""Settings of architectures that need others. The generator of ELECTRA has a quarter of its width,
and learns nothing in these steps where that is 16. The sizes of ELMo have other names; its score on
dev is best within ten epochs, and those after them would take most of the time. Whole units are
masked words that are harder to tell: two seeds of ERNIE still stand on the plateau when others have
left it. ERNIE 2.0 asks each text one of five things: of its 80 texts a fifth is asked for masks, as
many as others have in a batch. Reformer's chunks would be twice as long as a whole text; it cost
twenty times what others do, and its hash divided nothing."""
TRAINING = {"learning_rates": [0.002], "warmup_share": 0.1, "patience": 60}
"""Settings of each training beside those of protocol ``equal``: one rate, so no pilots; a warm-up,
without which some transformers learn nothing at this rate; and no early end, since masked words
stand on a plateau for many passes before they are learnt."""
GAIN = 0.1
"""Points by which a child should be better than from random weights, and from shuffled words less
above chance than this."""
CHANCE = 0.5
CSV = Path("results/few_labels.csv")
COLUMNS = ("architecture", "version", "seed", TEXT, SHUFFLED, NONE, "nats", "commit")


def learners() -> list[ArchitectureEntry]:
    """The architectures that are planned with a parent of their own on plain text, and no other
    one."""
    return [entry for entry in registry.entries("architectures").values() if learns_from_text(entry)]


def learns_from_text(entry: ArchitectureEntry) -> bool:
    """True where the one parent of an architecture is itself, on one task of plain text."""
    if set(entry.parents) != {"weights"}:
        return False
    parent = parse_parent(f"weights={entry.parents['weights']}")
    task = registry.entries("tasks").get(parent.task)
    return parent.name == entry.id and task is not None and task.type == "text"


def options(entry: ArchitectureEntry) -> list[str]:
    """Options of ``archbench run`` for the small size, and how it is trained."""
    known = grid.hyperparameters(entry)
    sizes = {name: value for name, value in SMALL.items() if name in known}
    training = {f"training.{name}": value for name, value in TRAINING.items()}
    chosen = sizes | training | OWN.get(entry.id, {})
    return [word for name, value in chosen.items() for word in ("-o", f"{entry.id}.{name}={value}")]


def run(entry: ArchitectureEntry, parent: str, results: Path) -> None:
    """Train the children of all seeds, and their parents; :class:`RuntimeError` where one fails."""
    weights = NONE if parent == NONE else f"{entry.id}@{parent}"
    done = call(
        Path.cwd(), "run", "--plugin", str(PLUGIN), "-a", entry.id, "-t", ",".join(ASKED[parent]),
        "--seeds", ",".join(map(str, SEEDS)), "--parent", f"weights={weights}", "--protocol", "equal",
        "--mlflow", "none", "--results", str(results), *options(entry),
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{entry.id}, {parent}: {done.stdout[-1000:]}{done.stderr[-1000:]}")


def folder_of(entry: ArchitectureEntry, results: Path) -> Path:
    """The folder of an architecture's records: another one for other settings and another corpus,
    whose scores would take the place of some of these."""
    digest = hashlib.sha256("\n".join([*options(entry), PLUGIN.read_text(encoding="utf-8")]).encode())
    return results / f"{entry.id}-{digest.hexdigest()[:8]}"


def lines_of(entry: ArchitectureEntry, results: Path) -> list[Line]:
    """The lines of an architecture, one for each seed."""
    folder = folder_of(entry, results)
    for parent in ASKED:
        run(entry, parent, folder)
    own = entry.id, entry.version, "ok"
    records = [e for e in Store(folder).all() if (e.architecture, e.architecture_version, e.status) == own]
    children = {(parent_of(each), each.task, each.seed): each for each in records if each.task in DIVISIONS}
    parents = {each.seed: each for each in records if each.task == TEXT}
    return [
        {
            "architecture": entry.id,
            "version": str(entry.version),
            "seed": str(seed),
            **{
                parent: f"{mean_accuracy(children[parent, task, seed] for task in ASKED[parent]):.4f}"
                for parent in ASKED
            },
            "nats": f"{parents[seed].scores['test']['nats_per_token']:.3f}",
            "commit": str(parents[seed].commit)[:8],
        }
        for seed in SEEDS
    ]


def mean_accuracy(records: Iterable[Record]) -> float:
    """The mean accuracy of records on test."""
    return fmean(record.scores["test"]["accuracy"] for record in records)


def parent_of(record: Record) -> str:
    """The task on which the parent of a record learnt; :data:`NONE` without one."""
    return record.lineage[0]["task"] if record.lineage else NONE


def write(lines: Iterable[Line], table: Path) -> None:
    """Write a table, and its page beside it."""
    found = sorted(lines, key=lambda line: (line["architecture"], int(line["seed"])))
    write_lines(found, COLUMNS, table)
    table.with_suffix(".md").write_text(page(found), encoding="utf-8")


def means(lines: Sequence[Line]) -> dict[str, dict[str, float]]:
    """The mean over seeds of each column of numbers, by architecture."""
    return {
        id: {
            name: fmean(float(line[name]) for line in lines if line["architecture"] == id) for name in (*ASKED, "nats")
        }
        for id in dict.fromkeys(line["architecture"] for line in lines)
    }


def page(lines: Sequence[Line]) -> str:
    """The text of ``results/few_labels.md``."""
    found = means(lines)
    rows = [
        f"| {id} | {each(TEXT, lines, id)} | {each(SHUFFLED, lines, id)} | {each(NONE, lines, id)}"
        f" | {100 * (mean[TEXT] - mean[NONE]):+.1f} | {100 * (mean[SHUFFLED] - CHANCE):+.1f} | {mean['nats']:.2f} |"
        for id, mean in found.items()
    ]
    without = [id for id, mean in found.items() if mean[TEXT] - mean[NONE] < GAIN]
    strange = [id for id, mean in found.items() if mean[SHUFFLED] - CHANCE >= GAIN]
    return "\n".join(
        [
            "# Pre-training where few labels do not tell", "",
            "`python -m tools.pretraining`. Accuracy in percent on words that no labelled text of training has: 32"
            " labelled texts show 16 of 128 made-up words; each of 600 plain texts is about words of one kind, and what"
            " that kind does. Mean of three seeds, with the lowest and the highest. Chance has 50. What shuffled words"
            " and random weights give is the mean over three divisions of the words, since who knows nothing agrees"
            " with a single one by accident.", "",
            f"Sizes are small, the same for all that have them: {settings_in_words(SMALL)}. Others of their own:"
            f" {'; '.join(f'`{id}` {settings_in_words(settings)}' for id, settings in OWN.items())}.", "",
            f"Less than {100 * GAIN:.0f} points above random weights: {', '.join(without) or 'none'}.",
            f"As much above chance after shuffled words: {', '.join(strange) or 'none'}.", "",
            "| architecture | from plain text | from shuffled words | from random weights | gain"
            " | shuffled words above chance | nats of plain text |",
            "|" + " --- |" * 7,
            *rows, "",
        ]
    )  # fmt: skip


def settings_in_words(settings: Mapping[str, Any]) -> str:
    """Settings in words."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def each(column: str, lines: Sequence[Line], id: str) -> str:
    """Mean, lowest and highest of an architecture's seeds, in percent."""
    values = [100 * float(line[column]) for line in lines if line["architecture"] == id]
    return f"{fmean(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def main(
    arguments: Sequence[str] | None = None,
    measured: Callable[[ArchitectureEntry, Path], list[Line]] = lines_of,
) -> int:
    """Measure what the table lacks; the exit code is 1 where an architecture failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.pretraining", description=__doc__.partition(": ")[2])
    parser.add_argument("ids", nargs="*", help="architectures; default: all that learn from plain text")
    parser.add_argument("--results", type=Path, default=Path("runs/few_labels"), help="folder of the records")
    parser.add_argument("--table", type=Path, default=CSV, help="where the lines go; the page goes beside it")
    asked = parser.parse_args(arguments)
    known = {entry.id: entry for entry in learners()}
    if unknown := sorted({*asked.ids} - {*known}):
        parser.error(f"{', '.join(unknown)}: known are {', '.join(known)}")
    failed = False
    for id in asked.ids or known:
        lines = read(asked.table)
        if any((line["architecture"], line["version"]) == (id, str(known[id].version)) for line in lines):
            continue
        try:
            found = measured(known[id], asked.results)
        except RuntimeError as error:
            failed = True
            print(error, flush=True)
            continue
        write([*(line for line in lines if line["architecture"] != id), *found], asked.table)
        print(id, *(f"{name}={each(name, found, id)}" for name in ASKED), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

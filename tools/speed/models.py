"""Costs of every architecture on this machine, measured alone: ``python -m tools.speed.models
results/speed.json [ID ...]``.

Each trains for some steps at its paper's sizes on the mini tier of its home task (protocol smoke:
the scores mean nothing and are not kept). Texts of the mini tier are short; within one task the
figures compare. All of them take about half an hour on a quiet machine; with ids, only those are
measured and the other rows of the file stay. Each row has its machine and the ruler of that day
(:mod:`harness.running.ruler`), by which rows of two machines can be compared.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import registry
from harness.leaderboard.speeds import usual_ruler
from harness.records import Record, Store
from harness.records.blocks import Ruler
from harness.running import fitting, grid
from harness.running.estimate import SPEEDS
from harness.running.ruler import measure
from harness.views.base import plain
from harness.views.subwords import SPECIAL
from tools.speed.cells import RUN
from tools.speed.goals import keep, kept

HOMES = (
    *("sst2", "wikiqa", "conll2003_ner", "fsdd", "squad1", "babi", "snli", "wikitext2", "text_mix"),
    *("newsgroups20", "reuters21578", "gap", "ai2_questions"),
)
"""The first of these that an architecture fits is where it is measured."""

BERT_PIECES = 30_522
"""Of the published uncased vocabulary."""


def home(architecture: registry.Entry) -> str | None:
    """The task that an architecture is measured on; None where it fits none."""
    for task in HOMES:
        settings = grid.hyperparameters(architecture)
        if fitting.reason_to_skip(architecture, registry.entry("tasks", task), settings) is None:
            return task
    return None


def untrained_bert(folder: Path, layers: int, hidden: int, heads: int, task: str) -> None:
    """A BERT of published size with random weights, which cost what trained ones do.

    It knows the words of the mini tier whole, as the published vocabulary does most words; the rest
    of its pieces occur in no text.
    """
    import transformers

    entry = registry.entry("tasks", task)
    words = {
        word for row in registry.load(entry)(entry).load("train", "mini") for word in plain(row["text"]).lower().split()
    }
    pieces = [*SPECIAL, *sorted(words)]
    pieces += [f"[unused{number}]" for number in range(BERT_PIECES - len(pieces))]
    transformers.BertTokenizerFast(vocab={piece: number for number, piece in enumerate(pieces)}).save_pretrained(folder)
    sizes = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
    }
    transformers.BertModel(transformers.BertConfig(vocab_size=BERT_PIECES, **sizes)).save_pretrained(folder)


def run(architectures: list[registry.Entry], folder: Path) -> Ruler:
    """One grid for each task, one cell at a time; weights that would have to be fetched are random.
    They work in the ``folder``, since options name files from there. Returns the ruler: it is
    measured before each grid, since a machine's speed wanders, and the median counts."""
    rulers = []
    for task in HOMES:
        chosen = [architecture for architecture in architectures if home(architecture) == task]
        options: list[str] = []
        for architecture in chosen:
            given = grid.hyperparameters(architecture)
            if given.get("pretrained"):
                untrained_bert(folder / architecture.id, given["layers"], given["hidden"], given["heads"], task)
                options += ["-o", f"{architecture.id}.pretrained={architecture.id}"]
        if chosen:
            rulers.append(measure())
            options += ["-a", ",".join(one.id for one in chosen), "-t", task, "--tier", "mini", "--protocol", "smoke"]
            options += ["--max-train", "640", "--speed-alone", "--threads", "1", "--timeout", "1800"]
            options += ["--parent", "weights=none"]  # where weights begin changes no speed
            done = subprocess.run([*RUN, *options, "--mlflow", "none", "--results", "."], cwd=folder, check=False)
            if done.returncode > 1:  # 1: a cell failed, which has its row
                raise SystemExit(f"{task}: archbench run ended with {done.returncode}; nothing was kept")
    return sorted(rulers, key=lambda ruler: ruler["examples_per_second"])[len(rulers) // 2]


def row(record: Record, ruler: Ruler) -> dict[str, Any]:
    """Figures of a record for the report; an architecture that did not end well keeps its
    status."""
    speed, memory, parameters = record.speed or {}, record.memory or {}, record.parameters or {}
    return {
        "architecture": record.architecture,
        "task": record.task,
        "status": record.status,
        "examples_per_second": speed.get("train_examples_per_second"),
        "unstable": speed.get("unstable"),
        "latency_ms": speed.get("latency_ms_p50"),
        "inference_per_second": speed.get("inference_examples_per_second"),
        "memory_mib": memory.get("peak_rss_mib"),
        "parameters": parameters.get("total"),
        "flops": record.flops_per_example,
        "cpu": record.environment.get("cpu"),
        "ruler": ruler,
    }


def main(file: Path, only: list[str]) -> None:
    """Measure, and put the rows into the file beside what ``make bench`` kept there."""
    architectures = registry.entries("architectures")
    chosen = [architectures[name] for name in only] or [each for each in architectures.values() if each.kind != "floor"]
    with tempfile.TemporaryDirectory() as folder:
        ruler = run(chosen, Path(folder))
        homes = {each.id: home(each) for each in chosen}  # their parents have records too, on other tasks
        found = [each for each in Store(Path(folder)).all() if each.task == homes.get(each.architecture)]
        measured = {each.architecture: row(each, ruler) for each in found}
    rows = {
        known["architecture"]: known for known in kept(file).get("models", []) if known["architecture"] in architectures
    } | measured
    keep(file, models=sorted(rows.values(), key=lambda known: (HOMES.index(known["task"]), known["architecture"])))
    write_rates(rows)


def write_rates(rows: dict[str, dict[str, Any]]) -> None:
    """Write the rates that travel with the package, by which ``archbench try`` puts architectures
    in order: those of the machine with most rows, and of others by the rulers of both. However far
    these are apart: for an order a rough figure is better than none."""
    timed = {id: row for id, row in sorted(rows.items()) if row["examples_per_second"]}
    usual = usual_ruler(timed.values())
    with SPEEDS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["architecture", "examples_per_second"])
        for id, row in timed.items():
            machine = usual["examples_per_second"] / row["ruler"]["examples_per_second"]
            writer.writerow([id, f"{row['examples_per_second'] * machine:.1f}"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

"""``python -m tools.bench_try --data-dir DIR``: what ``archbench try`` hands over on sets at hand,
beside what everybody compares with.

Of each set the official test, or a part of it, is put aside, and some of the other rows are written
to a CSV file in a temporary folder. ``archbench try`` works on that file as a user's command, and
``archbench predict`` answers the rows that were put aside. Beside it stand

- the *reference*: the best on the rows put aside of the TF-IDF systems of
  ``architectures/classical/tfidf.py``, each with its strength chosen on an eighth of the rows and
  then fitted on all of them. The test chooses among them, so they are a little lucky;
- the *oracle*: the best on the rows put aside of the one that was handed over, the reference, and
  the next of those that this trial tried, in the order of its own table, each trained once more on
  all rows (``archbench run --keep --refit``). The test chooses here too: no tool can know it, and
  an architecture that the trial did not try is no part of it;
- the *floor*: the commonest label.

A call goes on where one stopped: a line of the table is not made again.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness import registry
from harness.kinds import made
from harness.records import Record, Store
from harness.records.provenance import environment
from harness.running import fitting, grid
from harness.task import Row
from harness.views.base import plain
from tools.commands import call
from tools.tables import Line, read, write_lines

SETS = ("sst2", "ag_news", "imdb", "ohsumed", "newsgroups20", "snli")
ROWS = (3_000, 10_000)
MOST_TEST = 5_000
"""Rows put aside at most."""
PART = 8
"""One row of so many chooses the strength of a reference."""
NEXT = 2
"""Systems beside the one handed over, and the reference, among which the oracle chooses."""
LIMIT_S = 300
"""Seconds that each of them may take."""
ABOVE = 4
"""Lines of a whole table on which what is handed over should be above the reference."""
CSV = Path("results/bench_try.csv")
TRIAL = "results/try/rows"
"""Folder of the records and models of a trial on ``rows.csv``."""
HANDED_OVER = re.compile(r"archbench predict \S+/models/(\w+) NEW\.csv")
"""The command that a trial ends with, and in it the key of the model that is handed over."""
COLUMNS = (
    "set", "asked", "rows", "aside", "minutes", "handed_over", "score", "tried", "stopped", "reference",
    "reference_score", "difference", "error", "oracle", "oracle_score", "floor", "reached", "cpu", "commit",
)  # fmt: skip
Answers = np.ndarray
"""Labels, one for each row put aside."""


def drawn(rows: Sequence[Row], count: int) -> list[Row]:
    """So many rows at random, the same ones each time; all of them if there are fewer."""
    order = np.random.default_rng(0).permutation(len(rows))[:count]
    return [rows[place] for place in order]


def divided(task: str, data: Path, count: int) -> tuple[list[Row], list[Row]]:
    """Rows for the trial, of train and dev, and those that are put aside, of test."""
    entry = registry.entry("tasks", task)
    read = registry.load(entry)(entry)
    known = [row for split in ("train", "dev") for row in read.load(split, "local", data).to_list()]
    return drawn(known, count), drawn(read.load("test", "local", data).to_list(), MOST_TEST)


def texts_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns of texts."""
    return ("first", "second") if "first" in rows[0] else ("text",)


def write_rows(rows: Sequence[Row], columns: Sequence[str], file: Path) -> None:
    """Write a CSV file, words joined by spaces."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(columns)
        writer.writerows([plain(row[name]) for name in columns] for row in rows)


def answers(folder: Path, key: str, aside: Sequence[Row]) -> Answers:
    """Answers of a kept model to the rows put aside."""
    write_rows(aside, texts_of(aside), folder / "aside.csv")
    done = call(folder, "predict", key, "aside.csv", "--to", "csv", "--results", TRIAL)
    said = [line["prediction"] for line in csv.DictReader(done.stdout.splitlines())]
    if done.returncode or len(said) != len(aside):
        raise RuntimeError(f"archbench predict {key}: {len(said)} answers to {len(aside)} rows\n{done.stderr[-2000:]}")
    return np.array(said)


def references(task: registry.TaskEntry, rows: Sequence[Row], aside: Sequence[Row]) -> dict[str, Answers]:
    """Answers of each reference without gradient training to the rows put aside, by its id."""
    found = {}
    for id, entry in registry.entries("architectures").items():
        settings = grid.hyperparameters(entry)
        fitted = entry.is_reference and entry.kind == "fit"
        if not fitted or fitting.reason_to_skip(entry, task, settings) is not None:
            continue
        learner = registry.load(entry)
        chooser = made(learner, task.type, 0, settings)
        chooser.fit([row for place, row in enumerate(rows) if place % PART], rows[::PART])
        again = made(learner, task.type, 0, settings | chooser.chosen_on_dev())
        again.fit(rows, [])
        found[id] = np.array(again.predict(aside))
    return found


def paired(ours: Answers, theirs: Answers, right: Answers) -> tuple[float, float]:
    """Difference of two accuracies on the same rows, and its standard error."""
    differences = (ours == right).astype(float) - (theirs == right)
    return float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(len(right))


def next_keys(folder: Path, handed_over: str, count: int) -> dict[str, str]:
    """The keys of so many systems that the trial tried, in the order of its table, by id: each
    trained once more on all rows. What fails or takes too long is left out."""
    store = Store(folder / TRIAL)
    others = [each.architecture for each in tried(store) if each.architecture != handed_over][:count]
    if not others:
        return {}
    options = ["--protocol", "equal", "--keep", "--refit", "--timeout", str(LIMIT_S), "--mlflow", "none"]
    task = f"./{TRIAL}/rows_sealed.toml"
    done = call(folder, "run", "-a", ",".join(others), "-t", task, *options, "--results", TRIAL)
    if done.returncode > 1:  # 1: one of them failed
        raise RuntimeError(f"archbench run -a {','.join(others)}: {done.stderr[-2000:]}")
    records = [each for each in store.all() if each.task == "rows_sealed" and each.status == "ok"]
    return {each.architecture: each.key for each in records if each.architecture in others}


def tried(store: Store) -> list[Record]:
    """The records by which a trial chose, best first; floors left out."""
    kinds = {id: entry.kind for id, entry in registry.entries("architectures").items()}
    found = [
        each
        for each in store.all()
        if each.task == "rows_choice" and each.status == "ok" and kinds[each.architecture] != "floor"
    ]
    return sorted(found, key=lambda each: -each.scores["test"][each.main_metric])


def line_of(task: str, asked: int, minutes: float, data: Path, count: int, folder: Path) -> Line:
    """The line of a set; :class:`RuntimeError` where nothing is handed over."""
    rows, aside = divided(task, data, asked)
    write_rows(rows, (*texts_of(rows), "label"), folder / "rows.csv")
    done = call(folder, "try", "rows.csv", "--minutes", str(minutes), "--results", "results")
    (folder / "try.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    found = HANDED_OVER.search(done.stdout)
    if found is None:
        raise RuntimeError(f"{task}, {asked}: nothing was handed over\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    store = Store(folder / TRIAL)
    records = list(store.all())
    [chosen] = [each.architecture for each in records if each.key == found[1]]
    known = tried(store)
    values: dict[str, Any] = {
        "set": task, "asked": asked, "rows": len(rows), "aside": len(aside), "minutes": f"{minutes:g}",
        "handed_over": chosen, "tried": len(known),
        "stopped": sum(each.task == "rows_choice" and each.status == "interrupted" for each in records),
        "cpu": environment()["cpu"], "commit": known[0].commit[:8],
    }  # fmt: skip
    values |= judged(
        np.array([row["label"] for row in rows]),
        np.array([row["label"] for row in aside]),
        (chosen, answers(folder, found[1], aside)),
        references(registry.entry("tasks", task), rows, aside),
        {id: answers(folder, key, aside) for id, key in next_keys(folder, chosen, count).items()},
    )
    return {name: str(values[name]) for name in COLUMNS}


def judged(
    known: Answers,
    right: Answers,
    handed_over: tuple[str, Answers],
    said: dict[str, Answers],
    others: dict[str, Answers],
) -> dict[str, str]:
    """Scores of what was handed over, of the best reference, of the oracle and of the commonest of
    the ``known`` labels, on the rows put aside, whose labels are ``right``."""

    def share(each: Answers) -> float:
        return float((each == right).mean())

    ours = handed_over[1]
    reference = max(said, key=lambda id: share(said[id]))
    # A reference may be handed over too: trained by the harness it has another strength.
    oracle, theirs = max([handed_over, *said.items(), *others.items()], key=lambda each: share(each[1]))
    floor, best = share(np.full(len(right), Counter(known.tolist()).most_common(1)[0][0])), share(theirs)
    difference, error = paired(ours, said[reference], right)
    return {
        "score": f"{share(ours):.4f}",
        "reference": reference,
        "reference_score": f"{share(said[reference]):.4f}",
        "difference": f"{difference:.4f}",
        "error": f"{error:.4f}",
        "oracle": oracle,
        "oracle_score": f"{best:.4f}",
        "floor": f"{floor:.4f}",
        "reached": f"{(share(ours) - floor) / (best - floor):.3f}" if best > floor else "",
    }


def write(lines: Iterable[Line], table: Path) -> None:
    """Write a table, in the order of the sets."""
    write_lines(sorted(lines, key=lambda line: (SETS.index(line["set"]), int(line["asked"]))), COLUMNS, table)


def goals(lines: Sequence[Line]) -> tuple[list[str], int]:
    """The sets on which what is handed over is below the reference by more than a standard error,
    and the number of those on which it is above."""
    below = [
        f"{line['set']} ({int(line['rows']):,})" for line in lines if float(line["difference"]) < -float(line["error"])
    ]
    return below, sum(float(line["difference"]) > 0 for line in lines)


def page(lines: Sequence[Line]) -> str:
    """The text of ``results/bench_try.md``."""
    below, above = goals(lines)
    whole = len(SETS) * len(ROWS)
    rows = [
        f"| {line['set']} | {int(line['rows']):,} | {line['handed_over']} | {points(line['score'])} "
        f"| {line['reference']} | {points(line['reference_score'])} "
        f"| {100 * float(line['difference']):+.1f} ± {100 * float(line['error']):.1f} "
        f"| {line['oracle']} | {points(line['oracle_score'])} | {points(line['floor'])} "
        f"| {100 * float(line['reached'] or 0):.0f} % | {line['tried']} | {line['stopped']} | {line['minutes']} |"
        for line in lines
    ]
    words = [
        f"Below the reference by more than a standard error: {', '.join(below) or 'nowhere'}.",
        f"Above it: on {above} of {len(lines)} (the goal: {ABOVE} of {whole}, and nowhere below).",
    ]
    if len(lines) < whole:
        words.append(f"{whole - len(lines)} of the {whole} lines are to come.")
    head = "| set | rows | handed over | accuracy | reference | accuracy | difference | oracle | accuracy | floor "
    return "\n".join(
        [
            "# What `archbench try` hands over", "",
            "`make bench-try`. Accuracy in percent on rows that were put aside, at most"
            f" {MOST_TEST:,} of the official test.", "",
            "- *Reference*: the best there of TF-IDF with linear classifiers, each with its strength chosen on an"
            " eighth of the rows and fitted on all. *Difference*: to it, with the standard error over the same rows.",
            "- *Oracle*: the best there of the one handed over, the reference, and the next"
            f" {NEXT} of the trial's own table, trained once more on all rows. Test chose both, so they are a little"
            " lucky.",
            "- *Reached*: the share of the way from the floor, the commonest label, to the oracle.", "",
            *words, "",
            f"{head}| reached | tried | stopped early | minutes |",
            "|" + " --- |" * 14,
            *rows, "",
        ]
    )  # fmt: skip


def points(share: str) -> str:
    """A share in percent."""
    return f"{100 * float(share):.1f}"


def main(arguments: Sequence[str] | None = None, measured: Callable[..., Line] = line_of) -> int:
    """Measure what the table lacks, and write the page; the exit code is 1 where a set failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench_try", description=__doc__.partition(": ")[2])
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ARCHBENCH_DATA"), help="the official files")
    parser.add_argument("--sets", default=",".join(SETS), help="tasks, with commas")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)), help="numbers of rows, with commas")
    parser.add_argument("--minutes", type=float, default=5.0, help="of each trial")
    parser.add_argument("--next", type=int, default=NEXT, help="systems that are trained for the oracle")
    parser.add_argument("--table", type=Path, default=CSV, help="where the lines go; the page goes beside it")
    options = parser.parse_args(arguments)
    sets, sizes = options.sets.split(","), [int(count) for count in options.rows.split(",")]
    if unknown := sorted({*sets} - {*SETS}):
        parser.error(f"--sets {','.join(unknown)}: known are {', '.join(SETS)}")
    if options.data_dir is None or not Path(options.data_dir).is_dir():
        parser.error(f"--data-dir {options.data_dir}: no such folder; or set ARCHBENCH_DATA")
    failed = False
    for task in sets:
        for asked in sizes:
            lines = read(options.table)
            if any((line["set"], int(line["asked"])) == (task, asked) for line in lines):
                continue
            with tempfile.TemporaryDirectory(prefix="archbench-try-") as folder:
                try:
                    line = measured(task, asked, options.minutes, Path(options.data_dir), options.next, Path(folder))
                except RuntimeError as error:
                    failed = True
                    print(error, flush=True)
                    continue
            write([*lines, line], options.table)
            options.table.with_suffix(".md").write_text(page(read(options.table)), encoding="utf-8")
            print(" ".join(f"{name}={line[name]}" for name in COLUMNS[:-2]), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Contract of a task: the checks of ``archbench check TASK``, on the generated corpus and, with a
data folder, on its files."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from harness import registry
from harness.contract.base import Check, Result, require, run
from harness.errors import ArchbenchError
from harness.metrics import info, score
from harness.problems import problem
from harness.registry import TaskEntry
from harness.task import Row, Split, Task, Tier, fingerprint

SPLITS: tuple[Split, ...] = get_args(Split)
LOOKED_AT: tuple[Tier, ...] = ("mini", "local")
"""Tiers that are looked at, where a task has no other of its own: the hub is far away."""


def check(entry: TaskEntry, data_dir: Path | None = None) -> list[Result]:
    """Run every check on every tier that can be read; a crash in one is its failure, and the others
    still run. Tier ``local`` is read with a ``data_dir``."""
    results = [run("its file can be imported", lambda: _import(entry), ArchbenchError)]
    if not results[0].passed:
        return results
    results.append(run("its metrics are known", lambda: _metrics(entry), ArchbenchError))
    task: Task = registry.load(entry)(entry)
    tiers = dict.fromkeys(task.tier_of(tier) for tier in LOOKED_AT)
    own: list[Tier] = [tier for tier in tiers if task.reason_to_skip(entry.id, tier) is None]
    results.append(run("it has rows", lambda: _tiers(own), ArchbenchError))
    for tier in own:
        if tier == "local" and data_dir is None:
            results.append(Result("local", True, "not read without --data-dir"))
        else:
            results += _TierChecks(task, tier, data_dir).results()
    return results


def _import(entry: TaskEntry) -> str:
    cls = registry.load(entry)
    require(issubclass(cls, Task), f"class {cls.__name__} is no task: derive it from harness.task.Task")
    return ""


def _metrics(entry: TaskEntry) -> str:
    for name in entry.metrics:
        info(name)
    return ""


def _tiers(own: list[Tier]) -> str:
    require(bool(own), "it has neither mini(), a generated corpus, nor local(), a reader of files")
    return "no generated corpus: its runs need --tier local and --data-dir" if own == ["local"] else ""


class _TierChecks:
    """The checks of a task in one tier."""

    def __init__(self, task: Task, tier: Tier, folder: Path | None):
        self.task, self.tier, self.folder = task, tier, folder
        self.entry, self.problem = task.entry, problem(task.entry.type)

    @functools.cached_property
    def rows(self) -> dict[Split, list[Row]]:
        return {split: self.task.load(split, self.tier, self.folder).to_list() for split in SPLITS}

    def results(self) -> Iterator[Result]:
        read = run(f"{self.tier}: every split can be read", self.counts, ArchbenchError)
        yield read
        if read.passed:
            for name, body in self.checks():
                yield run(f"{self.tier}: {name}", body, ArchbenchError)

    def checks(self) -> Iterator[tuple[str, Check]]:
        if self.tier == "local":
            yield "sizes are as declared", self.sizes
        yield "a second reading gives the same rows", self.same_again
        yield "rows have what systems read", self.readable
        yield "systems see no answer", self.hidden
        yield "answers of dev and test occur in train", self.known_answers
        yield "dev and test have rows of their own", self.apart
        yield "its metrics can be computed", self.scores

    def counts(self) -> str:
        return ", ".join(f"{split} {len(rows)}" for split, rows in self.rows.items())

    def sizes(self) -> str:
        """A smaller training set is allowed, and a dev set held out of it: records are partial."""
        sizes = self.entry.sizes
        other = {
            split: f"{split} has {len(rows)} rows, its sizes say {sizes.get(split, 'nothing')}"
            for split, rows in self.rows.items()
            if len(rows) != sizes.get(split)
        }
        partial = len(self.rows["train"]) < sizes.get("train", 0)
        require(not other or (partial and "test" not in other), "; ".join(other.values()))
        return "; ".join([*other.values(), "records will be partial"]) if other else ""

    def same_again(self) -> str:
        for split, rows in self.rows.items():
            again = self.task.load(split, self.tier, self.folder).to_list()
            require(
                fingerprint(again) == fingerprint(rows), f"{split} differs: fix the seed, and sort what has no order"
            )
        return ""

    def readable(self) -> str:
        forms = [form for form in self.task.inputs if form != "text"]
        needed = [*(self.problem.entry.texts if "text" in self.task.inputs else ()), *forms]
        for split, rows in self.rows.items():
            for row in rows:
                missing = [name for name in needed if row.get(name) is None]
                require(
                    not missing,
                    f"{split}, row {row['id']}: no {', '.join(missing)}, though the task's inputs are"
                    f" {', '.join(self.task.inputs)}",
                )
        return ""

    def hidden(self) -> str:
        answers = self.problem.entry.answer_columns
        for row in self.problem.input_rows(self.rows["test"]):
            shown = [name for name in answers if name in row]
            require(not shown, f"the problem {self.entry.type} shows {', '.join(shown)} of row {row['id']}")
        return ""

    def known_answers(self) -> str:
        """Answers that train lacks are errors of every system; where they are most, labels are
        written in two ways."""
        notes = []
        for name in self.problem.entry.answer_columns:
            known = [value for row in self.rows["train"] for value in _texts(row.get(name))]
            answers = set(known)
            if len(known) < 2 * len(answers):
                continue  # each answer is an answer of its own, such as a transcript
            for split in ("dev", "test"):
                rows = self.rows[split]
                strange = [{*_texts(row.get(name))} - answers for row in rows]
                count, values = sum(map(bool, strange)), sorted(set().union(*strange))
                note = f"{split}: the {name} of {count} of {len(rows)} rows is not in train: {_some(values)}"
                require(2 * count <= len(rows), note)
                notes += [note] if count else []
        return "; ".join(notes)

    def apart(self) -> str:
        """Equal rows are no error, and are counted: short texts of a corpus may occur twice."""
        contents = {split: [self._content(row) for row in rows] for split, rows in self.rows.items()}
        train, notes = set(contents["train"]), []
        for split, found in contents.items():
            if split != "train":
                count = sum(content in train for content in found)
                require(count < len(found), f"every row of {split} is a row of train too")
                notes += [f"{count} of {len(found)} rows of {split} read as a row of train"] if count else []
            repeated = len(found) - len(set(found))
            notes += [f"{repeated} of {len(found)} rows of {split} read as one before them"] if repeated else []
        return "; ".join(notes)

    def scores(self) -> str:
        """Those of predictions that need no learning."""
        (name, floor), *_ = self.problem.floors(self.rows["train"], self.rows["test"]).items()
        scores = score(self.entry.metrics, floor, self.rows["test"], self.task.label_tree)
        return f"{name}: " + ", ".join(f"{metric} {value:.3f}" for metric, value in scores.items())

    def _content(self, row: Row) -> str:
        """Digest of the inputs in a row without names: its own, its group's, its recording's."""
        visible = self.problem.input_row(row | {"id": ""})
        return fingerprint([{name: value for name, value in visible.items() if name != self.problem.entry.cluster}])


def _texts(value: Any) -> list[str]:
    """A text, or the texts of a list; nothing of another value."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _some(values: list[str]) -> str:
    return ", ".join(map(repr, values[:5])) + (", ..." if len(values) > 5 else "")

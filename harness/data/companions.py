"""Companions: further tasks on whose training rows an architecture is trained beside the task of
its cell, which alone is scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness import registry
from harness.data.corpus import Split
from harness.data.loaded_rows import distinct, listed_rows, training_rows
from harness.data.overlap import free_of, sequences_of_rows
from harness.errors import DataError
from harness.problems import problem
from harness.problems.base import Fields, Head, Problem
from harness.task import Task, Tier, fingerprint
from harness.views.base import View


@dataclass
class CompanionSplit(Split):
    """The encoded training rows of a companion, with the head that answers its problem."""

    problem: Problem

    def head(self, encoder: Any) -> Head:
        """A fresh head on top of an encoder."""
        return self.problem.head(encoder, self.target)


class Companion:
    """The training rows of a further task, at most ``most`` of them (None: all).

    Those of which a text is one by which the task of the cell is judged, or has 13 words in a row
    from one, are left out; ``known`` are :func:`judged` of that task. ``gives`` is the
    architecture's output, as of a :class:`~harness.data.corpus.Corpus`. ``digest`` is that of the
    rows before any is left out, ``left_out`` the number of those, ``identity`` the digest of the
    others. :class:`DataError` where none stays.
    """

    def __init__(
        self,
        task: Task,
        tier: Tier,
        folder: Path | None,
        most: int | None,
        gives: str,
        known: np.ndarray,
    ):
        rows = training_rows(task, tier, folder, most)
        self.task, self.gives, self.problem = task, gives, problem(task.entry.type)
        listed = listed_rows(rows)
        self.digest = self.identity = fingerprint(listed)
        kept = free_of(self.problem, rows, known)
        self.left_out = len(rows) - len(kept)
        if not len(kept):
            raise DataError(f"{task.entry.id}: a text of each of its {len(rows)} training rows stands in dev or test")
        self.rows = rows
        if self.left_out:
            self.rows = rows.select(kept)
            listed = listed_rows(self.rows)
            self.identity = fingerprint(listed)
        self.target = self.problem.target(gives)
        self.target.fit(listed)

    def fields(self, view: View) -> Fields:
        """The input fields of a batch, each with its reader of a row."""
        return self.problem.fields(self.gives, view)

    def texts(self, view: View) -> Iterator[Any]:
        """The texts to which a view is fitted, each once."""
        for read in self.fields(view).values():
            yield from distinct(map(read, listed_rows(self.rows)))

    def split(self, view: View) -> CompanionSplit:
        """The rows as a fitted view reads them."""
        rows = listed_rows(self.rows)
        inputs = {field: view.encode([read(row) for row in rows]) for field, read in self.fields(view).items()}
        return CompanionSplit(self.rows, view, self.target, inputs, self.target.encode(rows, view), self.problem)


def judged(task: Task, tier: Tier, folder: Path | None) -> np.ndarray:
    """Hashes of the texts of dev and test of a task, which hold in this process alone."""
    asked = problem(task.entry.type)
    splits = [task.load(split, tier, folder) for split in ("dev", "test")]
    return np.sort(np.concatenate([sequences_of_rows(asked, rows) for rows in splits]))


def companions_of(
    task: Task, names: Sequence[str], tier: Tier, folder: Path | None, most: int | None, gives: str
) -> list[Companion]:
    """The companions of these names of a task."""
    if not names:
        return []
    known, entries = judged(task, tier, folder), [registry.entry("tasks", name) for name in names]
    return [Companion(registry.load(each)(each), tier, folder, most, gives, known) for each in entries]

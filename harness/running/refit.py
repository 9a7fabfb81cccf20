"""A second training, when the score is known: the model that is handed over saw test too.

The score of a cell is that of a model which dev chose and which never saw test. Whoever wants a
model for use has no need of rows that nobody learns from. The rate and all settings are those that
the first training found. Dev still says when to stop; a system without gradients that says what it
chooses there chooses again, by a cross-validation of all rows, and then learns from all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.kinds import Estimator
from harness.running.assembly import Assembly, task_of
from harness.running.worker_settings import Settings
from harness.task import Row, Split, Task, Tier
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.user_data.splits import carved, hashes

if TYPE_CHECKING:
    import datasets

    from harness.records import Cell


FOLDS = 3
"""Parts of the rows, each of which is asked what the others teach. With two, a fit has so few rows
that it wants another strength than all of them do; more take longer. Together these fits take some
FOLDS - 1 of all rows; the last fit, which chooses nothing, is short beside them."""


def widened(task: Task) -> Task:
    """The task with the rows of test among those for training, and with no test."""

    class Widened(type(task)):  # type: ignore[misc]
        def load(self, split: Split, tier: Tier, folder: Path | None = None) -> datasets.Dataset:
            from datasets import concatenate_datasets

            if split == "test":
                raise ValueError(f"{self.entry.id}: test is learnt from here, and scores nothing")
            rows = super().load(split, tier, folder)
            return concatenate_datasets([rows, super().load("test", tier, folder)]) if split == "train" else rows

    wide: Task = Widened(task.entry)
    return wide


def trained(cell: Cell, settings: Settings, lr: float, folder: Path) -> tuple[Assembly, FitModule]:
    """The training of a cell's architecture at one learning rate on train and test, which ends with
    the best epoch by dev. ``folder`` is for checkpoints."""
    assembly = Assembly(cell, settings, widened(task_of(cell)))
    training = assembly.training_of(assembly.model(cell.seed), lr)
    fit(training, folder, 1, "auto", cell.precision, assembly.most_epochs(training))
    return assembly, training


def folds(rows: Sequence[Row], together: Iterable[str]) -> Iterator[tuple[list[Row], list[Row]]]:
    """Rows to learn from and rows to ask, :data:`FOLDS` times by lot: each row is asked once. Rows
    that have the same text in ``together`` (:meth:`~harness.task.Task.together`) are not
    divided."""
    fold_of = carved(hashes(together), dict.fromkeys(range(1, FOLDS), 1 / FOLDS))  # type: ignore[arg-type]
    placed = list(zip(rows, fold_of, strict=True))
    for fold in range(FOLDS):
        yield [row for row, own in placed if own != fold], [row for row, own in placed if own == fold]


def learnt_anew(
    first: Estimator,
    fresh: Callable[..., Estimator],
    shipped: bool,
    together: Callable[[Sequence[Row]], Iterable[str]],
    rows: Mapping[Split, Sequence[Row]],
    unlabelled: Sequence[Row],
) -> tuple[Estimator, int]:
    """A ``fresh`` system without gradients, and the number of rows from which it learnt.

    What the ``first`` one chose on dev is chosen again by all rows (cross-validation): a strength
    that a tenth of the rows chose is a matter of luck, and test has no score to give any more. Dev
    is learnt from too, but for a system that chooses there and does not say what, or does not say
    whether: one that is ``shipped`` with this package says so by its silence.
    """
    found = first.chosen_on_dev()
    if found:
        choosers = []
        every_row = [*rows["train"], *rows["dev"], *rows["test"]]
        for learnt, asked in folds(every_row, together(every_row)):
            chooser = fresh()
            chooser.fit(learnt, asked, unlabelled)
            choosers.append(chooser)
        found = choosers[0].chosen_with(*choosers[1:])
    learner = fresh(**found)
    every = bool(found) or (not first.from_dev and (shipped or first.from_dev is not None))
    known = [*rows["train"], *(rows["dev"] if every else ()), *rows["test"]]
    learner.fit(known, () if found else rows["dev"], unlabelled)
    return learner, len(known)

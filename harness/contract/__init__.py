"""Contract of every plugin: the checks of ``archbench check NAME``, run on the mini corpora
with the plugin's ``tiny`` sizes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from harness import registry
from harness.contract.base import Broken, Result, floor, require, run, shortened, with_unknown_words
from harness.contract.fitted import FittedCase
from harness.contract.imports import changes_nothing
from harness.contract.learning import LEARNING_EPOCHS, OVERFIT_STEPS
from harness.contract.model_case import VECTOR_DIMS
from harness.contract.trained import FIRST, TrainedCase
from harness.kinds import Estimator
from harness.metrics import CLEARLY
from harness.registry import ArchitectureEntry
from harness.running import fitting, grid

__all__ = [
    "CLEARLY",
    "LEARNING_EPOCHS",
    "OVERFIT_STEPS",
    "VECTOR_DIMS",
    "Broken",
    "Result",
    "cases",
    "check",
    "floor",
    "require",
    "shortened",
    "with_unknown_words",
]


def check(entry: ArchitectureEntry, learning: bool = True, types: int | None = None) -> list[Result]:
    """Run every check that applies to an architecture; with or without those that need a training,
    on every task type that it fits or on the first ``types`` ones.

    A crash in one is its failure, and the others still run; unless it is the first of a task type,
    whose fault all others would repeat.
    """
    results = [run("import changes no global state", lambda: changes_nothing(entry))]
    if not results[0].passed or entry.kind == "floor":  # predictions without a model have nothing to hold
        return results
    try:
        fitting = list(islice(cases(entry), types))
    except Exception as error:  # its constructor, or what it says of tasks
        return [*results, Result("fits a task", False, f"{type(error).__name__}: {error}")]
    if not fitting:
        return [*results, Result("fits a task", False, f"kind {entry.kind} fits none of the registered tasks")]
    for number, case in enumerate(fitting):
        for name, body in case.checks(learning=learning and number == 0):
            results.append(run(f"{case.task.entry.id}: {name}", body))
            if name == FIRST and not results[-1].passed:
                return results
    return results


def cases(entry: ArchitectureEntry) -> Iterator[TrainedCase | FittedCase]:
    """One case per task type that the architecture fits, each on the first task of that type with a
    generated corpus."""
    settings = grid.hyperparameters(entry) | entry.tiny
    seen: set[str] = set()
    for task in registry.tasks_to_check_on():
        if task.type in seen or fitting.no_data(task, "mini") is not None:
            continue
        if fitting.reason_to_skip(entry, task, settings) is None:
            seen.add(task.type)
            yield (FittedCase if issubclass(registry.load(entry), Estimator) else TrainedCase)(entry, task, settings)

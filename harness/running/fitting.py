"""The pairs of an architecture and a task that fit, and why the others do not.

Loading an architecture's class may import torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from harness import registry
from harness.errors import RegistryError
from harness.registry import ArchitectureEntry, Entry, TaskEntry
from harness.task import Task, Tier

E = TypeVar("E", bound=Entry)


def reason_to_skip(architecture: ArchitectureEntry, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
    """The reason why an architecture cannot run on a task with these hyperparameters, or None."""
    reason: str | None = loaded(architecture).reason_to_skip(task, hyperparameters)
    return reason


def no_place_for_inputs(
    architecture: ArchitectureEntry, task: TaskEntry, hyperparameters: dict[str, Any], names: Iterable[str]
) -> str | None:
    """The reason why an architecture that runs on a task cannot read input sources of such names
    there, or None: they stand behind the vectors of words whose characters can be had."""
    listed = ", ".join(names)
    if not listed:
        return None
    from harness.views.words_and_characters import with_characters  # it imports torch

    _, view = loaded(architecture).reader_and_view(task, hyperparameters)
    if view is not None and view.embeds and with_characters(view):
        return None
    read = "rows" if view is None else type(view).__name__
    return f"--inputs {listed} stands behind the vectors of words; {architecture.id} reads {read}"


def no_companions(
    architecture: ArchitectureEntry, task: TaskEntry, names: Iterable[str], hyperparameters: dict[str, Any], tier: Tier
) -> str | None:
    """The reason why an architecture cannot be trained on the tasks of such names beside another
    one, or None: it reads all of them alike, in one tier. :class:`RegistryError` for a name that no
    task has."""
    for name in names:
        companion = registry.entry("tasks", name)
        reason = reason_to_skip(architecture, companion, hyperparameters)
        if reason is None and tier_of(companion, tier) != tier:
            reason = f"its rows are those of tier {tier_of(companion, tier)}, not {tier}"
        reason = reason or no_data(companion, tier)
        if reason is None:
            own, other = (_reading(architecture, each, hyperparameters) for each in (task, companion))
            reason = None if own == other else f"it is read otherwise than {task.id}"
        if reason:
            return f"is trained on {name} beside {task.id}: {reason}"
    return None


def _reading(
    architecture: ArchitectureEntry, task: TaskEntry, hyperparameters: dict[str, Any]
) -> dict[str, Any] | None:
    _, view = loaded(architecture).reader_and_view(task, hyperparameters)
    return None if view is None else view.settings()


def tier_of(task: TaskEntry, asked: Tier) -> Tier:
    """The tier whose rows a task gives to a run that asks for one."""
    cls: type[Task] = registry.load(task)
    return cls.tier_of(asked)


def no_data(task: TaskEntry, tier: Tier) -> str | None:
    """The reason why a task has no rows for a run that asks for a tier, or None."""
    cls: type[Task] = registry.load(task)
    return cls.reason_to_skip(task.id, cls.tier_of(tier))


def no_budget(task: TaskEntry, budget: str) -> str | None:
    """The reason why a task cannot be run on a budget, or None."""
    if budget in registry.budgets_of(task):
        return None
    return f"{task.id} has no budget {budget}; it has {' and '.join(registry.budgets_of(task))}"


def loadable(chosen: Iterable[E]) -> tuple[list[E], list[str]]:
    """The architectures or tasks whose file can be imported, and one message for each that cannot:
    the others run without it."""
    good: list[E] = []
    errors: list[str] = []
    for entry in chosen:
        try:
            loaded(entry) if isinstance(entry, ArchitectureEntry) else registry.load(entry)
        except RegistryError as error:
            errors.append(str(error))
        else:
            good.append(entry)
    return good, errors


def loaded(architecture: ArchitectureEntry) -> Any:
    """The class of an architecture; :class:`RegistryError` for one that is derived from no kind."""
    cls = registry.load(architecture)
    if lacking := [name for name in ("reason_to_skip", "reader_and_view") if not hasattr(cls, name)]:
        raise RegistryError(
            f"{architecture.file}: class {cls.__name__} (kind {architecture.kind}) lacks {' and '.join(lacking)}: "
            "derive it from the base class of its kind in harness.kinds"
        )
    return cls

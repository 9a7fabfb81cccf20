"""Cells that start from what others learnt: their parents, planned before them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import registry
from harness.errors import UsageError, check_choice, unknown
from harness.problems import problem
from harness.records import Cell, Record
from harness.registry import ArchitectureEntry, TaskEntry
from harness.running.fitting import reason_to_skip
from harness.running.grid import Planner, combinations
from harness.running.pending import Planned
from harness.saved_models import storage
from harness.settings import ROLES, Limits

NOBODY = "none"
"""Name in the place of a parent by which a user says that there is to be none in a role."""


class Wish(NamedTuple):
    """A parent that the user or a registration names: by its architecture, on a task (None: that of
    the child), or by the beginning of a kept model's key. ``text`` is where that was said.

    On the tasks ``before`` it the parent was trained first, one after another, and went on with the
    weights.
    """

    text: str
    role: str
    name: str
    task: str | None
    before: tuple[str, ...] = ()

    @property
    def earlier(self) -> Wish | None:
        """The parent of this parent; None where it is the first."""
        if not self.before:
            return None
        return self._replace(role="weights", task=self.before[-1], before=self.before[:-1])


def parse_parent(text: str) -> Wish:
    """Read one ``--parent``; :class:`UsageError` when it is not ``ROLE=NAME``."""
    role, equals, name = (part.strip() for part in text.partition("="))
    option = f"--parent {text}"
    if not equals or not name:
        raise UsageError(f"{option}: expected ROLE=ARCHITECTURE or ROLE=KEY, such as weights=skipgram")
    check_choice(f"{option}: role", role, ROLES)
    return _wish(option, role, name)


def _wish(text: str, role: str, name: str) -> Wish:
    """The parent of a name such as ``bert``, ``bert@ag_news`` or ``bert@text_mix+ag_news``."""
    architecture, _, tasks = name.partition("@")
    *before, task = tasks.split("+")
    return Wish(text, role, architecture, task or None, tuple(before))


def plan(
    planner: Planner,
    architectures: Sequence[ArchitectureEntry],
    tasks: Sequence[TaskEntry],
    seeds: Sequence[int],
    homes: Mapping[str, str] | None,
    wishes: Sequence[Wish],
    results: Path,
) -> tuple[list[Planned], list[Planned]]:
    """Every cell of the grid, and before them the cells that they start from and that are no part
    of it. ``wishes`` are parents of all cells of the grid, beside those that their architectures
    have by default.

    Raises :class:`UsageError` for a role that an architecture does not take, and where several kept
    models could be the parent.
    """
    for role, count in Counter(wish.role for wish in wishes).items():
        if count > 1:
            raise UsageError(f"--parent {role}=: given {count} times; a cell has one parent in each role")
    family = _Family(planner, results)
    grid = [family.cell(a, t, seed, wishes) for a, t, seed in combinations(architectures, tasks, seeds, homes)]
    planner.check_overrides()
    own = {item.cell.key for item in grid}
    return [item for key, item in family.planned.items() if key not in own], grid


class _Family:
    def __init__(self, planner: Planner, results: Path):
        self.planner, self.results = planner, results
        self.planned: dict[str, Planned] = {}
        """Parents by key, each after its own."""
        self.kept: list[Cell] | None = None

    def cell(
        self,
        architecture: ArchitectureEntry,
        task: TaskEntry,
        seed: int,
        wishes: Sequence[Wish] = (),
        children: tuple[str, ...] = (),
        inputs: bool = True,
    ) -> Planned:
        """A cell with its parents; ``children`` are the architectures and tasks for which it is
        planned. Without ``inputs`` it reads none of the run's input sources."""
        planned = self.planner.cell(architecture, task, seed, inputs)
        own: dict[str, str] = {}
        if architecture.parents:
            cls: Any = registry.load(architecture)
            own = cls.default_parents(architecture.parents, planned.cell.hyperparameters)
            elsewhere = {*cls.takes} - {*cls.roles(task.type)}
            own = {role: name for role, name in own.items() if role not in elsewhere}
        where = f"parents of {architecture.id} ({architecture.file})"
        named = (_where_it_stands(_wish(where, role, name), architecture, task) for role, name in own.items())
        wanted = {wish.role: wish for wish in named if wish is not None}
        wanted |= _wishes_of_sources(planned.cell, [*wanted])
        wanted |= {wish.role: wish for wish in wishes}
        wanted = {role: wish for role, wish in wanted.items() if wish.name != NOBODY}
        if not wanted or planned.reason is not None:
            return planned
        here = f"{architecture.id} on {task.id}"
        if here in children:
            raise UsageError(f"{architecture.file}: {' starts from '.join((*children, here))}")
        taken = roles_taken(architecture, task, planned.cell)
        reason, unfit, parents = None, False, {}
        for role, wish in wanted.items():
            if role == "tokens" and (words := whole_words(architecture, task, planned.cell)):
                reason, unfit = f"cannot read words in pieces: {words}", True
            elif role not in taken:
                listed = f"it takes {', '.join(taken)}" if taken else "it takes none"
                raise UsageError(f"{wish.text}: {architecture.id} takes no parent in the role {role}; {listed}")
            if role == "vectors" and planned.cell.hyperparameters["vectors"]:
                raise UsageError(f"{wish.text}: --vectors gives {architecture.id} word vectors already")
            parent = self._parent(wish, planned.cell, task, (*children, here))
            parents[role] = {
                "architecture": parent.cell.architecture,
                "task": parent.cell.task,
                "key": parent.cell.key,
                "row": parent.cell.row,
            }
            if parent.reason is not None and reason is None:
                reason = f"its parent {name(parents[role])} in the role {role} does not fit: {parent.reason}"
        values = planned.cell.hyperparameters | {"parents": parents}
        cell = dataclasses.replace(planned.cell, hyperparameters=values)
        return planned._replace(cell=cell, reason=reason, unfit=unfit)

    def _parent(self, wish: Wish, child: Cell, task: TaskEntry, children: tuple[str, ...]) -> Planned:
        """The cell that a wish names: one that is kept, or one to be planned."""
        known = registry.entries("architectures")
        if wish.name not in known:
            return Planned(self._by_key(wish, known), None)
        architecture = known[wish.name]
        on = task if wish.task is None else registry.entry("tasks", wish.task)
        # Weights go on only in a network that reads as much; in all other roles a parent is what it
        # is without the run's input sources.
        inputs = wish.role == "weights" and bool(child.inputs)
        own = [] if wish.earlier is None else [wish.earlier]
        planned = self.cell(architecture, on, child.seed, own, children, inputs)
        if planned.unfit and wish.task is None and (only := self._only_task(architecture, planned.cell)):
            planned = self.cell(architecture, only, child.seed, children=children, inputs=inputs)
        if planned.reason is None and storage.is_kept(self.results, planned.cell.key):
            return self._with(planned)
        # Who says which settings it has, or what it was trained on before, means that cell alone.
        if not own and not self.planner.changes(architecture):
            tasks = None if planned.reason is not None and wish.task is None else planned.cell.task
            likely = [cell for cell in self._kept_cells() if _is_like(cell, planned.cell, tasks)]
            fitting = [cell for cell in likely if not storage.is_refitted(self.results, cell.key)]
            if len(fitting) > 1:
                listed = "\n  ".join(f"{cell.key}: {cell.architecture} on {cell.task}" for cell in fitting)
                raise UsageError(
                    f"{wish.text}: {len(fitting)} kept models could be the parent of {child.architecture} on"
                    f" {child.task}, seed {child.seed}; name one by its key:\n  {listed}"
                )
            if fitting:
                return Planned(fitting[0], None)
        return self._with(planned)

    def _only_task(self, architecture: ArchitectureEntry, cell: Cell) -> TaskEntry | None:
        """The task on which an architecture runs, where there is but one, such as that of plain
        text for one that makes word vectors."""
        tasks = registry.entries("tasks").values()
        whole = [task for task in tasks if not task.part_of]
        fitting = [task for task in whole if reason_to_skip(architecture, task, cell.hyperparameters) is None]
        return fitting[0] if len(fitting) == 1 else None

    def _with(self, planned: Planned) -> Planned:
        self.planned.setdefault(planned.cell.key, planned)
        return planned

    def _by_key(self, wish: Wish, known: Iterable[str]) -> Cell:
        fitting = [cell for cell in self._kept_cells() if cell.key.startswith(wish.name)]
        if len(fitting) > 1:
            raise UsageError(f"{wish.text}: {len(fitting)} kept keys begin so: {', '.join(c.key for c in fitting)}")
        if not fitting:
            otherwise = f"and no model of such a key is kept; `archbench models` lists {len(self._kept_cells())}"
            raise UsageError(f"{wish.text}: {unknown('architecture', wish.name, known, otherwise)}")
        return fitting[0]

    def _kept_cells(self) -> list[Cell]:
        """The cells of the kept models; a folder that is damaged or of no cell is passed over."""
        if self.kept is None:
            self.kept = []
            keys = (each.folder.name for each in storage.kept_models(self.results))
            self.kept += filter(None, (storage.cell_of(self.results, key) for key in keys))
        return self.kept


def _where_it_stands(wish: Wish, architecture: ArchitectureEntry, task: TaskEntry) -> Wish | None:
    """A registered parent of a cell, or what is left of it where that is the architecture itself:
    on each task on which it is pre-trained it starts from the one before, and from nothing on the
    first, or on another one of that type."""
    if wish.name != architecture.id or wish.task is None:
        return wish
    tasks = (*wish.before, wish.task)
    if task.id in tasks:
        return wish._replace(task=task.id, before=tasks[: tasks.index(task.id)]).earlier
    return None if registry.entry("tasks", tasks[0]).type == task.type else wish


def _wishes_of_sources(cell: Cell, taken: Sequence[str]) -> dict[str, Wish]:
    """The parents of a cell's input sources by role; :class:`UsageError` for one in a role that is
    ``taken``, or where two sources have one."""
    wishes: dict[str, Wish] = {}
    for source in cell.inputs:
        for role, name in registry.entry("inputs", source).parents.items():
            if role in taken or role in wishes:
                other = wishes[role].text if role in wishes else cell.architecture
                raise UsageError(
                    f"--inputs {source}: {other} starts from a parent in the role {role} too; a cell has one"
                )
            wishes[role] = _wish(f"--inputs {source}", role, name)
    return wishes


def roles_taken(architecture: ArchitectureEntry, task: TaskEntry, cell: Cell) -> list[str]:
    """The roles in which an architecture, and one that it wraps, takes a kept model on a task."""
    cls: Any = registry.load(architecture)
    taken = {*cls.roles(task.type)}
    reader, view = cls.reader_and_view(task, cell.hyperparameters)
    if reader is not None:
        taken |= {*reader.roles(task.type), *(["vectors"] if view is not None and view.embeds else [])}
    if whole_words(architecture, task, cell) is None:
        taken.add("tokens")
    taken |= {role for source in cell.inputs for role in registry.entry("inputs", source).parents}
    return [role for role in ROLES if role in taken]


def whole_words(architecture: ArchitectureEntry, task: TaskEntry, cell: Cell) -> str | None:
    """The reason why an architecture, or one that it wraps, cannot read the words of a task in
    pieces; None where it can."""
    cls: Any = registry.load(architecture)
    reader, view = cls.reader_and_view(task, cell.hyperparameters)
    if reader is None:
        return f"{architecture.id} reads the rows by itself"
    if cell.inputs:
        return f"{' and '.join(cell.inputs)} reads the characters of words"
    if not getattr(view, "divides", False):
        return f"the units of its view, {type(view).__name__}, are given"
    return problem(task.type).whole_words(reader.output_form())


def _is_like(cell: Cell, wanted: Cell, task: str | None) -> bool:
    """True for a cell with the architecture, seed, tier, protocol and budget of another, on a task
    (None: on any) as it is now."""
    here = registry.entries("tasks").get(cell.task)
    settings = ("tier", "protocol", "protocol_version", "precision", "devices")
    same = ("architecture", "architecture_version", "seed", *settings)
    return (
        all(getattr(cell, each) == getattr(wanted, each) for each in same)
        and Limits.of(cell.hyperparameters) == Limits.of(wanted.hyperparameters)
        and cell.inputs == wanted.inputs
        and task in (None, cell.task)
        and (here is not None and here.version == cell.task_version)
    )


def name(parent: dict[str, str]) -> str:
    """A parent in words."""
    return f"{parent['architecture']} on {parent['task']} ({parent['key']})"


def missing(cell: Cell, results: Path, record_of: Callable[[str], Record | None]) -> str | None:
    """The reason why a cell cannot start, or None: a parent whose kept folder is not there, or of
    before its cell was run again and failed. ``record_of`` gives the record of a parent's key,
    where it is known."""
    for role, parent in cell.parents.items():
        record = record_of(parent["key"])
        if not storage.is_kept(results, parent["key"]) or (record is not None and record.status != "ok"):
            ended = "is not kept"
            if record is not None:
                error = (record.error or {}).get("message", "").strip().splitlines()
                ended = f"ended {record.status}" + (f": {error[-1]}" if error else ", and was not kept")
            return f"its parent {name(parent)} in the role {role} {ended}"
    return None


def first_of_families(cells: Sequence[Cell]) -> dict[str, Cell]:
    """The cell with the smallest key of each cell's family, by the cell's key: cells that start
    from one another, or from the same parent, are one family."""
    root: dict[str, str] = {}

    def root_of(key: str) -> str:
        while (above := root.setdefault(key, key)) != key:
            key = above
        return key

    for cell in cells:
        for parent in cell.parents.values():
            root[root_of(parent["key"])] = root_of(cell.key)
    first: dict[str, Cell] = {}
    for cell in sorted(cells, key=lambda cell: cell.key):
        first.setdefault(root_of(cell.key), cell)
    return {cell.key: first[root_of(cell.key)] for cell in cells}

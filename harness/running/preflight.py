"""The check before the first cell: each chosen task is read once, so that a wrong file or a wrong
metric is a message and not the failure of a model."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import DataError, RegistryError, UnknownName
from harness.files import taking_the_place_of
from harness.metrics import info
from harness.registry import TaskEntry
from harness.registry.sorts import ROOT
from harness.running.changed_data import code_digest
from harness.running.fitting import no_data, tier_of
from harness.running.worker_settings import BY_TIMEOUT
from harness.task import Tier

READER, PRESENCE = "harness.running.reading", "harness.running.presence"
SIZES_S = 30.0
"""Seconds in which a dry run counts training rows; it takes declared sizes of what is left then."""
PRESENCE_S = 60.0
"""Seconds for each task whose files are looked for: a reader that hangs is told when it reads."""


@dataclass
class Reading:
    """The outcome of reading a task: the number of rows by split, a message for each fault, one for
    each note, which is no fault, and the bytes of the training rows as Arrow holds them (0 where
    that is not known)."""

    counts: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    train_bytes: int = 0


def check_metrics(tasks: Iterable[TaskEntry]) -> None:
    """Raise :class:`~harness.errors.RegistryError` with a line for each metric of a task that
    nobody knows."""
    faults = []
    for task in tasks:
        for metric in task.metrics:
            try:
                info(metric)
            except UnknownName as error:
                faults.append(f"{task.file}: task {task.id}: {error}")
    if faults:
        raise RegistryError("\n".join(faults))


def other_sizes(task: TaskEntry, counts: dict[str, int]) -> str | None:
    """A message on the splits on which models are chosen and scored, if one has another size than
    the task declares; None otherwise."""
    differing = [
        f"{split} has {counts[split]:,} examples, declared are {task.sizes[split]:,}"
        for split in ("dev", "test")
        if split in counts and counts[split] != task.sizes.get(split, counts[split])
    ]
    if not differing:
        return None
    note = "; its scores are of another test set" if counts.get("test") != task.sizes.get("test") else ""
    return f"{task.id}: {'; '.join(differing)}{note}"


def absent(tasks: Sequence[TaskEntry], folder: Path) -> dict[str, str]:
    """The tasks whose files are not in the data folder, with a message on the first that each
    lacks."""
    answers, _ = ask(PRESENCE, tasks, "local", folder, PRESENCE_S)
    return {id: answer["missing"] for id, answer in answers.items() if answer["missing"]}


def ask(
    module: str, tasks: Sequence[TaskEntry], tier: str, folder: Path | None, timeout: float | None
) -> tuple[dict[str, dict[str, Any]], str]:
    """Answers by a process of its own, and how that ended: at a task for which there is
    none."""
    asked = {
        "plugins": [str(file) for file in registry.plugin_files()],
        "tasks": [task.id for task in tasks],
        "tier": tier,
        "folder": folder and str(folder),
    }
    seconds = timeout and timeout * len(tasks)
    command, variables = of_its_own(module)
    try:
        done = subprocess.run(
            command,
            input=json.dumps(asked).encode(),
            stdout=subprocess.PIPE,
            env=variables,
            timeout=seconds,
            check=False,
        )
        output, end = done.stdout, f"ended its process with code {done.returncode}"
    except subprocess.TimeoutExpired as error:
        output, end = error.stdout or b"", f"was still going on after {seconds:g} s {BY_TIMEOUT}"
    answers = [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
    return {answer.pop("task"): answer for answer in answers}, end


def of_its_own(module: str) -> tuple[list[str], dict[str, str]]:
    """The command and the variables of a process for a module, which can import what this one
    can."""
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    return [sys.executable, "-P", "-m", module], os.environ | {"PYTHONPATH": path}


def training_sizes(tasks: Sequence[TaskEntry], folder: Path) -> dict[str, int]:
    """The number of training rows of each task in the data folder; none where that is not known."""
    answers, _ = ask(READER, tasks, "local", folder, SIZES_S / len(tasks)) if tasks else ({}, "")
    return {id: answer["counts"]["train"] for id, answer in answers.items() if "train" in answer["counts"]}


def with_files(
    tasks: list[TaskEntry], named: Collection[str], tier: Tier, folder: Path | None, tell: Callable[[str], object]
) -> list[TaskEntry]:
    """The tasks without those whose files the data folder lacks and that are not among the
    ``named`` ones, so that a wildcard chose them; ``tell`` is called with a note on these.

    Where all of them lack theirs, the folder is a wrong one: none is left out, and reading them
    says why.
    """
    caught = [task for task in tasks if task.id not in named and tier_of(task, tier) == "local"]
    caught = [task for task in caught if no_data(task, tier) is None]
    without = absent(caught, folder) if caught and folder is not None else {}
    if not without or len(without) == len(tasks):
        return tasks
    from_hub = [task.id for task in caught if task.id in without and no_data(task, "hub") is None]
    hub = f", and --tier hub downloads {', '.join(from_hub)}" if from_hub else ""
    tell(
        f"left out, since --data-dir lacks their files: {', '.join(without)};"
        f" `archbench doctor --data-dir {folder}` names the files{hub}"
    )
    return [task for task in tasks if task.id not in without]


class Preflight:
    """Readings of the tasks of one tier, kept in the file ``cache`` until the code of the task or
    a file in the data folder (``signature``) changes."""

    def __init__(self, tier: str, folder: Path | None, signature: str, cache: Path):
        self.tier, self.folder, self.signature, self.cache = tier, folder, signature, cache

    def known(self, tasks: Iterable[TaskEntry]) -> dict[str, Reading]:
        """The readings that an earlier run kept."""
        try:
            kept = json.loads(self.cache.read_text())
            digests = {task.id: self._digest(task) for task in tasks}
            found = {id: kept[name] for id in digests if (name := self._name(id)) in kept}
            return {id: Reading(**entry["reading"]) for id, entry in found.items() if entry["of"] == digests[id]}
        except (OSError, ValueError, TypeError, KeyError):  # none yet, or damaged: it costs time only
            return {}

    def read(
        self, tasks: Sequence[TaskEntry], timeout: float | None = None, built_in: bool = False
    ) -> dict[str, Reading]:
        """The reading of each task, from the cache where that found no fault; of corpora that are
        built in, which have none, where ``built_in`` asks for their sizes. ``timeout`` is in
        seconds for each task."""
        chosen = [task for task in tasks if built_in or self.tier != "mini" or not task.shipped]
        found = {id: reading for id, reading in self.known(chosen).items() if not reading.faults}
        left = [task for task in chosen if task.id not in found]
        if not left:
            return found
        while unread := [task for task in left if task.id not in found]:
            answered, end = ask(READER, unread, self.tier, self.folder, timeout)
            found |= {id: Reading(**answer) for id, answer in answered.items()}
            if culprit := next((task for task in unread if task.id not in answered), None):
                found[culprit.id] = Reading(faults=[f"{culprit.id}: reading its data {end}"])
        self._keep(left, found)
        return found

    def _keep(self, tasks: Sequence[TaskEntry], found: dict[str, Reading]) -> None:
        if self.tier == "hub":
            tasks = [task for task in tasks if not found[task.id].faults]  # the network may be back by then
        kept = {}
        with suppress(OSError, ValueError, TypeError):
            kept = dict(json.loads(self.cache.read_text()))
        kept |= {self._name(task.id): {"of": self._digest(task), "reading": asdict(found[task.id])} for task in tasks}
        with suppress(OSError), taking_the_place_of(self.cache) as path:  # without it the next run reads them again
            path.write_text(json.dumps(kept))

    def _name(self, id: str) -> str:
        return f"{id} {self.tier}"

    def _digest(self, task: TaskEntry) -> str:
        return hashlib.sha256(f"{code_digest(task)} {self.signature}".encode()).hexdigest()


def raise_faults(readings: Iterable[Reading]) -> None:
    """Raise :class:`~harness.errors.DataError` with a line for each fault, if there is any."""
    if faults := [fault for reading in readings for fault in reading.faults]:
        raise DataError("\n".join(faults))


def is_here(tier: str, data_dir: Path | None) -> bool:
    """True if this machine can read the data of a tier, and need not leave it to the nodes of a
    cluster."""
    if tier != "local" or data_dir is None:
        return tier in ("mini", "own")
    return os.access(data_dir, os.R_OK | os.X_OK) and any(data_dir.iterdir())

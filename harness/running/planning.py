"""A planned run: its cells, the records that stand, and what is still to compute."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress

from harness import registry
from harness.errors import DataError, RecordError, UsageError, check_choice
from harness.records import Cell, Record, Store
from harness.records.code_digest import started_from
from harness.registry import TaskEntry
from harness.running import fitting, grid, parents
from harness.running.changed_data import Ancestors, DataFolder, OwnData
from harness.running.estimate import Estimate
from harness.running.memory import too_large
from harness.running.order import in_shard, parse_shard
from harness.running.parents import first_of_families
from harness.running.pending import Pending, Planned, pending
from harness.running.preflight import (
    Preflight,
    Reading,
    absent,
    check_metrics,
    is_here,
    other_sizes,
    raise_faults,
    training_sizes,
    with_files,
)
from harness.running.request import Request, refuse_strategy
from harness.running.ruler import known_ruler
from harness.running.worker_settings import Settings
from harness.saved_models.storage import cell_of, is_kept, is_refitted, set_aside
from harness.settings import Limits
from harness.task import Tier


class Planning:
    """The plan of a run. Building one reads the registry, the existing records and, once, the data
    of the tasks that are to run; it computes nothing.

    ``tell`` is called with every note for the user, ``tell_error`` with what is wrong and leaves
    the other cells as they are: a file that cannot be imported, a damaged record. Raises
    :class:`~harness.errors.UsageError` for options that cannot be carried out.
    """

    def __init__(
        self,
        request: Request,
        tell: Callable[[str], object] = warnings.warn,
        tell_error: Callable[[str], object] = warnings.warn,
    ):
        request.check()
        self.request, self.tell, self.tell_error = request, tell, tell_error
        shard = parse_shard(request.shard) if request.shard else None
        for file in request.plugins:
            registry.add_plugin(file)
        self.data_dir = request.data_dir and request.data_dir.resolve()
        self.store = Store(request.results.resolve())
        if not request.dry_run:
            self.store.check_writable()
            self.store.sweep()
        self._parents, planned = self._planned()
        if shard:
            # Cells that start from one another stay together: their parents are trained once.
            first = first_of_families([item.cell for item in (*self._parents, *planned)])
            planned = [item for item in planned if in_shard(first[item.cell.key], shard)]
        self.cells = [item.cell for item in planned]
        self.needed: frozenset[str] = frozenset()
        self._aside: dict[str, Record] = {}  # records that are renamed if their cells can run again, by key
        self._because: dict[str, str] = {}  # what changed, by the key of a cell that is to run again
        self._was_unkept: set[str] = set()  # keys of cells that are to run again in order to be kept
        cells = [*self.cells, *(item.cell for item in self._parents)]
        self._ancestors = Ancestors(cells, [], self.store.folder)  # asked for no data before these are read
        self.pending = self._pending(planned)
        self._changed = self._changed_with_children()
        if request.keep or request.refit:
            self._run_unkept()
        self._settle_parents()
        self._skip_without_companions()
        self._read_tasks: set[str] = set()
        self._found: dict[str, Reading] = {}
        places = self._places()
        self._read_data(places)
        if places:
            self._ancestors = Ancestors(cells, places, self.store.folder)
            self._drop_other_data(places)
            self._settle_parents()
            self._read_data(places)  # now also of the tasks whose cells run again
        self._refuse_more_labels()
        self._skip_too_large()
        self._set_aside()
        self._tell_of_other_code()
        for error in self.pending.damaged:
            tell_error(f"damaged record: its cell is skipped until you move the file away: {error}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged records of this grid were just named
            known = self.store.all() if self.pending.run else ()  # a grid that is finished asks for no time
            ruler = known_ruler(self.store.folder / "work" / "ruler")
            self.estimate = Estimate(known, ruler, request.cpu_limit)
        self._tell_sizes()
        ordered = self.estimate.longest_first(self.pending.run)
        self.pending.run[:] = sorted(ordered, key=lambda cell: cell.key not in self.needed)

    def _pending(self, planned: Sequence[Planned]) -> Pending:
        request = self.request
        return pending(planned, self.store, retry_failed=request.retry_failed, changed=request.changed)

    def _changed_with_children(self) -> set[str]:
        """Keys of the cells that other code made, those among them that others start from. What
        started from one of these counts as made by other code, too."""
        before = pending([*self._parents, *self._kept_parents], self.store)
        keys = {record.key for record in (*self.pending.changed, *before.changed)}
        again = {record.key: record for record in self.pending.finished if started_from(keys, record)}
        self.pending.changed.extend(record for key, record in again.items() if key not in keys)
        if self.request.changed:
            self.pending.finished[:] = [record for record in self.pending.finished if record.key not in again]
            self.pending.run.extend(record.cell for record in again.values())
        return keys | {record.key for record in before.finished if started_from(keys, record)}

    @functools.cached_property  # each look at them reads the descriptions of kept models
    def _kept_parents(self) -> list[Planned]:
        """The cells that others start from, or have started from, and that nobody planned: they
        were found as kept models."""
        planned = {*(item.cell.key for item in self._parents), *(cell.key for cell in self.cells)}
        keys = {parent["key"] for cell in self.cells for parent in cell.parents.values()}
        keys |= {each["key"] for record in self.pending.finished for each in record.lineage or ()}
        cells = (cell_of(self.store.folder, key) for key in sorted(keys - planned))
        return [Planned(cell, None) for cell in cells if cell is not None]

    def _planned(self) -> tuple[list[Planned], list[Planned]]:
        """The cells that others start from and that are no part of the grid, and every cell of the
        grid; what cannot be imported is reported and left out."""
        request = self.request
        chosen, on = registry.match("architectures", request.architectures), registry.match("tasks", request.tasks)
        budgets = dict.fromkeys(name for task in on for name in registry.budgets_of(task))
        check_choice("--budget", request.budget, tuple(budgets))
        registry.import_other_plugins([*chosen, *on])
        if (homes := request.homes) is not None:
            chosen = [entry for entry in chosen if entry.id in homes]
            on = [entry for entry in on if entry.id in homes.values()]
        architectures, errors = fitting.loadable(chosen)
        tasks, more = fitting.loadable(on)
        unlisted = {**registry.unlisted("architectures"), **registry.unlisted("tasks")}
        self.broken = [*errors, *more, *unlisted.values()]
        for error in self.broken:
            self.tell_error(f"left out: {error}")
        check_metrics(tasks)
        if is_here(request.tier, self.data_dir):
            named = registry.comma_separated(request.tasks)
            tasks = with_files(tasks, named, request.tier, request.data_dir, self.tell)
        for task in tasks:
            reason = fitting.no_data(task, request.tier)
            if reason is not None and not request.dry_run:  # which shows the reason of each cell
                self.tell(f"skipped: {reason}")
        planner = grid.Planner(
            tier=request.tier,
            protocol=request.protocol,
            budget=request.budget,
            overrides=request.overrides,
            max_train=request.max_train,
            max_epochs=request.max_epochs,
            labels=request.labels,
            vectors=request.vectors,
            inputs=request.inputs,
            precision=request.precision,
            devices=request.devices,
        )
        wishes = list(map(parents.parse_parent, request.parents))
        before, planned = parents.plan(planner, architectures, tasks, request.seeds, homes, wishes, self.store.folder)
        refuse_strategy([*before, *planned], request)
        return before, planned

    def _settle_parents(self) -> None:
        """Put the parents of the pending cells before them, unless they are kept: those that are no
        part of the grid, and those that ended well without being kept. A cell whose parent failed,
        is skipped or does not fit is skipped, and the failure counts among the finished cells."""
        others = {item.cell.key: item for item in (*self._parents, *self._kept_parents)}
        finished = {record.key: record for record in self.pending.finished}
        running = {cell.key for cell in self.pending.run}
        skipped = {item.cell.key: item.reason for item in self.pending.skip}
        needed = set(self.needed)
        again: set[str] = set()
        failed: dict[str, Record] = {}

        def reason(cell: Cell) -> str | None:
            """The reason why the parents of a cell cannot be had; those that can are planned."""
            for role, parent in cell.parents.items():
                key = parent["key"]
                needed.add(key)
                if key in running:
                    continue
                if is_refitted(self.store.folder, key):
                    return (
                        f"its parent {parents.name(parent)} in the role {role} was trained on rows of test too"
                        f" (--refit): `archbench models --remove {key}`, and it is trained as a parent"
                    )
                if self._stands(key):
                    continue
                if key in skipped:
                    return f"its parent {parents.name(parent)} in the role {role} cannot start: {skipped[key]}"
                if key in others and key not in finished:
                    more = self._pending([others[key]])
                    self.pending.damaged.extend(more.damaged)
                    self.pending.changed.extend(more.changed if self.request.changed else ())
                    finished.update({record.key: record for record in more.finished})
                    if more.run and (why := reason(more.run[0])):
                        return f"its parent {parents.name(parent)} in the role {role} cannot start: {why}"
                    running.update(each.key for each in more.run)
                    self.pending.run.extend(more.run)
                    if more.run:
                        continue
                record = finished.get(key)
                if record is not None and record.status == "ok":
                    if why := reason(record.cell):
                        return f"its parent {parents.name(parent)} in the role {role} cannot start: {why}"
                    self._aside[key] = record
                    again.add(key)
                    running.add(key)
                    self.pending.run.append(record.cell)
                    continue
                if record is not None:
                    failed[key] = record
                return parents.missing(cell, self.store.folder, finished.get)
            return None

        unable = [Planned(cell, why) for cell in list(self.pending.run) if (why := reason(cell))]
        standing = {record.key for record in self.pending.finished}
        self.pending.finished.extend(record for key, record in failed.items() if key not in standing)
        self.pending.finished[:] = [record for record in self.pending.finished if record.key not in again]
        self.needed = frozenset(needed)
        self._skip(unable)

    def _skip(self, items: Sequence[Planned]) -> None:
        """Move cells from the pending ones to the skipped, and those that start from them."""
        keys = {item.cell.key for item in items}
        self.pending.run[:] = [cell for cell in self.pending.run if cell.key not in keys]
        self.pending.skip.extend(items)
        if items:
            self._settle_parents()

    def _skip_and_tell(self, items: Sequence[Planned]) -> None:
        self._skip(items)
        told = dict.fromkeys(f"skipped: {cell.architecture} on {cell.task}: {reason}" for cell, reason, _ in items)
        for message in told if not self.request.dry_run else ():  # which shows the reason of each cell
            self.tell(message)

    def _stands(self, key: str) -> bool:
        """True for a parent that is kept as it would be trained now, and whose cell has not ended
        otherwise since."""
        if not is_kept(self.store.folder, key) or (self.request.changed and key in self._changed):
            return False
        with suppress(RecordError):  # a damaged record is named elsewhere
            cell = cell_of(self.store.folder, key)
            record = self.store.find(cell) if cell else None
            if record is not None and record.status != "ok":
                return False
        if changed := self._ancestors.changed_of_kept(key):
            self._because[key] = f"the data of {' and '.join(changed)} changed"
        return not changed

    def _places(self) -> list[DataFolder]:
        """The places whose files may have changed since a record was made: the data folder, and the
        files of each task that names its own."""
        work, tier = self.store.folder / "work", self.request.tier
        places: list[DataFolder] = []
        if tier == "local" and self.data_dir is not None:
            places.append(DataFolder(self.data_dir, work / "fingerprints.json"))
        before = (item.cell for item in self._parents)
        cells = (*self.pending.run, *(record.cell for record in self.pending.finished), *before)
        ids = {id for cell in cells for id in (cell.task, *cell.companions)}
        own = [
            entry
            for id, entry in registry.entries("tasks").items()
            if id in ids and fitting.tier_of(entry, tier) == "own"
        ]
        return places + [OwnData(entry, work / f"fingerprints-{entry.id}.json") for entry in own]

    def _read_data(self, places: Sequence[DataFolder]) -> None:
        """Read the data of each task that has a cell to run, once for all cells, and tell of splits
        that have not the declared size.

        Raises :class:`~harness.errors.DataError` with a line for each fault. A dry run only looks
        at what an earlier run found.
        """
        ids = {id for cell in self.pending.run for id in (cell.task, *cell.companions)} - self._read_tasks
        tasks = [entry for id, entry in registry.entries("tasks").items() if id in ids]
        signatures = {place.task: place.signature for place in places if isinstance(place, OwnData)}
        of_folder = next((place.signature for place in places if not isinstance(place, OwnData)), "")
        readings: dict[str, Reading] = {}
        for task in tasks:
            if task.id in signatures:
                readings |= self._readings("own", [task], signatures[task.id])
        readings |= self._readings(self.request.tier, [task for task in tasks if task.id not in signatures], of_folder)
        raise_faults(readings.values())
        self._read_tasks |= ids
        self._found |= readings
        for task in tasks:
            if task.id in readings and (task.id in signatures or self.request.tier != "mini"):
                message = other_sizes(task, readings[task.id].counts)
                for note in filter(None, (message, *readings[task.id].notes)):
                    self.tell(note)

    def _refuse_more_labels(self) -> None:
        """Raise :class:`UsageError` where more rows are to keep their answers than are trained on:
        the budget would be named by a number that no training had."""
        for cell in self.pending.run:
            limits, reading = Limits.of(cell.hyperparameters), self._found.get(cell.task)
            if limits.labels is None or reading is None or "train" not in reading.counts:
                continue
            rows = min(reading.counts["train"], limits.max_train or limits.labels)
            if limits.labels > rows:
                raise UsageError(f"--labels {limits.labels}: {cell.task} has {rows:,} rows to train on; give no more")

    def _readings(self, tier: Tier, tasks: Sequence[TaskEntry], signature: str) -> dict[str, Reading]:
        """The reading of each task in a tier; none where the nodes of a cluster have the data."""
        request = self.request
        if request.engine != "local" and not is_here(tier, self.data_dir):
            return {}
        preflight = Preflight(tier, self.data_dir, signature, self.store.folder / "work" / "readings.json")
        if request.dry_run:
            found = preflight.known(tasks)
            self._look_for_files(tier, [task for task in tasks if task.id not in found])
            return found
        return preflight.read(tasks, request.timeout, built_in=request.labels is not None)

    def _look_for_files(self, tier: Tier, tasks: Sequence[TaskEntry]) -> None:
        """Raise :class:`~harness.errors.DataError` for tasks whose files are not there, without
        reading their rows."""
        faults: dict[str, str] = {}
        if tier == "local" and self.data_dir is not None and tasks:
            faults = absent(tasks, self.data_dir)
        for task in tasks if tier == "own" else ():
            try:
                registry.load(task)(task).look()
            except DataError as error:
                faults[task.id] = str(error)
        if faults:
            raise DataError("\n".join(f"{id}: {fault}" for id, fault in faults.items()))

    def _tell_sizes(self) -> None:
        """Tell the estimate how many training rows the tasks have. A dry run reads those alone of
        which no record tells."""
        sizes, folder = self.estimate.examples, self.data_dir
        sizes.update({id: reading.counts.get("train", 0) for id, reading in self._found.items()})
        if self.request.dry_run and folder is not None and self.request.tier == "local" and is_here("local", folder):
            lacking = {cell.task for cell in self.pending.run if self.estimate.lacks_size(cell)}
            entries = registry.entries("tasks")
            sizes.update(training_sizes([entries[id] for id in sorted(lacking)], folder))

    def _skip_without_companions(self) -> None:
        """Move cells that are trained on further tasks whose files the data folder lacks from the
        pending ones to the skipped."""
        names = {name for cell in self.pending.run for name in cell.companions}
        entries = [entry for id, entry in registry.entries("tasks").items() if id in names]
        if self.request.tier != "local" or self.data_dir is None or not is_here("local", self.data_dir):
            return
        missing = absent(entries, self.data_dir) if entries else {}
        items: list[Planned] = []
        for cell in self.pending.run:
            if name := next((name for name in cell.companions if name in missing), None):
                reason = (
                    f"is trained on {name} beside {cell.task}, and --data-dir {self.data_dir} lacks its files:"
                    f" {missing[name]} (-o {cell.architecture}.companions=... names other tasks, or none by [])"
                )
                items.append(Planned(cell, reason))
        self._skip_and_tell(items)

    def _skip_too_large(self) -> None:
        """Move cells that need more memory than there is from the pending ones to the skipped."""
        most = self.request.memory_limit
        if most is None and self.request.engine != "local":
            return  # nodes of a cluster have memory of their own
        self._skip_and_tell(too_large(self.pending.run, self._found, most))

    def _drop_other_data(self, places: Sequence[DataFolder]) -> None:
        """Move cells whose records, or what they started from, were made with other data files back
        to the pending ones."""
        for record in [each for each in self.pending.finished if each.status == "ok"]:
            try:
                differing = [each for place in places if place.holds(record) for each in place.differing(record)]
            except DataError as error:
                self.tell(f"{record.cell.words} is finished, but its data cannot be compared: {error}")
                continue
            changed = self._ancestors.changed(record.lineage or ())
            if differing or changed:
                parts = " and ".join(differing or changed)
                self._because[record.key] = f"its {parts} data changed" if differing else f"the data of {parts} changed"
                self._run_again(record)

    def _run_again(self, record: Record) -> None:
        """Move a finished cell back to the pending ones."""
        self._aside[record.key] = record
        self.pending.finished.remove(record)
        self.pending.run.append(record.cell)

    def _run_unkept(self) -> None:
        """Move finished cells whose model is not kept back to the pending ones: it cannot be had
        otherwise."""
        for record in self.unkept(self.pending.finished):
            self._was_unkept.add(record.key)
            self._run_again(record)

    def _set_aside(self) -> None:
        """Rename the records of the cells that run again; those of cells that cannot run stand."""
        if self.request.changed:
            self._aside |= {record.key: record for record in self.pending.changed}
        cannot = {item.cell.key: item.reason for item in self.pending.skip}
        standing = [record for key, record in self._aside.items() if key in cannot]
        self.pending.skip[:] = [item for item in self.pending.skip if item.cell.key not in self._aside]
        self.pending.finished.extend(standing)
        again = {key: record for key, record in self._aside.items() if key not in cannot}
        for key, record in again.items():
            renamed = ""
            if not self.request.dry_run:
                renamed = self.store.set_aside(record).name
                if not self.store.path(record).exists():  # else another run has made both anew
                    # Children of a run that is cut here would start from it, unnoticed.
                    set_aside(self.store.folder, key)
            if why := self._because.get(key):
                note = f"; the old record was renamed to {renamed}" if renamed else ""
                self.tell(f"{record.cell.words} will be run again because {why}{note}")
        if unkept := self._was_unkept & again.keys():
            option = "refit" if self.request.refit else "keep"
            self.tell(f"{len(unkept)} finished without being kept run again (--{option}); the old records are *.old")
        told = [f"the record of {each.architecture} on {each.task} stands: {cannot[each.key]}" for each in standing]
        for message in dict.fromkeys(told):
            self.tell(message)

    def unkept(self, records: Sequence[Record]) -> list[Record]:
        """The records of cells that ended well and whose model should be kept and is not."""
        settings = self.settings
        kept = (r for r in records if r.status == "ok" and settings.keeps(r.cell))
        return [r for r in kept if not is_kept(self.store.folder, r.key, settings.refits(r.cell))]

    def _tell_of_other_code(self) -> None:
        """Say how many records other code made: of cells that run again, or of finished ones."""
        if self.request.changed:
            keys = {cell.key for cell in self.pending.run}
            then = "run again; the old records are renamed to *.old"
        else:
            keys = {record.key for record in self.pending.finished}
            then = "--changed runs them again"
        if others := [record for record in self.pending.changed if record.key in keys]:
            self.tell(f"{len(others)} made by other code; {then}")

    @property
    def settings(self) -> Settings:
        """The part of the request that the workers need besides their cells."""
        return Settings.of(self.request, self.store.folder, self.data_dir, self.needed)

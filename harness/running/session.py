"""One run of a grid from patterns to records: what ``archbench run`` does, as an object."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness import registry
from harness.errors import DataError, UsageError
from harness.records import Cell, Record, Store
from harness.registry import Entry
from harness.running import engines, grid, neighbours
from harness.running.changed_data import DataFolder
from harness.running.order import Estimate, in_shard, parse_shard

if TYPE_CHECKING:
    from harness.tracking import Tracker

ENGINES = tuple(module.name for module in pkgutil.iter_modules(engines.__path__) if module.name != "loop")
"""Names of the engines: the modules of :mod:`harness.running.engines` that run cells."""


@dataclass(frozen=True)
class Request:
    """The options of a run, as ``archbench run --help`` describes them.

    ``workers`` is None for as many cells at a time as the engine sees fit. ``command`` is what the
    records name as the command line that made them.
    """

    results: Path
    architectures: str = "*"
    tasks: str = "*"
    tier: str = "mini"
    data_dir: Path | None = None
    protocol: str = "smoke"
    seeds: Sequence[int] = (0,)
    workers: int | None = None
    threads: int = 1
    engine: str = "local"
    devices: int = 1
    strategy: str = "auto"
    precision: str = "32"
    speed_alone: bool = False
    timeout: float | None = None
    memory_limit: int | None = None
    max_train: int | None = None
    max_epochs: int | None = None
    vectors: Path | None = None
    overrides: Sequence[str] = ()
    mlflow: str | None = None
    retry_failed: bool = False
    shard: str | None = None
    dry_run: bool = False
    command: str = ""


class Session:
    """A planned run: building one reads the registry and the records at hand and computes nothing.

    ``tell`` is called with every message for the user that is no error. Raises
    :class:`~harness.errors.UsageError` for options that cannot be carried out.
    """

    def __init__(self, request: Request, tell: Callable[[str], None]):
        self.request, self.tell = request, tell
        part = parse_shard(request.shard) if request.shard else None
        self.store = Store(request.results.resolve())
        if not request.dry_run:
            self.store.check_writable()
            self.store.sweep()
        planned = self._planned()
        if part:
            planned = [item for item in planned if in_shard(item.cell, part)]
        self.pending = grid.pending(planned, self.store, retry_failed=request.retry_failed)
        if request.tier == "local" and request.data_dir is not None:
            self._drop_other_data(request.data_dir)
        for error in self.pending.damaged:
            tell(f"damaged record, its cell is left out until you move the file away: {error}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged records of this grid were just named
            self.estimate = Estimate(self.store.all())
        self.pending.run[:] = self.estimate.longest_first(self.pending.run)

    def _planned(self) -> list[grid.Planned]:
        """Every cell of the grid; what cannot be imported is told and left out."""
        request = self.request
        architectures, errors = grid.loadable(registry.match("architectures", request.architectures))
        tasks, more = grid.loadable(registry.match("tasks", request.tasks))
        unread = {**registry.unlisted("architectures"), **registry.unlisted("tasks")}
        self.broken = [*errors, *more, *unread.values()]
        for error in self.broken:
            self.tell(f"left out: {error}")
        _refuse_strategy(architectures, request)
        return grid.plan(
            architectures,
            tasks,
            tier=request.tier,
            protocol=request.protocol,
            seeds=request.seeds,
            overrides=request.overrides,
            max_train=request.max_train,
            max_epochs=request.max_epochs,
            vectors=request.vectors,
            precision=request.precision,
            devices=request.devices,
        )

    def _drop_other_data(self, folder: Path) -> None:
        """Run again what was made with other data files than those at hand; the old records are
        kept under another name."""
        data = DataFolder(folder, self.store.folder / "work" / "fingerprints.json")
        for record in [record for record in self.pending.finished if record.status == "ok"]:
            name = f"{record.architecture} on {record.task}, seed {record.seed}"
            try:
                differing = data.differing(record)
            except DataError as error:
                self.tell(f"{name} is finished, but its data cannot be compared: {error}")
                continue
            if differing:
                kept = "" if self.request.dry_run else f"; the old record is {self.store.set_aside(record).name}"
                self.tell(f"{name} runs again: its {' and '.join(differing)} data were other ones{kept}")
                self.pending.finished.remove(record)
                self.pending.run.append(record.cell)

    @property
    def settings(self) -> grid.Settings:
        """What the cells' workers need besides their cells."""
        request = self.request
        return grid.Settings(
            results=self.store.folder,
            data_dir=request.data_dir,
            plugins=tuple(registry.plugin_files()),
            threads=request.threads,
            timeout=request.timeout,
            memory_limit_mib=request.memory_limit,
            work=self.store.folder / "work",
            command=request.command,
            strategy=request.strategy,
            vectors=request.vectors.resolve() if request.vectors else None,
        )

    @property
    def slots(self) -> int:
        """Cells at a time: as many as were asked for or the engine sees fit, and no more than
        there are."""
        request, cells = self.request, self.pending.run
        if not cells:
            return 1
        engine = importlib.import_module(f"harness.running.engines.{request.engine}")
        return min(request.workers or engine.default_workers(request.threads, cells[0].devices), len(cells))

    def run(
        self,
        started: Callable[[Cell], None] = lambda cell: None,
        ended: Callable[[Record], None] = lambda record: None,
    ) -> list[Record]:
        """Run what is pending and return its records in the order they ended.

        Records of cells that do not fit are written first. ``started`` and ``ended`` are called
        for each cell that runs.
        """
        request, settings = self.request, self.settings
        with neighbours.run_of_cells(alone=request.speed_alone):
            for item in self.pending.skip:
                self.store.write(grid.skipped(item, settings.command))
            if not self.pending.run:
                return []
            engine = importlib.import_module(f"harness.running.engines.{request.engine}")
            return engine.run(
                self.pending.run,
                settings,
                workers=self.slots,
                started=started,
                ended=ended,
                afterwards=_Mirror(request.mlflow, self.store, self.tell),
            )

    def complete(self, records: Sequence[Record]) -> bool:
        """Whether every cell of the grid ended ok or skipped, ``records`` being what
        :meth:`run` returned."""
        stopped = len(records) < len(self.pending.run)
        ended = [*self.pending.finished, *records]
        return not (
            self.broken or self.pending.damaged or stopped or any(r.status not in ("ok", "skipped") for r in ended)
        )


def _refuse_strategy(architectures: Sequence[Entry], request: Request) -> None:
    """Raise :class:`~harness.errors.UsageError` for an architecture whose objective would be wrong
    under the strategy of several devices."""
    if request.devices == 1:
        return
    strategy = "ddp" if request.strategy == "auto" else request.strategy
    for entry in architectures:
        objective = getattr(registry.load(entry), "trained_by", None)
        if objective is not None and strategy not in objective.strategies:
            raise UsageError(
                f"--strategy {strategy}: {entry.id} is trained by {objective.__name__}, which knows"
                f" {', '.join(objective.strategies) or 'one device only'}"
            )


class _Mirror:
    """Sends records to MLflow until that fails once: the records are safe, and ``archbench sync``
    repairs the mirror."""

    def __init__(self, uri: str | None, store: Store, tell: Callable[[str], None]):
        self.uri, self.store, self.tell = uri, store, tell
        self.tracker: Tracker | None = None

    def __call__(self, record: Record) -> None:
        if self.uri == "none":
            return
        from harness.tracking import Tracker, TrackingError, default_uri

        try:
            self.tracker = self.tracker or Tracker(self.uri or default_uri(self.store.folder))
            predictions = self.store.folder / record.predictions["path"] if record.predictions else None
            log = grid.log_file(self.store.folder / "work", record)
            self.tracker.log(record, predictions, log if log.is_file() else None)
        except TrackingError as error:
            self.uri = "none"
            self.tell(str(error))

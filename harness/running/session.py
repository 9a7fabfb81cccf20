"""One run of a grid, from patterns to records: the work of ``archbench run``, usable from Python.

::

    session = Session(Request(Path("results"), architectures="dan", tasks="sst2"))
    records = session.run()
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from harness.records import Cell, Record
from harness.running import neighbours
from harness.running.pending import FAILED, skipped
from harness.running.planning import Planning
from harness.saved_models.storage import is_refitted, why_not_refitted
from harness.tracking import Mirror


class Session(Planning):
    """A planned run that can be carried out."""

    @functools.cached_property
    def slots(self) -> int:
        """Number of cells that run at a time: as requested or as the engine chooses, and no more
        than there are."""
        request, cells = self.request, self.pending.run
        if not cells:
            return 1
        slots = 1 if request.speed_alone else request.workers
        slots = slots or self._engine.default_workers(request.threads, cells[0].devices, request.memory_limit)
        return min(slots, len(cells))

    @property
    def _engine(self) -> Any:
        return importlib.import_module(f"harness.running.engines.{self.request.engine}")

    def run(
        self,
        started: Callable[[Cell], None] = lambda cell: None,
        ended: Callable[[Record], None] = lambda record: None,
    ) -> list[Record]:
        """Run the pending cells and return their records in the order they ended.

        Records of cells that do not fit are written first. ``started`` and ``ended`` are called
        for each cell that runs. A dry run runs nothing.
        """
        request, settings = self.request, self.settings
        if request.dry_run:
            return []
        if request.speed_alone:
            self._warn_of_shared_speeds()
        with (
            neighbours.run_of_cells(alone=request.speed_alone),
            Mirror(request.mlflow, self.store, self.tell) as mirror,
        ):
            for item in self.pending.skip:
                found = self.store.find(item.cell)
                if found is None or found.status not in ("ok", *FAILED):  # another run may have had the room
                    record = skipped(item, settings.command)
                    if found is not None and found.error == record.error:  # it says so already
                        continue
                    self.store.write(record)
                    if not item.unfit:  # of these a grid has thousands, and MLflow takes some ten a second
                        mirror(record)
            if not self.pending.run:
                return []
            records: list[Record] = self._engine.run(
                self.pending.run, settings, workers=self.slots, started=started, ended=ended, afterwards=mirror
            )
            return records

    def complete(self, records: Sequence[Record]) -> bool:
        """True when every cell of the grid, and each that they start from, ended ok or skipped;
        ``records`` are those that :meth:`run` returned."""
        stopped = len(records) < len(self.pending.run)
        failed = any(record.status not in ("ok", "skipped") for record in [*self.pending.finished, *records])
        return not (self.broken or self.pending.damaged or stopped or failed or self.unkept(records))

    def tell_of_models(self, records: Sequence[Record]) -> None:
        """Tell which models were not kept, and which were trained once more or not, otherwise than
        was asked for; ``records`` are those that :meth:`run` returned."""
        for record in self.unkept(records):
            self.tell_error(f"not kept: {record.cell.words}; the end of {self.settings.log(record.cell)} says why")
        for record in (*self.pending.finished, *records):
            if record.status != "ok":
                continue
            again = f"`archbench models --remove {record.key}`, and the same command trains"
            if not self.settings.refits(record.cell):
                if self.settings.keeps(record.cell) and is_refitted(self.settings.results, record.key):
                    self.tell(
                        f"kept as an earlier --refit left it: {record.cell.words} (to have the scored one: {again} it)"
                    )
            elif why := why_not_refitted(self.settings.results, record.key):
                self.tell(
                    f"not refitted: {record.cell.words}: {why.splitlines()[0]} (to try again: {again} both again)"
                )

    def _warn_of_shared_speeds(self) -> None:
        shared = [record for record in self.pending.finished if record.speed and record.speed.get("beside") != 0]
        if shared:
            self.tell(
                f"{len(shared)} finished cells may have been timed next to other work and keep those speeds; "
                "use a new --results folder to time them again"
            )

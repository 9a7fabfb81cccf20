"""Settings of the process that runs a cell, beside the cell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness import registry
from harness.records import Cell
from harness.records.store import log_file
from harness.running.request import Request

BY_TIMEOUT = "(--timeout)"
"""The end of a message that a limit of seconds on the clock was passed: who sets it by another
option puts this one in its place."""


@dataclass(frozen=True)
class Settings:
    """Settings of a worker besides its cell: where things lie on this machine, and its limits. No
    part of a cell's identity.

    ``work`` holds checkpoints, logs and cached views; ``vectors`` is the file whose name and digest
    the cell's ``hyperparameters["vectors"]`` states. With ``keep``, what a cell learnt stays in
    ``results`` (:mod:`harness.saved_models`); what others start from does in any case, which are
    the cells whose keys are ``needed``. With ``refit`` a model stays that was trained once more on
    all rows. A training that is clearly behind ``rival``, a dev score, ends early
    (:mod:`harness.running.behind`). ``timeout`` is in seconds of wall clock, ``cpu_limit`` in
    seconds of processor time, and ``memory_limit_mib`` is resident memory, both of the cell's
    processes together.
    """

    results: Path
    data_dir: Path | None
    plugins: tuple[Path, ...]
    threads: int
    timeout: float | None
    memory_limit_mib: int | None
    work: Path
    command: str = ""
    strategy: str = "auto"
    cpu_limit: float | None = None
    vectors: Path | None = None
    keep: bool = False
    refit: bool = False
    rival: float | None = None
    needed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, request: Request, results: Path, data_dir: Path | None, needed: frozenset[str]) -> Settings:
        """Those of a run's request."""
        return cls(
            results=results,
            data_dir=data_dir,
            plugins=tuple(registry.plugin_files()),
            threads=request.threads,
            timeout=request.timeout,
            cpu_limit=request.cpu_limit,
            memory_limit_mib=request.memory_limit,
            work=results / "work",
            command=request.command,
            strategy=request.strategy,
            vectors=request.vectors.resolve() if request.vectors else None,
            keep=request.keep,
            refit=request.refit,
            rival=request.rival,
            needed=needed,
        )

    def time_limits(self, clocks: tuple[float, float]) -> list[tuple[float, float, str]]:
        """The seconds by each of the two :func:`~harness.running.usage.clocks` that has a limit,
        with this and the words for it."""
        named = ((self.timeout, f"s {BY_TIMEOUT}"), (self.cpu_limit, "s of processor time (--cpu-limit)"))
        return [
            (seconds, limit, f"{limit:g} {words}")
            for seconds, (limit, words) in zip(clocks, named, strict=True)
            if limit is not None
        ]

    def keeps(self, cell: Cell) -> bool:
        """True if what a cell learnt is kept."""
        return self.keep or self.refit or cell.key in self.needed

    def refits(self, cell: Cell) -> bool:
        """True if what is kept of a cell is trained once more. What others start from is not: they
        would learn from the rows that score them."""
        return self.refit and cell.key not in self.needed

    def log(self, cell: Cell) -> Path:
        """The log file of a cell: whatever its processes print."""
        return log_file(self.work, cell)

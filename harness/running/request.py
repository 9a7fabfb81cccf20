"""The options of a run, and those that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import registry
from harness.errors import UsageError, check_choice
from harness.records import Cell
from harness.running.pending import Planned
from harness.settings import FULL
from harness.task import TIERS, Tier
from harness.training.protocols import PROTOCOLS

ENGINES = ("local", "ray")
"""Names of the engines, which are modules of :mod:`harness.running.engines`."""

PRECISIONS = ("32", "64", "bf16-mixed", "bf16-true")
"""Lightning's precisions in which a cell may train."""


STRATEGIES = ("auto", "ddp", "fsdp")
"""Lightning's strategies by which a cell trains on several devices, a process on each (auto: ddp).
Not those that fork: a GPU and thread pools do not survive it. Nor deepspeed: another library, for
what fsdp does."""

FSDP_PRECISIONS = ("32", "bf16-mixed", "bf16-true")
"""The precisions in which Lightning shards a model: it knows no float64 then."""

LAST_SEED = (1 << 32) - 1
"""The largest that NumPy's generator takes, which Lightning seeds too."""


@dataclass(frozen=True)
class Request:
    """The options of a run; ``archbench run --help`` describes each of them.

    ``workers`` is None for as many cells at a time as the engine chooses, and ``mlflow`` is None
    for a database in the results folder. ``command`` is stored in the records as the command line
    that made them. ``homes`` is the only task of each architecture; None runs all on all.
    ``rival``, which no option gives, is the best dev score so far on the task: what is clearly
    behind it ends.
    """

    results: Path
    architectures: str = "*"
    tasks: str = "*"
    tier: Tier = "mini"
    data_dir: Path | None = None
    protocol: str = "smoke"
    budget: str = FULL
    seeds: Sequence[int] = (0,)
    workers: int | None = None
    threads: int = 1
    engine: str = "local"
    devices: int = 1
    strategy: str = "auto"
    precision: str = "32"
    speed_alone: bool = False
    timeout: float | None = None
    cpu_limit: float | None = None
    memory_limit: int | None = None
    max_train: int | None = None
    max_epochs: int | None = None
    labels: int | None = None
    vectors: Path | None = None
    inputs: Sequence[str] = ()
    overrides: Sequence[str] = ()
    plugins: Sequence[Path] = ()
    mlflow: str | None = None
    retry_failed: bool = False
    changed: bool = False
    shard: str | None = None
    homes: Mapping[str, str] | None = None
    keep: bool = False
    refit: bool = False
    rival: float | None = None
    parents: Sequence[str] = ()
    dry_run: bool = False
    command: str = ""

    @property
    def _own_alone(self) -> bool:
        """True if all tasks are descriptions of the user's own data, which name their files."""
        return all(name.endswith(registry.DESCRIPTION) for name in registry.comma_separated(self.tasks))

    def check(self) -> None:
        """Raise :class:`UsageError` for options that are unknown or exclude each other."""
        check_choice("--tier", self.tier, TIERS)
        check_choice("--protocol", self.protocol, tuple(PROTOCOLS))
        check_choice("--precision", self.precision, PRECISIONS)
        check_choice("--strategy", self.strategy, STRATEGIES)
        if self.strategy == "fsdp" and self.devices > 1:
            check_choice("--strategy fsdp --precision", self.precision, FSDP_PRECISIONS)
        check_choice("--engine", self.engine, ENGINES)
        if not self.seeds or not all(0 <= seed <= LAST_SEED for seed in self.seeds):
            given = ",".join(map(str, self.seeds)) or "none"
            raise UsageError(f"--seeds {given:.80}: expected one or more, from 0 to {LAST_SEED:,}")
        if self.tier == "local" and not self._own_alone:
            if self.data_dir is None:
                raise UsageError(
                    "--tier local needs --data-dir DIR (or ARCHBENCH_DATA): the folder that holds sst/, squad/, ..."
                )
            if not self.data_dir.is_dir():
                raise UsageError(f"--data-dir {self.data_dir}: no such folder")
        if self.speed_alone and self.engine != "local":
            raise UsageError(
                f"--speed-alone with --engine {self.engine}: only runs on this machine can be kept apart; "
                "use --engine local"
            )
        if self.speed_alone and self.workers not in (None, 1):
            raise UsageError(f"--speed-alone with --workers {self.workers}: it measures one cell at a time")


def _names(cell: Cell) -> tuple[str, str]:
    """Names of a cell's architecture and of the one that it wraps, if it is a regime."""
    return cell.architecture, str(cell.hyperparameters.get("wraps"))


def refuse_strategy(planned: Sequence[Planned], request: Request) -> None:
    """Raise :class:`~harness.errors.UsageError` for an architecture whose objective, or that of the
    one that it wraps, would be wrong under the strategy of several devices."""
    if request.devices == 1:
        return
    strategy = "ddp" if request.strategy == "auto" else request.strategy
    entries = registry.entries("architectures")
    for id, wraps in sorted({_names(cell) for cell, reason, _ in planned if reason is None}):
        wrapped = [entries[wraps]] if wraps in entries else []
        for entry in (entries[id], *wrapped):
            objective = getattr(registry.load(entry), "trained_by", None)
            if objective is not None and strategy not in objective.strategies:
                name = id if entry.id == id else f"{id} wraps {entry.id}, which"
                raise UsageError(
                    f"--strategy {strategy}: {name} is trained by {objective.__name__}, which knows"
                    f" {', '.join(objective.strategies) or 'one device only'}"
                )

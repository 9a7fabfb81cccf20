"""Facts of the source texts about every system they name, registered here or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import registry
from harness.errors import UsageError
from harness.leaderboard.published import read_rows, source_file
from harness.registry import ArchitectureEntry

COLUMNS = [
    "id",
    "name",
    "year",
    "paper",
    "source",
    "family",
    "kind",
    "wave",
    "defining_mechanism",
    "home",
    "home_reason",
]


@dataclass(frozen=True)
class CatalogueEntry:
    """One line of ``catalogue.csv``; ``year`` is None if missing.

    ``home`` is the task with the data set of the system's paper, or with the nearest one;
    ``home_reason`` says which of both, and why that one.
    """

    name: str
    year: int | None
    paper: str
    family: str
    mechanism: str
    home: str
    home_reason: str


def read_catalogue(results: Path) -> dict[str, CatalogueEntry]:
    """The catalogue by id, from the results folder or else from this package;
    :class:`~harness.errors.LeaderboardError` names other columns and malformed lines."""
    rows = read_rows(source_file(results, "catalogue.csv"), COLUMNS)
    return {row["id"]: _entry(row) for _, row in rows if row["id"]}


def _entry(row: Mapping[str, str]) -> CatalogueEntry:
    return CatalogueEntry(
        name=row["name"],
        year=int(row["year"]) if row["year"].isdecimal() else None,
        paper=row["paper"],
        family=row["family"],
        mechanism=row["defining_mechanism"],
        home=row["home"],
        home_reason=row["home_reason"],
    )


def system_of(entry: ArchitectureEntry, catalogue: Mapping[str, CatalogueEntry]) -> CatalogueEntry | None:
    """The line of an architecture of this package: that of its id, or of its file, or of the
    longest id that its own goes on from (``attn_seq2seq`` for ``attn_seq2seq_luong``). None for
    floors, references and plugins."""
    if not entry.shipped or entry.is_reference:
        return None
    parts = entry.id.split("_")
    begins = ["_".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]
    for name in (entry.id, entry.file.stem, *begins):
        if name in catalogue and catalogue[name].family == entry.family:
            return catalogue[name]
    return None


def homes(
    architectures: Iterable[ArchitectureEntry], tasks: Collection[str], results: Path
) -> tuple[dict[str, str], list[str]]:
    """The home of each architecture that has one among ``tasks``, by id, and a message for each
    reason why others have none."""
    catalogue = read_catalogue(results)
    found: dict[str, str] = {}
    without: dict[str, list[str]] = {}
    for entry in architectures:
        system = system_of(entry, catalogue)
        if system is None:
            without.setdefault("no home, since the catalogue does not know it", []).append(entry.id)
        elif system.home not in tasks:
            without.setdefault(f"its home {system.home} is not registered", []).append(entry.id)
        else:
            found[entry.id] = system.home
    return found, [f"{', '.join(ids)}: {reason}" for reason, ids in without.items()]


def chosen_homes(architectures: str, tasks: str, results: Path, tell: Callable[[str], object]) -> dict[str, str]:
    """The only task of each architecture that a pattern chooses. ``tell`` is called with a message
    for those without one. Raises :class:`~harness.errors.UsageError` where nothing is left."""
    found, reasons = homes(registry.match("architectures", architectures), registry.entries("tasks"), results)
    if not found:
        raise UsageError("\n  ".join(["--home: no chosen architecture has one", *reasons]))
    chosen = {entry.id for entry in registry.match("tasks", tasks)}
    if not chosen & set(found.values()):
        raise UsageError(f"--home with -t {tasks}: the homes are {', '.join(sorted(set(found.values())))}")
    for reason in reasons:
        tell(f"left out by --home: {reason}")
    return found

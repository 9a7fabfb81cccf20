"""The folders of archbench under their plain names, beside a user's files of the same names."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("harness", "architectures", "tasks")


def check() -> None:
    """Makes sure that importing one of :data:`NAMES` gives archbench's folder, here and in the
    processes of the cells.

    A module of a user that would be found first, such as a ``tasks.py`` beside the script, is
    hidden from now on, and named by a warning. Raises ``ImportError`` for one that has already been
    imported.
    """
    others = {name: place for name in NAMES if (place := _place(name)) and not _is_ours(name, place)}
    for name, place in others.items():
        if name in sys.modules:
            raise ImportError(
                f"{place} was imported as {name!r}, the name of a folder of archbench; rename it, or import archbench"
                " first, which hides it"
            )
    if others:
        sys.path.insert(0, str(ROOT))  # processes of cells take over this path
        warnings.warn(
            f"hidden by folders of archbench, which have the same names: {', '.join(map(str, others.values()))};"
            f" rename what you want to import",
            stacklevel=4,
        )


def _place(name: str) -> Path | None:
    """The file that is or would be imported; the folder where it has no ``__init__.py``."""
    spec = importlib.util.find_spec(name)
    found = spec and (spec.origin or next(iter(spec.submodule_search_locations or ()), None))
    return Path(found) if found else None


def _is_ours(name: str, place: Path) -> bool:
    return place.exists() and place.samefile(ROOT / name / "__init__.py")


check()

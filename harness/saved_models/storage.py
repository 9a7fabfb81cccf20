"""The kept models of a results folder: one folder each, named by the key of its cell."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from harness import registry
from harness.errors import ModelError, UsageError, did_you_mean
from harness.files import taking_the_place_of, write_whole
from harness.records import Cell
from harness.records.code_digest import architecture_of_cell
from harness.saved_models.folder import DESCRIPTION, Description, describe

MODELS = "models"
"""Folder of the kept models below a results folder."""

_ASKED = ("inputs", "tags")
"""Roles in which a parent is asked about each text, so that a kept child needs it too."""


def place(results: Path, key: str) -> Path:
    """The folder of the kept model of a key, which need not exist; git leaves out what is there."""
    ignored = results / MODELS / ".gitignore"
    if not ignored.exists():
        write_whole(ignored, b"*\n")
    return results / MODELS / key


def files_of(results: Path, key: str) -> dict[str, bytes]:
    """The files of the kept model of a key by name; none where it is not kept."""
    return {path.name: path.read_bytes() for path in (results / MODELS / key).glob("*")}


def write_files(results: Path, key: str, content: Mapping[str, bytes]) -> None:
    """Write :func:`files_of` a model as a whole or not at all; ``OSError`` where the disk
    refuses."""
    with taking_the_place_of(place(results, key)) as temporary:
        temporary.mkdir()
        for name, data in content.items():
            write_whole(temporary / name, data)


def ancestors(results: Path, cell: Cell) -> list[str]:
    """Keys of the kept models that a cell needs to start: its parents, and theirs."""
    found: dict[str, None] = {}
    waiting = [parent["key"] for parent in cell.parents.values()]
    while waiting:
        key = waiting.pop()
        if key not in found:
            found[key] = None
            with suppress(ModelError):  # loading it says why
                waiting += [each["key"] for each in parents_of(describe(results / MODELS / key)).values()]
    return list(found)


def parents_of(description: Description) -> dict[str, dict[str, str]]:
    """The cells that a kept model started from, by role, as :attr:`Cell.parents` has them."""
    return (description.origin.cell.get("hyperparameters") or {}).get("parents") or {}


def asked_parents_of(description: Description) -> dict[str, dict[str, str]]:
    """The :func:`parents_of` a kept model without which it cannot answer."""
    return {role: parent for role, parent in parents_of(description).items() if role in _ASKED}


def inputs_of(description: Description) -> dict[str, dict[str, Any]]:
    """The input sources of a kept model, as :attr:`Cell.inputs` has them."""
    return (description.origin.cell.get("hyperparameters") or {}).get("inputs") or {}


class Kept(NamedTuple):
    """A folder of a kept model: its bytes, and its description or what is wrong with it."""

    folder: Path
    size: int
    description: Description | None
    fault: str


def kept_models(results: Path) -> Iterator[Kept]:
    """The models that are kept below a results folder, by key; damaged ones too."""
    for folder in _folders(results):
        size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
        try:
            yield Kept(folder, size, describe(folder), "")
        except ModelError as error:
            yield Kept(folder, size, None, str(error))


def _folders(results: Path) -> list[Path]:
    models = results / MODELS
    found = models.iterdir() if models.is_dir() else ()
    return sorted(path for path in found if path.is_dir() and not path.name.startswith("."))


def is_kept(results: Path, key: str, refitted: bool = False) -> bool:
    """True if a model of that key is kept; of ``refitted`` ones, if it was trained once more or
    could not be: a run that tried again would only risk the score that is there."""
    if not (results / MODELS / key / DESCRIPTION).is_file():
        return False
    if not refitted:
        return True
    try:
        origin = describe(results / MODELS / key).origin
        return origin.refitted is not None or origin.not_refitted is not None
    except ModelError:  # a damaged one is no reason to train: loading it says what is wrong
        return True


def why_not_refitted(results: Path, key: str) -> str | None:
    """The reason why the kept model of a key was not trained once more though that was asked for;
    None for one that was, for another, and where none is kept."""
    with suppress(ModelError):
        return describe(results / MODELS / key).origin.not_refitted
    return None


def is_refitted(results: Path, key: str) -> bool:
    """True if the kept model of a key learnt from rows of test too, so that it is no parent."""
    with suppress(ModelError):
        return describe(results / MODELS / key).origin.refitted is not None
    return False


def of_other_code(description: Description) -> bool:
    """True if the code of a kept model's architecture is not that by which it learnt, as far as
    both are known: its answers may be others than those that were scored."""
    with suppress(TypeError):  # of no cell
        now, then = architecture_of_cell(Cell.from_dict(description.origin.cell)), description.origin.code
        return None not in (now, then) and now != then
    return False


def cell_of(results: Path, key: str) -> Cell | None:
    """The cell that left the kept model of a key; None for a damaged one and one of no cell."""
    try:
        cell = Cell.from_dict(describe(results / MODELS / key).origin.cell)
    except (ModelError, TypeError):
        return None
    return cell if cell.key == key else None


def set_aside(results: Path, key: str) -> None:
    """Rename the model of a key, if it is kept, so that it counts as not kept: to ``.KEY.old``, in
    the place of an earlier one."""
    folder, old = results / MODELS / key, results / MODELS / f".{key}.old"
    if folder.is_dir():
        shutil.rmtree(old, ignore_errors=True)
        with suppress(FileNotFoundError):  # another run was faster
            folder.rename(old)


def find(model: str, results: Path) -> Path:
    """The folder that a user names by its path, or by the beginning of its key below ``results``.

    :class:`~harness.errors.UsageError` where there is none, or more than one.
    """
    if os.path.isfile(Path(model) / DESCRIPTION):  # noqa: PTH113 - pathlib raises for a text in the place of a name
        return Path(model)
    keys = [folder.name for folder in _folders(results)]
    fitting = [key for key in keys if model and key.startswith(model)]
    if len(fitting) == 1:
        return results / MODELS / fitting[0]
    if fitting:
        raise UsageError(f"MODEL {model}: {len(fitting)} kept models begin so: {', '.join(fitting)}")
    if os.path.isdir(model):  # noqa: PTH112 - likewise
        raise UsageError(f"MODEL {model}: no kept model is in this folder: it has no {DESCRIPTION}")
    there = f"`archbench models --results {results}` lists {len(keys)}" if keys else "none is; `run --keep` keeps them"
    raise UsageError(
        f"MODEL {model:.80}: no such folder, and no such model is kept; {did_you_mean(model, keys, there)}"
    )


def remove(patterns: str, results: Path) -> list[Kept]:
    """Remove the kept models whose key fits one of the comma-separated shell wildcards, and return
    what they were; :class:`~harness.errors.UsageError`, before any is removed, for a pattern that
    fits none."""
    known = list(kept_models(results))
    chosen: dict[Path, Kept] = {}
    for pattern in registry.comma_separated(patterns):
        fitting = {kept.folder: kept for kept in known if fnmatchcase(kept.folder.name, pattern)}
        if not fitting:
            near = did_you_mean(pattern, [kept.folder.name for kept in known], f"{len(known)} are kept")
            raise UsageError(f"--remove {pattern}: no such kept model; {near}")
        chosen |= fitting
    for folder in chosen:
        folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
    return list(chosen.values())

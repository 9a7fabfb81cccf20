"""The folder of a kept model: a description, what its views learnt, and its weights.

``model.json`` describes it and names digests of the other files, ``state.json`` is JSON and
``weights.safetensors`` arrays. None of them can hold code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import ModelError
from harness.files import read_limited, taking_the_place_of, write_whole
from harness.user_data.description import Manner

if TYPE_CHECKING:
    from torch import Tensor

DESCRIPTION, STATE, WEIGHTS = "model.json", "state.json", "weights.safetensors"

LARGEST_STATE, LARGEST_WEIGHTS = 1 << 30, 1 << 36
"""Size limits in bytes of the vocabularies and of the weights of a model; larger files are
refused."""


class Part(BaseModel):
    """An architecture that a model is made of: its id, version and constructor's settings."""

    model_config = ConfigDict(extra="forbid")

    architecture: str
    version: int
    settings: dict[str, Any]


class Origin(BaseModel):
    """The cell that trained a model: its key and fields, digests of its splits, and that of its
    predictions of test; ``spent``, ``seconds`` and ``objective`` of its training, its ``lineage``
    and, where it started from others, all that these and itself saw (``sees``), as in its record.
    ``refitted`` is the number of rows of a second training, on which it stands: those of test are
    among them. ``not_refitted`` is the reason why a second training that was asked for came to
    nothing. ``code`` is the digest of its architecture's code. ``manners`` say how files of the
    user's own rows were read, by their endings."""

    model_config = ConfigDict(extra="forbid")

    key: str
    cell: dict[str, Any]
    data: dict[str, str]
    predictions: str | None
    spent: dict[str, Any] = {}
    seconds: float | None = None
    objective: str | None = None
    lineage: list[dict[str, Any]] = []
    sees: list[str] | None = None
    refitted: int | None = None
    not_refitted: str | None = None
    code: str | None = None
    manners: dict[str, Manner] = {}


class Description(BaseModel):
    """A kept model without its weights.

    ``type`` is the task's. ``inputs`` are the columns that an answer needs, each with its form
    (:data:`harness.rows.FORMS`); ``classes`` are there where answers are some of them. ``part`` is
    the architecture that answers, ``regime`` the one that trained it where that is another.
    ``column`` and ``view`` are what it reads and how; ``dims`` is the width of word vectors. A
    ``transductive`` system has no state: it cannot answer new texts. ``files`` are digests.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    archbench: str | None
    origin: Origin
    type: str
    classes: list[str] | None = None
    inputs: dict[str, str]
    part: Part
    regime: Part | None = None
    column: str | None = None
    view: dict[str, Any] | None = None
    dims: int | None = None
    training: dict[str, Any] | None = None
    transductive: bool = False
    files: dict[str, str] = {}


def write(folder: Path, description: Description, state: Any, arrays: Mapping[str, Tensor]) -> None:
    """Write a kept model in the place of what is in ``folder``, as a whole or not at all.

    ``OSError`` where the disk refuses; ``TypeError`` or ``ValueError`` for a state that JSON, or
    arrays that the format, cannot hold.
    """
    from safetensors.torch import save  # with torch, which a listing does without

    contents = {STATE: json.dumps(state, allow_nan=False).encode(), WEIGHTS: save(dict(arrays))}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    described = description.model_copy(update={"files": digests}).model_dump()
    described["digest"] = _digest(described)
    contents[DESCRIPTION] = json.dumps(described, indent=1, allow_nan=False).encode()
    with taking_the_place_of(folder) as temporary:
        temporary.mkdir()
        for name, content in contents.items():
            write_whole(temporary / name, content)


def describe(folder: Path) -> Description:
    """The description in a folder; :class:`ModelError` where it is missing, damaged or foreign."""
    file = folder / DESCRIPTION
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such folder; a kept model is one with {DESCRIPTION}, {STATE} and {WEIGHTS}")
    try:
        found = json.loads(read_limited(file))
        if not isinstance(found, dict):
            raise ValueError(f"a {type(found).__name__}, expected an object")
        if found.get("format") != 1:
            raise ValueError(f"format {found.get('format')!r:.40}, expected 1")
        digest = found.pop("digest", None)
        if digest != _digest(found):
            raise ValueError("it is not as it was written: its digest is another")
        return Description(**found)
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror or error}; a kept model has such a file") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ModelError(f"{file}: no description of a kept model: {where}: {first['msg']}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelError(f"{file}: no description of a kept model: {str(error)[:200]}") from error


def read(folder: Path, description: Description) -> tuple[Any, dict[str, Tensor]]:
    """State and arrays of a described model; :class:`ModelError` names the file that is missing,
    cut off or another than the one described."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    state = _content(folder / STATE, LARGEST_STATE, description)
    weights = _content(folder / WEIGHTS, LARGEST_WEIGHTS, description)
    try:
        return json.loads(state), load(weights)
    except (ValueError, SafetensorError, RecursionError, TypeError, KeyError) as error:
        raise ModelError(f"{folder}: not the files of a kept model: {str(error)[:200]}") from error


def _content(file: Path, most: int, description: Description) -> bytes:
    try:
        content = read_limited(file, most)
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror or error}; {DESCRIPTION} beside it names it") from error
    found, wanted = hashlib.sha256(content).hexdigest(), description.files.get(file.name)
    if found != wanted:
        raise ModelError(
            f"{file}: cut off, changed or of another model: its SHA-256 is {found}, {DESCRIPTION} beside it says"
            f" {wanted}"
        )
    return content


def _digest(description: dict[str, Any]) -> str:
    text = json.dumps(description, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()

"""Kept models as parents of a cell: loaded by role, with what others take from them."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from harness.errors import ModelError
from harness.kinds import Architecture
from harness.records import Cell
from harness.records.blocks import Ancestor
from harness.records.code_digest import code_of_cell
from harness.records.registered import seen
from harness.saved_models import folder as files
from harness.saved_models.base import KeptModel
from harness.task import Row
from harness.views.pieces import Pieces
from harness.views.words import Vocabulary

NO_ARRAYS = hashlib.sha256(save({})).hexdigest()
"""Digest of the weights' file of every system that keeps none."""


class Parents:
    """The loaded parents of a cell by role; :class:`~harness.errors.ModelError` names one that is
    missing, damaged, foreign, or not what a role needs."""

    def __init__(self, cells: Mapping[str, Mapping[str, str]], folder: Path, load: Callable[[Path], KeptModel]):
        self.cells = cells
        self.models = {role: load(folder / parent["key"]) for role, parent in cells.items()}
        for role, model in self.models.items():
            if model.description.origin.key != cells[role]["key"]:
                place = folder / cells[role]["key"]
                raise ModelError(f"{place}: the model of another cell, {model.description.origin.key}")
            if model.description.origin.refitted is not None:
                raise ModelError(
                    f"{folder / cells[role]['key']}: trained on rows of test too (--refit), by which its children would"
                    " be scored; remove it, and it is trained as a parent"
                )

    def inherited_view(self, cls: type[Architecture], view: Any) -> Any:
        """A view with what the parents give to it, before it is fitted: above all, pieces."""
        for role, model in self.models.items():
            with _Named(self.cells[role], role):
                view = cls.inherited_view(view, role, model)
                if role == "tokens":
                    view.pieces = Pieces(tokenizer_of(model))
        return view

    def give(self, child: Any, rows: Sequence[Row], view: Any = None) -> None:
        """Let an architecture inherit, in each role that it takes."""
        for role, model in self.models.items():
            if role in child.takes:
                with _Named(self.cells[role], role):
                    if role == "weights":
                        _require_vocabulary(model, view)
                    child.inherit(role, model, rows)

    def vectors(self, vocabulary: Vocabulary) -> tuple[Tensor, int] | None:
        """Vectors (words, dims) of a vocabulary from the parent in the role ``vectors``, and the
        number of its words that the parent knew; the others are uniform in +-0.25. None without
        such a parent."""
        if "vectors" not in self.models:
            return None
        with _Named(self.cells["vectors"], "vectors"):
            return _aligned(word_vectors(self.models["vectors"]), vocabulary)

    def require_unchanged(self, child: files.Description) -> None:
        """Raise :class:`~harness.errors.ModelError` for a parent that was trained anew after a kept
        child had learnt from it: its key is the same, and what it says is other."""
        learnt_from = {(each["key"], each["role"]): each["artefact"] for each in child.origin.lineage}
        for role, model in self.models.items():
            key, found = self.cells[role]["key"], _artefact(model.description)
            if found != learnt_from.get((key, role), found):
                raise ModelError(
                    f"{child.origin.key}: its parent {key} in the role {role} was trained anew since it learnt from"
                    " it; train it again with `archbench run --keep`"
                )

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """By role, a digest of what comes from the parent: its files, and the code by which it
        answers. Its key stays as it is when it is trained anew."""
        return {role: _digest(model.description) for role, model in self.models.items()}

    @property
    def ancestors(self) -> list[Ancestor]:
        """All cells that the training starts from, the oldest first, each once in a role."""
        found: dict[tuple[str, str], Any] = {}
        for role, model in self.models.items():
            described = model.description
            for ancestor in [*described.origin.lineage, _ancestor(role, described)]:
                found.setdefault((ancestor["key"], ancestor["role"]), ancestor)
        return list(found.values())

    @property
    def sees(self) -> set[str]:
        """Data that the parents' trainings used beside their labelled examples: that of what they
        wrap, their companions, parents of their own, and given word vectors."""
        found: set[str] = set()
        for model in self.models.values():
            origin = model.description.origin
            found.update((seen(Cell.from_dict(origin.cell)) if origin.sees is None else origin.sees) or ())
            if vectors := (origin.cell.get("hyperparameters") or {}).get("vectors"):
                found.add(f"word vectors {vectors['file']} {vectors['sha256'][:8]}")
        return found

    @property
    def sources(self) -> dict[str, Any]:
        """Fields of a record: representations and tokens that come from parents."""
        given = {
            role: {
                "name": parent["architecture"],
                "key": parent["key"],
                "artefact": _artefact(self.models[role].description),
            }
            for role, parent in self.cells.items()
        }
        fields: dict[str, Any] = {}
        if inputs := [given[role] for role in ("inputs", "tags") if role in given]:
            fields["inputs"] = inputs
        if "tokens" in given:
            fields["tokens"] = given["tokens"]
        return fields


def copy_weights(parent: KeptModel, part: nn.Module, name: str = "encoder") -> None:
    """Copy the weights of the part of a kept model of that name; the names and sizes must be those
    of ``part``.

    :class:`~harness.errors.ModelError` names the first weights that differ.
    """
    if parent.model is None:
        raise ModelError(f"{parent.description.part.architecture} has no weights: it is not trained by gradients")
    found = parent.model.get_submodule(name).state_dict()
    require_same(name, part.state_dict(), found)
    part.load_state_dict(found)


def class_probabilities(parent: KeptModel, rows: Sequence[Row], classes: Sequence[str] | None = None) -> Tensor:
    """Probabilities (rows, classes) of the classes in their order, from a kept model that gives
    some; :class:`~harness.errors.ModelError` for another, and, where ``classes`` are told, for a
    model of others."""
    answers = parent.answers(rows)
    if not all("probabilities" in answer for answer in answers):
        raise ModelError(f"{parent.description.part.architecture} gives no probabilities of classes")
    known = sorted({name for answer in answers for name in answer["probabilities"]})
    if classes is not None and known != sorted(classes):
        found, wanted = (", ".join(names[:10]) for names in (known, sorted(classes)))
        raise ModelError(f"{parent.description.part.architecture} knows the classes {found}; here are {wanted}")
    return torch.tensor([[answer["probabilities"][name] for name in known] for answer in answers])


def word_vectors(parent: KeptModel) -> Mapping[str, np.ndarray]:
    """The vector of each word that a kept model knows; :class:`~harness.errors.ModelError` for one
    without any."""
    vectors = parent.word_vectors()
    if not vectors:
        raise ModelError(f"{parent.description.part.architecture} has no word vectors")
    return vectors


def tokenizer_of(parent: KeptModel) -> str:
    """The tokenizer of a kept model; :class:`~harness.errors.ModelError` for one without any."""
    tokenizer = parent.tokenizer()
    if tokenizer is None:
        raise ModelError(f"{parent.description.part.architecture} divides no words into pieces")
    return tokenizer


def require_same(file: Path | str, wanted: dict[str, Tensor], found: dict[str, Tensor]) -> None:
    """Raise :class:`ModelError` for weights of other names or sizes."""
    for name in (*wanted, *found):
        sizes = [list(weights[name].shape) if name in weights else None for weights in (wanted, found)]
        if sizes[0] != sizes[1]:
            here, there = ("no such weights" if size is None else f"size {size}" for size in sizes)
            raise ModelError(f"{file}: {name} has {there} in the file and {here} by its vocabulary and settings")


class _Named:
    """Tells of an error in which role of which parent it came up."""

    def __init__(self, parent: Mapping[str, str], role: str):
        self.where = f"parent {parent['architecture']} on {parent['task']} ({parent['key']}) in the role {role}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            told = "" if isinstance(error, ModelError) else f"{type(error).__name__}: "
            raise ModelError(f"{self.where}: {told}{str(error)[:500]}") from error


def _require_vocabulary(parent: KeptModel, view: Any) -> None:
    """Raise :class:`ModelError` for weights that number other units than the view of the child:
    they would be those of other words."""
    if parent.view is None or view is None or view.embeds or parent.view.embeds:
        return
    if (parent.view.width, parent.view.state()) != (view.width, view.state()):
        raise ModelError(
            f"its {type(parent.view).__name__} has {parent.view.width} entries of another vocabulary,"
            f" and that of the child {view.width}"
        )


def _aligned(vectors: Mapping[str, np.ndarray], vocabulary: Vocabulary) -> tuple[Tensor, int]:
    dims = len(next(iter(vectors.values())))
    table = torch.empty(len(vocabulary), dims).uniform_(-0.25, 0.25)
    known = 0
    for place, word in enumerate(vocabulary.words, start=2):
        if word in vectors:
            table[place] = torch.as_tensor(vectors[word])
            known += 1
    table[0] = 0
    if not known:
        raise ModelError(f"it has no vector of any of the {len(vocabulary.words)} words here")
    return table, known


def _digest(described: files.Description) -> str:
    code = code_of_cell(Cell.from_dict(described.origin.cell))
    return hashlib.sha256(json.dumps([code, described.files], sort_keys=True).encode()).hexdigest()


def _artefact(described: files.Description) -> str:
    """Digest of the file in which is what a model learnt: that of its weights, if it has any."""
    weights = described.files[files.WEIGHTS]
    return described.files[files.STATE] if weights == NO_ARRAYS else weights


def _ancestor(role: str, described: files.Description) -> dict[str, Any]:
    origin = described.origin
    found = {
        "key": origin.key,
        "role": role,
        "architecture": origin.cell["architecture"],
        "task": origin.cell["task"],
        "artefact": _artefact(described),
        "corpus": origin.data,
        **origin.spent,
    }
    told = {"objective": origin.objective, "seconds": origin.seconds}
    return found | {name: value for name, value in told.items() if value is not None}

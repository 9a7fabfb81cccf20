"""A task's data as a model's batches: views and targets fitted on train, every split encoded once
into flat arrays.

The test split is a method, not an attribute: only the scoring step calls it.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from harness.data import encodings
from harness.data.loaded_rows import chosen, distinct, listed_rows, training_rows, without_answers
from harness.errors import DataError
from harness.files import taking_the_place_of
from harness.problems import problem
from harness.problems.base import Batch, NoTarget, Target
from harness.ragged import Columns, Ragged, take
from harness.settings import Limits
from harness.task import SUPPORTING_FACTS, DataName, Row, Task, Tier, fingerprint
from harness.task import Split as SplitName
from harness.views.base import View

if TYPE_CHECKING:
    import datasets


class Member(Protocol):
    """A further task as the corpus of an architecture that is trained on it asks for it
    (:class:`harness.data.companions.Companion`)."""

    task: Task
    identity: str

    def texts(self, view: View) -> Iterator[Any]:
        """The texts to which a view is fitted."""
        ...

    def split(self, view: View) -> Split:
        """The training rows as a fitted view reads them."""
        ...


@dataclass
class Split:
    """One encoded split."""

    rows: datasets.Dataset
    view: View
    target: Target
    inputs: dict[str, Columns]
    targets: Columns

    def __len__(self) -> int:
        return len(self.rows)

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """Units of each row, all fields together."""
        return np.sum([self.view.lengths(columns) for columns in self.inputs.values()], axis=0)

    @functools.cached_property
    def padded_lengths(self) -> np.ndarray:
        """Lengths that rows of a batch must share to need little padding: units (rows,), or (rows,
        2) of pairs not read as one text."""
        if self.view.joins or len(self.inputs) == 1:
            return self.lengths
        return np.stack([self.view.lengths(columns) for columns in self.inputs.values()], axis=1)

    @property
    def groups(self) -> np.ndarray | None:
        """Question number per row, where rows belong to questions."""
        return self.targets.get("group")

    def some(self, most: int, seed: int, stratum: str | None = None) -> Split:
        """At most so many of the rows, chosen as :func:`chosen` does."""
        return self if most >= len(self) else self.of(chosen(self.rows, most, seed, stratum))

    def of(self, rows: np.ndarray) -> Split:
        """The split of these rows alone."""
        inputs = {field: _taken(columns, rows) for field, columns in self.inputs.items()}
        return Split(self.rows.select(rows), self.view, self.target, inputs, _taken(self.targets, rows))

    def cut(self, longest: int) -> Split:
        """The split in stretches of at most so many units, which are its rows then."""
        view: Any = self.view
        return Stretches(
            self.rows, view, self.target, {field: view.cut(c, longest) for field, c in self.inputs.items()}, {}
        )

    def packed(self) -> Split:
        """The split with its texts one behind another, in stretches as long as the view reads."""
        view: Any = self.view
        return Stretches(self.rows, view, self.target, {field: view.packed(c) for field, c in self.inputs.items()}, {})

    @property
    def share(self) -> float:
        """Part of a row of the data that one of its own rows is, on average."""
        return len(self.rows) / max(1, len(self))

    def collate(self, rows: np.ndarray) -> Batch:
        """The batch of these rows."""
        if self.view.joins and len(self.inputs) == 2:
            first, second = self.inputs.values()
            inputs = {
                "text": self.view.collate_pair(  # type: ignore[attr-defined]
                    first, second, rows, cut="second" if "passage" in self.inputs else "longer"
                )
            }
        else:
            inputs = {field: self.view.collate(columns, rows) for field, columns in self.inputs.items()}
        return Batch(inputs, self.target.collate(self.targets, rows), rows, int(self.lengths[rows].sum()))


class Stretches(Split):
    """A split whose rows are stretches of those in ``rows``."""

    def __len__(self) -> int:
        return len(self.lengths)


def _taken(columns: Columns, rows: np.ndarray) -> Columns:
    return {name: take(c, rows) if isinstance(c, Ragged) else c[rows] for name, c in columns.items()}


class Corpus:
    """All splits of one task as one architecture reads them.

    ``gives`` is the architecture's output (:data:`harness.kinds.OUTPUTS`), by which the task's
    problem chooses fields and target. ``max_train`` keeps that many training rows (whole questions
    of a ranking task), chosen by a fixed shuffle, and ``labels`` of them their answers: the others
    are texts alone, of the split ``unlabelled``, and the target knows nothing of them, nor does the
    view unless the objective asks for them (``streams``).
    ``cache`` is a folder for encoded splits, shared by all architectures that read the same view of
    the same data; digests of ``parents``, which may give something to the view, are part of what is
    the same. Dev and test are read from what the problem lets a system see: of what a row says of
    its answer, nothing reaches the view.
    ``sees`` is what the architecture declares that it learns from beside the training examples: if
    the facts that support an answer are among it, the target is given them as ``support``, of the
    training rows alone.
    ``companions`` are further tasks that the architecture is trained on: the view is fitted to
    their training rows, too.
    """

    def __init__(
        self,
        task: Task,
        tier: Tier,
        folder: Path | None,
        view: View,
        gives: str,
        max_train: int | None = None,
        cache: Path | None = None,
        parents: Sequence[str] = (),
        sees: Sequence[str] = (),
        labels: int | None = None,
        streams: Sequence[str] = ("labelled",),
        companions: Sequence[Member] = (),
    ):
        self.task, self.tier, self.folder, self.view, self.cache = task, tier, folder, view, cache
        self.parents, self.companions = list(parents), companions
        self.problem = problem(task.entry.type)
        self.target, self.fields = self.problem.target(gives), self.problem.fields(gives, view)
        if task.label_tree:
            self.target.label_tree = dict(task.label_tree)
        self.max_train, self.labels = max_train, labels
        rows = training_rows(task, tier, folder, Limits(max_train, labels=labels).labelled)
        self._check(rows)
        listed = listed_rows(rows)
        self.fingerprints: dict[DataName, str] = {"train": fingerprint(listed)}
        if SUPPORTING_FACTS in sees:
            shown = task.support(listed, tier, folder)
            listed = [row | {"support": facts} for row, facts in zip(listed, shown, strict=True)]
        self.target.fit(listed)
        if labels is None or "unlabelled" not in streams:
            self._fit(listed, self.fingerprints["train"])
        else:
            texts = listed_rows(self._texts)
            self.fingerprints["unlabelled"] = fingerprint(texts)
            self._fit(self.problem.input_rows(texts), self.fingerprints["unlabelled"])
        self.train = self._encode("train", rows, listed)
        self.dev = self._load("dev")

    @functools.cached_property
    def unlabelled(self) -> Split:
        """All training rows without their answers, also those that have lost them."""
        texts = listed_rows(self._texts)
        data = self.fingerprints["train"] if self.labels is None else fingerprint(texts)
        inputs = self._inputs(self.problem.input_rows(texts), data, "inputs")
        return Split(self._texts, self.view, NoTarget(), inputs, {})

    @functools.cached_property
    def _texts(self) -> datasets.Dataset:
        """The rows of :attr:`unlabelled`, read anew only where some have lost their labels."""
        if self.labels is None:
            rows = self.train.rows
        else:
            rows = training_rows(self.task, self.tier, self.folder, self.max_train)
        return without_answers(rows, self.task)

    @functools.cached_property
    def companion_splits(self) -> dict[str, Split]:
        """The training rows of the companions, by task."""
        return {each.task.entry.id: each.split(self.view) for each in self.companions}

    def test(self) -> Split:
        """The test split: for the scoring step alone."""
        return self._load("test")

    def _load(self, split: SplitName) -> Split:
        rows = self.task.load(split, self.tier, self.folder)
        self._check(rows)
        listed = listed_rows(rows)
        self.fingerprints[split] = fingerprint(listed)
        return self._encode(split, rows, listed)

    def _check(self, rows: datasets.Dataset) -> None:
        optional = self.view.column in self.problem.entry.inputs
        if optional and "text" in self.fields and self.view.column not in rows.column_names:
            name = type(self.view).__name__
            raise DataError(
                f"{self.task.entry.id}, tier {self.tier}: no column {self.view.column!r}, which {name} reads"
            )

    def _fit(self, rows: Sequence[Row], data: str) -> None:
        """Fit the view to rows, whose fingerprint is ``data``, and to those of the companions."""
        others = [[each.task.entry.id, each.identity] for each in self.companions]
        self._fitted_to: Any = ["each text once", data, *others] if others else data
        file = None if self.view.adopts else self._cached("view.json", data)
        state = encodings.sound(file, encodings.read_state)
        if state is not None:
            self.view.restore(state)
            return
        texts = [text for read in self.fields.values() for text in distinct(map(read, rows))]
        if self.companions:  # two divisions of one corpus have the same texts: no word would be seen once
            theirs = (text for companion in self.companions for text in companion.texts(self.view))
            texts = [*distinct(itertools.chain(texts, theirs))]
        self.view.fit(texts)
        if self.view.adopts:  # another tokenizer by the same name encodes otherwise
            self._fitted_to = [self._fitted_to, self.view.state()]
        elif file is not None:
            with taking_the_place_of(file) as path:
                encodings.write_state(path, self.view.state())

    def _encode(self, split: SplitName, rows: datasets.Dataset, listed: Sequence[Row]) -> Split:
        if split == "train":
            inputs = self._inputs(listed, self.fingerprints[split], "")
        else:
            inputs = self._inputs(self.problem.input_rows(listed), self.fingerprints[split], "inputs")
        return Split(rows, self.view, self.target, inputs, self.target.encode(listed, self.view))

    def _inputs(self, rows: Sequence[Row], data: str, part: str) -> dict[str, Columns]:
        """Encoded input fields, from the cache where it has them."""
        inputs = {}
        for field, read in self.fields.items():
            folder = self._cached(field, data, part)
            columns = encodings.sound(folder, encodings.restore)
            if columns is None:
                columns = self.view.encode([read(row) for row in rows])
                if folder is not None:
                    with taking_the_place_of(folder) as path:
                        encodings.save(path, columns)
                    # Mapped into memory, as every other process has it.
                    columns = encodings.sound(folder, encodings.restore) or columns
            inputs[field] = columns
        return inputs

    def _cached(self, name: str, data: str, part: str = "") -> Path | None:
        if self.cache is None:
            return None
        identity = [
            self.view.settings(),
            _source(type(self.view)),
            # It makes one text of a story, or of a question and a passage.
            _source(type(self.problem)),  # type: ignore[arg-type]
            sorted(self.fields),
            self._fitted_to,
            data,
            part,
            *self.parents,
        ]
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        return self.cache / digest / name


@functools.cache
def _source(kind: type) -> str:
    """Digest of the code of a class and its bases: what another version of it encoded is not
    read."""
    files = sorted({inspect.getfile(cls) for cls in kind.__mro__ if cls.__module__ != "builtins"})
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()

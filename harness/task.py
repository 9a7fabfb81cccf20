"""A task adapter: where its examples are in each tier, as rows with the columns of its type.

Every row has a unique string ``id`` and the columns that its problem names
(:mod:`harness.problems`, one class for each task type). A *text* is a ``str``, or a ``list[str]``
where the corpus comes tokenised.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from harness import registry
from harness.errors import DataError
from harness.registry import TaskEntry
from harness.rows import Row, faults

if TYPE_CHECKING:
    import datasets

Split = Literal["train", "dev", "test"]
DataName = Literal["train", "dev", "test", "unlabelled"]
"""Names of digests of data: the splits, and the training rows as texts without labels."""
Tier = Literal["mini", "local", "hub", "own"]
_TOGETHER = ("group", "first", "text", "passage", "facts", "source", "id")
"""Columns by the first of which rows are kept together."""
SUPPORTING_FACTS = "supporting facts"
"""Word in the ``sees`` of an architecture that is shown, in training, which facts support an
answer."""
WITHOUT_LABELS = "texts without labels"
"""Word in the ``sees`` of an architecture that reads the texts of training rows which lost their
labels, where a cell has such."""
TIERS: tuple[Tier, ...] = ("mini", "local", "hub")
"""Tiers that a run may ask for; ``own`` is that of a user's files (:mod:`harness.user_data`)."""


@dataclass(frozen=True)
class Hub:
    """A data set on the Hugging Face hub at a pinned revision, as parquet (no remote code)."""

    path: str
    revision: str
    config: str | None = None
    splits: tuple[tuple[Split, str], ...] = (("train", "train"), ("dev", "validation"), ("test", "test"))


class Task:
    """Base of a task adapter: subclasses say how the rows of a split are made in each tier."""

    hub: ClassVar[Hub | None] = None
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    """Forms in which its texts can be read: ``text``, ``tree`` (a ``tree`` column stands beside
    it), ``audio``."""
    official_test: ClassVar[bool] = True
    """False where its test is a division of its own, whatever its size."""
    marks_mentions: ClassVar[bool] = False
    """True where its texts mark a pronoun and the names that it may stand for
    (:mod:`harness.mentions`), its labels."""
    choices: ClassVar[bool] = False
    """True where the candidates of a question are choices, which answer it and state nothing by
    themselves."""
    label_tree: ClassVar[Mapping[str, str]] = {}
    """The label above each label that has one, where labels are parts of others: an architecture
    may ask for it, and metric ``hierarchical_f1`` counts by it."""
    own_tier: ClassVar[Tier | None] = None
    """Its only tier, whatever a run asks for; None for a task with the tiers of all."""
    entry: TaskEntry

    def __init__(self, entry: TaskEntry):
        self.entry = entry

    def mini(self, split: Split) -> Iterable[Row]:
        """Rows of the embedded corpus, generated: the same on every machine."""
        raise NotImplementedError

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows read from the official distribution files below ``folder`` (``--data-dir``)."""
        raise NotImplementedError

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        """Rows made from the hub's split that :attr:`hub` names for ``split``."""
        raise NotImplementedError

    @classmethod
    def reason_to_skip(cls, id: str, tier: str) -> str | None:
        """The reason why this class has no rows in a tier, or None: it does not say how they are
        made."""
        makers = {"mini": ("mini",), "local": ("local",), "hub": ("from_hub", "hub")}
        defined = {name for name in vars(Task) if getattr(cls, name) is not getattr(Task, name)}
        if "_download" in defined:
            defined.add("hub")
        tiers = [name for name, needed in makers.items() if "load" in defined or defined.issuperset(needed)]
        if tier in tiers:
            return None
        lacking = {
            "mini": "generated corpus",
            "local": "reader of local files",
            "hub": "source on the hub",
            "own": "table of yours",
        }[tier]
        return f"{id} has no {lacking}; " + (f"use --tier {' or '.join(tiers)}" if tiers else "it has no tier at all")

    @classmethod
    def tier_of(cls, asked: Tier) -> Tier:
        """The tier whose rows it gives to a run that asks for one."""
        return cls.own_tier or asked

    def notes(self) -> list[str]:
        """Sentences for the user on its rows that are no fault; read when all splits are."""
        return []

    def support(self, rows: Sequence[Row], tier: Tier, folder: Path | None) -> list[list[int]]:
        """Numbers, from 0, of the facts that support the answer of each of these training rows, in
        the order in which one leads to the next.

        Only an architecture that names :data:`SUPPORTING_FACTS` in its ``sees`` is shown them, and
        in training alone; they are in no row, so that the rows of all others are what they were.
        """
        raise DataError(f"{self.entry.id}: which facts support an answer is not known")

    def together(self, rows: Sequence[Row]) -> list[str]:
        """A text for each row; rows with the same one are parted by no division: the question of a
        candidate, else the text, the first one of a pair, the passage, story or source; the id of a
        recording."""
        return [str(next(row[name] for name in _TOGETHER if row.get(name) is not None)) for row in rows]

    def signature(self) -> str:
        """Digest by which a change of its own files is seen; those of ``--data-dir`` are looked at
        by the run."""
        return ""

    def load(self, split: Split, tier: Tier, folder: Path | None = None) -> datasets.Dataset:
        """Rows of one split as a data set, checked; :class:`DataError` when a file or column is not
        as it should be."""
        import datasets

        rows = self.read(split, tier, folder)
        try:
            return datasets.Dataset.from_list(rows)
        except (TypeError, ValueError, OverflowError) as error:  # Arrow's errors are among them
            raise DataError(
                f"{self.entry.id}: split {split} does not fit a table, whose columns have one type each: {error}"
            ) from error

    def read(self, split: Split, tier: Tier, folder: Path | None = None) -> list[Row]:
        """Rows of one split, checked; :class:`DataError` with a line for each fault."""
        if tier == "hub":
            rows = list(self.from_hub(self._download(split), split))
        elif tier == "local":
            if folder is None:
                raise DataError(f"{self.entry.id}: tier local needs --data-dir (or ARCHBENCH_DATA)")
            rows = list(self.local(Path(folder), split))
        else:
            rows = list(self.mini(split))
        self._check(rows, split)
        return rows

    def official_test_examples(self, tier: Tier, examples: int) -> int:
        """Scored examples that belong to the official test: all of them, where they are as many as
        the task declares, none otherwise."""
        official = self.official_test and tier != "mini" and examples == self.entry.sizes.get("test")
        return examples if official else 0

    def _download(self, split: Split) -> datasets.Dataset:
        import datasets

        if self.hub is None:
            raise DataError(f"{self.entry.id} has no source on the hub; use --tier local")
        return datasets.load_dataset(
            self.hub.path, self.hub.config, split=dict(self.hub.splits)[split], revision=self.hub.revision
        )

    def _check(self, rows: list[Row], split: Split) -> None:
        if found := list(faults(self.entry, split, rows)):
            raise DataError("\n".join(found))


def fingerprint(rows: Iterable[Row]) -> str:
    """SHA-256 of the rows in their order: what a record calls the data it saw."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, default=_hash_bytes).encode())
    return digest.hexdigest()


def _hash_bytes(value: object) -> str:
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    raise TypeError(f"cannot fingerprint a {type(value).__name__}")


def __getattr__(name: str) -> Any:
    """``REQUIRED``, an older name: the required columns of each task type."""
    if name == "REQUIRED":
        return {type: entry.columns for type, entry in registry.entries("problems").items()}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

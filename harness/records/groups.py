"""The one rule of what may be compared: groups of records, and comparisons along one axis.

Pages, exports and statistics rank records only inside one :class:`Group`. Across groups they show
only what :func:`along` puts together: records that differ in one declared thing, such as the number
of training examples, and are equal in all else; and whether two groups that differ in the amount of
training alone put the architectures in the same order (:data:`AMOUNT_OF_TRAINING`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.errors import Named
from harness.metrics import display_info
from harness.metrics.information import PER_TOKEN
from harness.records.cell import of_all_seeds
from harness.records.record import Record
from harness.settings import CUSTOM, Limits
from harness.task import Split

SMOKE, PAPER = "smoke", "paper"
"""Names of the protocol that only shows that a cell runs, whose rows are never ranked, and of the
one in which each architecture has its own recipe: of a budget it takes the examples alone."""


class Amount(NamedTuple):
    """The content of a budget: its name and the limits of the training. None is no limit."""

    name: str
    examples: int | None = None
    passes: float | None = None
    min_steps: int | None = None
    batch_size: int | None = None
    tokens: int | None = None
    steps: int | None = None
    flops: float | None = None
    seconds: float | None = None

    @property
    def words(self) -> str:
        """The limits in words, such as "5,000 examples, 10 passes"."""
        examples = "all examples" if self.examples is None else f"{self.examples:,} examples"
        return ", ".join(filter(None, (examples, self.training_words)))

    @property
    def training_words(self) -> str:
        """The limits of the training in words; empty without any."""
        texts = {
            "passes": "{:,g} pass" if self.passes == 1 else "{:,g} passes",
            "min_steps": "at least {:,} steps",
            "batch_size": "batches of {:,}",
            "tokens": "{:,} tokens",
            "steps": "{:,} steps",
            "flops": "{:.3g} operations",
            "seconds": "{:,g} s",
        }
        values = ((text, getattr(self, name)) for name, text in texts.items())
        return ", ".join(text.format(value) for text, value in values if value is not None)


@dataclass(frozen=True, order=True)
class Source:
    """Something that comes from outside of the training data. Two are the same if their ``id`` (a
    digest, or the key of a cell) is, whatever their files are called."""

    id: str
    name: str = field(compare=False)

    @property
    def words(self) -> str:
        """Its name and the beginning of its digest or key, which tells two of one name apart."""
        return f"{self.name} {self.id[:8]}"


class Group(NamedTuple):
    """Records that may be compared with each other are equal in all of this.

    ``train``, ``dev`` and ``test`` are digests of the data; where none was recorded, the number of
    examples stands for it. ``sees``: data that training used besides the labelled training
    examples, that of the weights and teachers from which it learnt among it, None where it was not
    recorded. ``vectors``: given word vectors. ``inputs``: kept
    models and sources that give further numbers for each word. ``tokens``: the division of text
    into tokens that a parent gives, or that scores count; empty where words are read and scores
    count none.
    """

    task: str
    task_version: int
    train: str
    dev: str
    test: str
    tier: str
    protocol: str
    protocol_version: int
    budget: Amount
    sees: tuple[str, ...] | None
    vectors: Source | None
    inputs: tuple[Source, ...]
    tokens: str

    @property
    def ranked(self) -> bool:
        """True where :func:`is_ranked` says so."""
        return is_ranked(self.protocol, self.budget.name)

    @property
    def id(self) -> str:
        """The first 12 hexadecimal digits of SHA-256 over the content."""
        content = json.dumps(self, default=lambda source: source.id, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def has_test_of(self, other: Group | None) -> bool:
        """True where the scores of both are of one test."""
        return other is not None and (self.test, self.task_version) == (other.test, other.task_version)


def is_ranked(protocol: str, budget: str) -> bool:
    """False where a rank would mean nothing: a budget of the user's own, or protocol smoke."""
    return budget != CUSTOM and protocol != SMOKE


def group_of(record: Record, main_metric: str = "") -> Group:
    """The group of a record. ``main_metric`` is that of its task, if it is known better than from
    the record."""
    return Group(
        record.task,
        record.task_version,
        _data(record, "train"),
        _data(record, "dev"),
        _data(record, "test"),
        record.tier,
        record.protocol,
        record.protocol_version or 1,
        _amount(record),
        None if record.sees is None else tuple(sorted({*record.sees, *_rows_before(record)})),
        _vectors(record),
        _inputs(record),
        _tokens(record, display_info(main_metric or record.main_metric).unit == PER_TOKEN),
    )


def comparable(first: Record, second: Record) -> bool:
    """True if two records may be ranked against each other."""
    a, b = group_of(first), group_of(second)
    return a == b and a.ranked


def differences(group: Group, other: Group) -> list[str]:
    """The things that tell a group from another one, in words, with what ``group`` has."""
    words = {
        "task": ("task", group.task),
        "task_version": ("version of the task", str(group.task_version)),
        "train": ("training data", _short(group.train)),
        "dev": ("dev data", _short(group.dev)),
        "test": ("test data", _short(group.test)),
        "tier": ("tier", group.tier),
        "protocol": ("protocol", group.protocol),
        "protocol_version": ("version of the protocol", str(group.protocol_version)),
        "budget": ("budget", f"{group.budget.name}: {group.budget.words}"),
        "sees": ("view of other data", seen(group.sees)),
        "vectors": ("word vectors", group.vectors.name if group.vectors else "none"),
        "inputs": ("further inputs", ", ".join(source.name for source in group.inputs) or "none"),
        "tokens": ("tokens", group.tokens),
    }
    return [
        f"{name} ({value or 'not recorded'})"
        for field, (name, value) in words.items()
        if getattr(group, field) != getattr(other, field)
    ]


def _short(data: str) -> str:
    return data if " " in data else data[:12]


def seen(sees: Sequence[str] | None) -> str:
    """Words on what training saw besides the labelled training examples."""
    return "not recorded" if sees is None else ", ".join(sees) or "nothing else"


# --- comparisons along one axis ---


class Axis(NamedTuple):
    """Parts in which records along an axis may differ: fields of the group, fields of its budget,
    and parts of the cell by their way through its mappings."""

    group: tuple[str, ...] = ()
    budget: tuple[str, ...] = ()
    cell: tuple[tuple[str, ...], ...] = ()


AMOUNT_OF_TRAINING = ("tier", "train", "dev", "test", "budget")
"""Parts in which two groups may differ whose orders, but never scores, are compared."""

LEARNT_BEFORE = ("weights", "teacher")
"""Roles of parents of which a child has what they learnt, in its own weights."""

_LIMITS = ("hyperparameters", "limits")
_PARENTS = ("hyperparameters", "parents")
AXES = Named(
    "axis",
    examples=Axis(
        ("train",),
        ("name", "examples"),
        ((*_LIMITS, "max_train"), (*_LIMITS, "budget"), (*_LIMITS, "labels"), ("seed",)),
    ),
    vectors=Axis(("vectors",), (), (("hyperparameters", "vectors"), (*_PARENTS, "vectors"))),
    tokens=Axis(("tokens",), (), (("hyperparameters", "tokens"), (*_PARENTS, "tokens"))),
    inputs=Axis(("inputs",), (), (("hyperparameters", "inputs"), (*_PARENTS, "inputs"), (*_PARENTS, "tags"))),
    seeds=Axis((), (), (("seed",),)),
)


def along(axis: str, records: Iterable[Record]) -> list[list[Record]]:
    """Lists of records that may be compared along an axis: those of one list are equal in all else,
    the architecture and its settings included.

    Records that did not end ok are left out, and so are those without another one to be compared
    with. Lists and records keep the order in which they come. Raises
    :class:`~harness.errors.UnknownName` for an axis that is none of :data:`AXES`.
    """
    free = AXES[axis]
    lists: dict[object, list[Record]] = {}
    for record in records:
        if record.status == "ok":
            lists.setdefault(_all_else(free, record), []).append(record)
    return [found for found in lists.values() if len(found) > 1]


def _all_else(free: Axis, record: Record) -> object:
    """Everything that decides the result of a record, except for the axis."""
    group = group_of(record)
    budget = group.budget._replace(**dict.fromkeys(free.budget))  # type: ignore[arg-type]
    cell = cell_without(record, free.cell)
    return without(group._replace(budget=budget), free.group), json.dumps(cell, sort_keys=True)


def cell_without(record: Record, ways: Iterable[Sequence[str]]) -> dict[str, Any]:
    """The fields of a record's cell, its parents as all seeds share them, without the entries at
    these ways through its mappings."""
    cell = record.cell.to_dict() | {"hyperparameters": of_all_seeds(record.hyperparameters)}
    for way in ways:
        cell = _without_entry(cell, way)
    return cell


def without(group: Group, parts: Iterable[str]) -> Group:
    """A group in which these parts are left out: two of them are equal if all else is."""
    return group._replace(**dict.fromkeys(parts))  # type: ignore[arg-type]


def _without_entry(values: dict[str, Any], way: Sequence[str]) -> dict[str, Any]:
    """A mapping without the entry at a way through its mappings."""
    first, *rest = way
    others = {name: value for name, value in values.items() if name != first}
    return others | {first: _without_entry(values.get(first) or {}, rest)} if rest else others


# --- parts of a group ---


def _data(record: Record, split: Split) -> str:
    count = record.counts.get(split)
    return record.data.get(split) or ("" if count is None else f"{count:,} examples")


def _amount(record: Record) -> Amount:
    """The budget; of older records, what their limits tell of it."""
    if record.budget is not None:
        given: dict[str, Any] = {**record.budget}
        whole = {name: int(n) for name, n in given.items() if isinstance(n, float) and n.is_integer()}
        amount = Amount(**given | whole)  # 3.0 passes are 3
        return Amount(amount.name, amount.examples) if record.protocol == PAPER else amount
    limits = Limits.of(record.hyperparameters)
    return Amount(limits.name, limits.labelled, limits.max_epochs)


def _rows_before(record: Record) -> set[str]:
    """Words on the rows that taught the weights and the teachers from which a record learnt, and
    what these had from others, where they are not its own training rows. Its own parents in other
    roles stand in the group themselves."""
    parents = record.hyperparameters.get("parents") or {}
    before = [parent for role, parent in parents.items() if role in LEARNT_BEFORE]
    apart = {parent["key"] for role, parent in parents.items() if role not in LEARNT_BEFORE}
    ancestors = [each for each in record.lineage or () if before and each["key"] not in apart]
    tasks = {each["task"] for each in (*before, *ancestors)}
    own, more = record.data.get("train"), set()
    for each in ancestors:
        rows = each.get("corpus", {}).get("train")
        if each["task"] == record.task and own and rows and rows != own:
            more.add("other training rows of its task")
    return {f"training rows of {task}" for task in tasks - {record.task}} | more


def _parents(record: Record, *roles: str) -> dict[str, Source]:
    """Sources that are parents in some of the roles, by their keys; the seeds of one are one
    source."""
    parents = [parent for role, parent in (record.hyperparameters.get("parents") or {}).items() if role in roles]
    return {parent["key"]: Source(parent["row"], parent["architecture"]) for parent in parents}


def _inputs(record: Record) -> tuple[Source, ...]:
    """Parents, kept models that only the record tells of, and sources that are trained with the
    model: of these, all that the cell says is what they are."""
    parents = _parents(record, "inputs", "tags")
    others = [each for each in record.inputs or () if each.keys() & {"artefact", "key"}]
    trained = {Source(_digest([name, each]), name) for name, each in record.cell.inputs.items()}
    kept = {_source(each) for each in others if each.get("key") not in parents}
    return tuple(sorted({*parents.values(), *kept, *trained}))


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _vectors(record: Record) -> Source | None:
    """The given vectors: a parent's, or those that have a digest or a cell that made them; else the
    file that the settings describe, of older records and of architectures that read no vectors."""
    for source in _parents(record, "vectors").values():
        return source
    if record.vectors is not None and record.vectors.keys() & {"sha256", "key"}:
        return _source(record.vectors)
    described = record.hyperparameters.get("vectors")
    if not described:
        return None
    values = described if isinstance(described, dict) else {"file": described}
    name = str(values.get("file") or "vectors")
    return Source(str(values.get("sha256") or name), name)


def _tokens(record: Record, counted: bool) -> str:
    for source in _parents(record, "tokens").values():
        return f"{source.name} {source.id[:12]}"
    if not counted:
        return ""
    if record.tokens is None:
        return str(record.hyperparameters.get("tokens") or "")
    source = _source(record.tokens)
    return source.name if source.id == source.name else f"{source.name} {source.id[:12]}"


def _source(block: Any) -> Source:
    """The source that a block of a record describes: the digest of its file identifies it, else
    its cell, else its name."""
    id = block.get("sha256") or block.get("artefact") or block.get("key") or block["name"]
    return Source(id, block["name"])

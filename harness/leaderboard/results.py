"""Results: all seeds of one configuration, and the sections that show them together."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from harness import registry
from harness.leaderboard.setting_words import in_words
from harness.leaderboard.summary import Summary, summarise
from harness.records import Record
from harness.records.cell import of_all_seeds
from harness.records.groups import SMOKE, Group, Source, group_of, is_ranked
from harness.settings import CUSTOM, FULL
from harness.task import Split

TIERS = ("own", "local", "hub", "mini")
PROTOCOLS = ("equal", "paper", SMOKE)
"""In the order of the pages: who opens them first sees what was trained by the same rules."""


@dataclass(frozen=True, eq=False)
class Result:
    """All seeds of one configuration of an architecture on a task, by seed.

    ``settings`` names the hyperparameters in which it differs from the other configurations.
    ``group`` is that of its records that ended ok, None if there are none. Results are compared by
    identity.
    """

    records: tuple[Record, ...]
    settings: str = ""
    group: Group | None = None

    @property
    def first(self) -> Record:
        """The first record, for fields that all seeds share."""
        return self.records[0]

    @functools.cached_property
    def ok(self) -> list[Record]:
        """The records that ended ok."""
        return [record for record in self.records if record.status == "ok"]

    @property
    def partial(self) -> bool:
        """True if a record was trained on a part of the training data or in fewer passes."""
        return any(record.partial for record in self.ok)

    @property
    def skipped(self) -> bool:
        """True if every record was skipped."""
        return all(record.status == "skipped" for record in self.records)

    @property
    def unfit(self) -> bool:
        """True if its architecture is not for such tasks."""
        return all(record.unfit for record in self.records)

    def summary(self, metric: str) -> Summary | None:
        """Test score over the seeds that have one."""
        return self.summaries.get(metric)

    @functools.cached_property
    def summaries(self) -> dict[str, Summary]:
        """Test score of every metric over the seeds that have one."""
        scores: dict[str, list[float]] = {}
        for record in self.ok:
            for metric, score in record.scores.get("test", {}).items():
                scores.setdefault(metric, []).append(score)
        return {metric: summarise(values) for metric, values in scores.items()}

    @functools.cached_property
    def trained_on(self) -> int:
        """Number of training examples, 0 if no record has it."""
        return max((record.counts.get("train", 0) for record in self.ok), default=0)


Pairs = list[tuple[str, Result]]
"""Results, each with the id of its architecture."""


class Section(NamedTuple):
    """Results that are shown together: the part of their :class:`~harness.records.groups.Group`
    that no task decides. On one task, a section may still hold several groups."""

    tier: str
    protocol: str
    protocol_version: int = 1
    budget: str = FULL
    sees: tuple[str, ...] | None = ()
    vectors: Source | None = None
    tokens: str = ""
    inputs: tuple[Source, ...] = ()

    @classmethod
    def of(cls, group: Group) -> Section:
        """The section that shows a group."""
        protocol = group.protocol, group.protocol_version
        return cls(group.tier, *protocol, group.budget.name, group.sees, group.vectors, group.tokens, group.inputs)

    @property
    def words(self) -> tuple[str, ...]:
        """Its parts as short texts, without those that say that there is nothing special."""
        return (self.tier, versioned(self.protocol, self.protocol_version), self.budget, *self.besides)

    @property
    def besides(self) -> tuple[str, ...]:
        """Short texts of all that its rows see and are given besides labelled examples; none where
        there is nothing special."""
        sees = "unknown sight" if self.sees is None else " and ".join(self.sees)
        vectors = self.vectors.words if self.vectors else ""
        inputs = " and ".join(source.words for source in self.inputs)
        return tuple(filter(None, (sees, vectors, self.tokens, inputs)))

    @property
    def alone(self) -> bool:
        """True where rows learn from labelled examples alone: nothing else is seen, given or learnt
        before."""
        return self.sees == () and not self.vectors and not self.inputs

    @property
    def input_names(self) -> str:
        """Further inputs in words; empty without any."""
        return " and ".join(source.name for source in self.inputs)

    @property
    def id(self) -> str:
        """Part of an HTML id."""
        return "-".join(re.sub(r"[^\w.]+", "_", part) for part in self.words)

    @property
    def ranked(self) -> bool:
        """True where :func:`~harness.records.groups.is_ranked` says so."""
        return is_ranked(self.protocol, self.budget)


SectionResults = dict[tuple[str, str], list[Result]]
"""Results of one section by (architecture, task)."""


def versioned(protocol: str, version: int) -> str:
    """A protocol with its version, which the first one does not say."""
    return protocol if version == 1 else f"{protocol} {version}"


def main_metric_of(task: str, tasks: Mapping[str, registry.TaskEntry], records: Iterable[Record]) -> str:
    """The metric that ranks a task: the one it declares, or that of its records if it is not
    registered."""
    if task in tasks:
        return tasks[task].main_metric
    return next((record.main_metric for record in records if record.task == task and record.main_metric), "accuracy")


def sections_of(
    records: Sequence[Record], tasks: Mapping[str, registry.TaskEntry], text: Callable[[Any], str]
) -> dict[Section, SectionResults]:
    """Results by section, with the seeds of one configuration together; the largest budget first.
    ``text`` gives the JSON text of settings."""
    metrics = {task: main_metric_of(task, tasks, records) for task in {record.task for record in records}}
    grouped: dict[Section, dict[tuple[str, str], dict[tuple[Any, ...], list[_Grouped]]]] = {}
    largest: dict[str, int] = {}
    for record in records:
        settings = (
            record.architecture_version,
            record.task_version,
            record.precision,
            record.devices,
            text(of_all_seeds(record.hyperparameters)),
        )
        group = group_of(record, metrics[record.task])
        section = grouped.setdefault(Section.of(group), {})
        seeds = section.setdefault((record.architecture, record.task), {})
        seeds.setdefault(settings, []).append((group, record))
        largest[group.budget.name] = max(largest.get(group.budget.name, 0), record.counts.get("train", 0))
    return {
        key: {pair: _with_settings(seeds.values()) for pair, seeds in sorted(grouped[key].items())}
        for key in sorted(grouped, key=lambda key: _order(key, largest))
    }


_Grouped = tuple[Group, Record]


def _order(section: Section, largest: Mapping[str, int]) -> tuple[Any, ...]:
    """Sorting key of sections: by tier and protocol, its last version first; the largest budget
    first and the users' own last; ordinary rows before those that see more."""
    budget = section.budget
    sees = ("?",) if section.sees is None else section.sees
    return (
        (_rank(TIERS, section.tier), section.tier),
        (_rank(PROTOCOLS, section.protocol), section.protocol, -section.protocol_version),
        (budget == CUSTOM, budget != FULL, -largest[budget], budget),
        (len(sees), sees, section.words),
    )


def _rank(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _with_settings(configurations: Iterable[list[_Grouped]]) -> list[Result]:
    """One result per configuration, each labelled with the settings in which it differs from the
    others."""
    results = [result for seeds in configurations for result in _by_group(seeds)]
    if len(results) == 1:
        return results
    labels = told_apart([(result.first.cell.to_dict(), result) for result in results])
    return [
        Result(result.records, label, result.group)
        for label, result in sorted(zip(labels, results, strict=True), key=lambda pair: pair[0])
    ]


def _by_group(seeds: list[_Grouped]) -> Iterable[Result]:
    """The seeds of one configuration: one result for each group of those that ended ok, since a
    mean over two is none. The others are with the largest."""
    groups = Counter(group for group, record in seeds if record.status == "ok")
    order: list[Group | None] = [*sorted(groups, key=lambda group: (-groups[group], group.id))]
    for i, group in enumerate(order or [None]):
        found = [r for g, r in seeds if (g == group if r.status == "ok" else i == 0)]
        yield Result(tuple(sorted(found, key=lambda record: record.seed)), "", group)


def told_apart(results: Sequence[tuple[Mapping[str, Any], Result]]) -> list[str]:
    """Words on each of some results: the settings, given before it, in which it differs from the
    others; on one cell with two states of the data also these. Where words do not tell settings
    apart, such as one that is absent and one that is null, the beginning of a key does."""
    flat = [dict(flatten(_with_named_parents(settings))) for settings, _ in results]
    labels = _labels(flat)
    if len(set(labels)) < len(labels):
        labels = _labels([cell | _data_of(result) for cell, (_, result) in zip(flat, results, strict=True)])
    return [
        label if labels.count(label) == 1 else f"{label}, cell {result.first.key[:8]}".removeprefix(", ")
        for label, (_, result) in zip(labels, results, strict=True)
    ]


def _with_named_parents(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in which each parent is one text: its architecture, its task and the beginning of
    its row, which tells two of one name apart."""
    given = settings["hyperparameters"]
    named = {
        role: f"{parent['architecture']} on {parent['task']} ({parent['row'][:8]})"
        for role, parent in (given.get("parents") or {}).items()
    }
    return {**settings, "hyperparameters": given | ({"parents": named} if named else {})}


def _labels(flat: Sequence[dict[str, object]]) -> list[str]:
    """The entries in which each differs from the others, in words."""
    differing = [
        name for name in sorted(set().union(*flat)) if name != "seed" and len({str(f.get(name)) for f in flat}) > 1
    ]
    return [", ".join(in_words(name.removeprefix("hyperparameters."), f.get(name)) for name in differing) for f in flat]


def _data_of(result: Result) -> dict[str, object]:
    return {f"{split} data": result.first.data.get(split, "not recorded")[:12] for split in get_args(Split)}


def flatten(value: object, name: str = "") -> Iterable[tuple[str, object]]:
    """The values of nested settings, each with its path such as ``training.lr``."""
    if isinstance(value, dict) and value:
        for key in value:
            yield from flatten(value[key], f"{name}.{key}" if name else str(key))
    else:
        yield name, value

"""All data behind the pages: records, published values, names of architectures and tasks."""

from __future__ import annotations

import functools
import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness import registry
from harness.errors import LeaderboardError
from harness.leaderboard.published import DATASET_NAMES, Published, read_published, source_file, with_notes
from harness.leaderboard.significance import Summary, summarise
from harness.leaderboard.unregistered import recorded_architectures, recorded_tasks
from harness.metrics import display_info
from harness.metrics.information import PER_TOKEN
from harness.records import Record, Store
from harness.records.code_digest import made_by_other_code

ROOT = Path(__file__).resolve().parents[2]
TIERS = ("local", "hub", "mini")
PROTOCOLS = ("paper", "equal", "smoke")


@dataclass(frozen=True, eq=False)
class Result:
    """All seeds of one configuration of an architecture on a task, by seed.

    ``settings`` names the hyperparameters in which it differs from the other configurations.
    Results are compared by identity.
    """

    records: tuple[Record, ...]
    settings: str = ""

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
    """Results that may be compared: one tier of the data, one protocol and, for metrics whose unit
    is a token, one way to cut text into tokens (empty for all other metrics)."""

    tier: str
    protocol: str
    tokens: str = ""

    @property
    def id(self) -> str:
        """Part of an HTML id."""
        return "-".join(re.sub(r"[^\w.]+", "_", part) for part in self if part)


SectionResults = dict[tuple[str, str], list[Result]]
"""Results of one section by (architecture, task)."""


def section_of(record: Record, main_metric: str) -> Section:
    """Section of a record of a task with this main metric."""
    per_token = display_info(main_metric).unit == PER_TOKEN
    return Section(record.tier, record.protocol, str(record.hyperparameters.get("tokens") or "") if per_token else "")


def comparable(results: Iterable[tuple[str, Result]], metric: str) -> Pairs:
    """The results that may be ranked against each other by a metric, in their order: those with a
    score that were trained on as many examples as the largest training set among them."""
    scored = [(architecture, result) for architecture, result in results if result.summary(metric)]
    largest = max((result.trained_on for _, result in scored), default=0)
    return [(architecture, result) for architecture, result in scored if result.trained_on == largest]


def architecture_file(architecture: str) -> str:
    """File name of an architecture's page."""
    return f"architecture-{architecture}.html"


def task_file(task: str) -> str:
    """File name of a task's page."""
    return f"task-{task}.html"


@dataclass(frozen=True, eq=False)
class Board:
    """All data behind the pages; ``sections`` holds the results of each section. ``architectures``
    and ``tasks`` hold what is registered, and what only records tell of
    (:mod:`harness.leaderboard.unregistered`).

    Boards are compared by identity, so that functions of a board can be cached.
    """

    store: Store
    records: list[Record]
    published: list[Published]
    architectures: dict[str, registry.ArchitectureEntry]
    tasks: dict[str, registry.TaskEntry]
    notices: list[str]
    sections: dict[Section, SectionResults]

    def name(self, architecture: str) -> str:
        """Name of an architecture; its id if it is not registered here."""
        entry = self.architectures.get(architecture)
        return entry.name if entry else architecture

    def result_name(self, architecture: str, result: Result) -> str:
        """Name of an architecture with the settings of one of its configurations."""
        return self.name(architecture) + (f" ({result.settings})" if result.settings else "")

    def task_name(self, task: str) -> str:
        """Name of a task or of a data set of the survey."""
        entry = self.tasks.get(task)
        return DATASET_NAMES.get(task) or (entry.name if entry else task)

    @functools.cached_property
    def known_tasks(self) -> list[str]:
        """Ids of the registered tasks, then of those that only records name."""
        return list(dict.fromkeys([*self.tasks, *sorted(record.task for record in self.records)]))

    @functools.cached_property
    def known_architectures(self) -> list[str]:
        """Ids of the registered architectures and of those that only records name, in the order of
        the survey's tables."""
        return sorted({*self.architectures, *(record.architecture for record in self.records)}, key=self.order)

    def page_of(self, architecture: str) -> str:
        """File name of an architecture's page; empty if it has no record and so no page."""
        return architecture_file(architecture) if architecture in self._recorded_architectures else ""

    @functools.cached_property
    def _recorded_architectures(self) -> set[str]:
        return {record.architecture for record in self.records}

    @functools.cached_property
    def recorded_tasks(self) -> list[str]:
        """The tasks that have records and therefore a page, in the order of :attr:`known_tasks`."""
        recorded = {record.task for record in self.records}
        return [task for task in self.known_tasks if task in recorded]

    def results(self, section: Section, task: str) -> Pairs:
        """All results of a section's task."""
        return self._by_task.get((section, task), [])

    @functools.cached_property
    def _by_task(self) -> dict[tuple[Section, str], Pairs]:
        pairs: dict[tuple[Section, str], Pairs] = {}
        for section, results in self.sections.items():
            for (architecture, task), configurations in results.items():
                pairs.setdefault((section, task), []).extend((architecture, result) for result in configurations)
        return pairs

    def rivals(self, section: Section, task: str, metric: str) -> Pairs:
        """The :func:`comparable` results of a section's task."""
        return comparable(self.results(section, task), metric)

    @functools.cached_property
    def counterparts(self) -> dict[tuple[str, str, str], Published]:
        """The published value that a score of ours is compared with, by (architecture, dataset,
        metric)."""
        return {
            (value.counterpart, value.dataset, value.metric): value for value in self.published if value.counterpart
        }

    def main_metric(self, task: str) -> str:
        """The metric that ranks a task."""
        return main_metric_of(task, self.tasks, self.records)

    @functools.cached_property
    def test_data(self) -> dict[tuple[Section, str], set[str]]:
        """Fingerprints of the test splits behind the scores of a section's task; scores on
        different ones cannot be compared."""
        fingerprints: dict[tuple[Section, str], set[str]] = {}
        for record in self.records:
            if record.status == "ok" and "test" in record.data:
                section = section_of(record, self.main_metric(record.task))
                fingerprints.setdefault((section, record.task), set()).add(record.data["test"])
        return fingerprints

    @functools.cached_property
    def made_by_other_code(self) -> set[str]:
        """Keys of the records whose code differs from that of the files here."""
        return {record.key for record in made_by_other_code(self.records)}

    def is_classical(self, architecture: str) -> bool:
        """True for rows in italics: as the survey prints them, else by the architecture's
        family."""
        if architecture in self._classical_in_survey:
            return self._classical_in_survey[architecture]
        return architecture in self.architectures and self.architectures[architecture].family == "classical"

    @functools.cached_property
    def _classical_in_survey(self) -> dict[str, bool]:
        return {value.architecture: value.classical for value in reversed(self.published)}

    def order(self, architecture: str) -> tuple[Any, ...]:
        """Sorting key of the survey's tables: classical methods first, then by year."""
        entry = self.architectures.get(architecture)
        year = entry.year if entry else None
        return not self.is_classical(architecture), year or 9999, self.name(architecture), architecture


def main_metric_of(task: str, tasks: Mapping[str, registry.TaskEntry], records: Iterable[Record]) -> str:
    """The metric that ranks a task: the one it declares, or that of its records if it is not
    registered."""
    if task in tasks:
        return tasks[task].main_metric
    return next((record.main_metric for record in records if record.task == task and record.main_metric), "accuracy")


def read(results: Path) -> Board:
    """Records, published values and names for a results folder; :class:`LeaderboardError` if there
    is no such folder."""
    if not results.is_dir():
        raise LeaderboardError(f"--results {results}: no such folder; `archbench run` writes one, or name another")
    notices = []
    store = Store(results)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the notices name the same files
        records = list(store.all())
    notices += [f"record skipped: {reason}" for reason in store.damaged.values()]
    entries: dict[registry.Sort, dict[str, Any]] = {"architectures": {}, "tasks": {}}
    for sort in entries:
        try:
            entries[sort] = registry.entries(sort)
            notices += registry.broken(sort).values()
        except registry.RegistryError as error:
            notices.append(f"names and papers of the {sort} are missing: {error}")
    published = _read_published(results)
    architectures = recorded_architectures(records) | entries["architectures"]
    tasks = recorded_tasks(records) | entries["tasks"]
    return Board(store, records, published, architectures, tasks, notices, sections_of(records, tasks))


def _read_published(results: Path) -> list[Published]:
    file = source_file(results, "published.csv")
    return with_notes(read_published(file), source_file(file.parent, "published_notes.csv"))


def sections_of(records: Sequence[Record], tasks: Mapping[str, registry.TaskEntry]) -> dict[Section, SectionResults]:
    """Results by section, with the seeds of one configuration together."""
    metrics = {task: main_metric_of(task, tasks, records) for task in {record.task for record in records}}
    groups: dict[Section, dict[tuple[str, str], dict[str, list[Record]]]] = {}
    for record in records:
        settings = (
            record.architecture_version,
            record.task_version,
            record.precision,
            record.devices,
            record.hyperparameters,
        )
        section = groups.setdefault(section_of(record, metrics[record.task]), {})
        seeds = section.setdefault((record.architecture, record.task), {})
        seeds.setdefault(json.dumps(settings, sort_keys=True), []).append(record)
    return {
        key: {pair: _with_settings(seeds.values()) for pair, seeds in sorted(groups[key].items())}
        for key in sorted(groups, key=lambda key: (_rank(TIERS, key.tier), _rank(PROTOCOLS, key.protocol), key))
    }


def _rank(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _with_settings(groups: Iterable[list[Record]]) -> list[Result]:
    """One result per configuration, each labelled with the settings in which it differs from the
    others."""
    results = [Result(tuple(sorted(group, key=lambda record: record.seed))) for group in groups]
    if len(results) == 1:
        return results
    flat = [dict(_flatten(result.first.cell.to_dict())) for result in results]
    differing = [
        name for name in sorted(set().union(*flat)) if name != "seed" and len({str(f.get(name)) for f in flat}) > 1
    ]
    labels = [", ".join(f"{name.removeprefix('hyperparameters.')}={f.get(name)}" for name in differing) for f in flat]
    return [
        Result(result.records, label)
        for label, result in sorted(zip(labels, results, strict=True), key=lambda pair: pair[0])
    ]


def _flatten(value: object, name: str = "") -> Iterable[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key in value:
            yield from _flatten(value[key], f"{name}.{key}" if name else str(key))
    else:
        yield name, value

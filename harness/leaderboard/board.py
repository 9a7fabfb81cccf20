"""All data behind the pages: records, published values, names of architectures and tasks."""

from __future__ import annotations

import functools
import gc
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

from harness import registry
from harness.errors import LeaderboardError
from harness.files import sorted_json
from harness.leaderboard.catalogue import CatalogueEntry, read_catalogue
from harness.leaderboard.published import DATASET_NAMES, Published, read_published, source_file, with_notes
from harness.leaderboard.setting_words import in_words
from harness.leaderboard.significance import Summary, summarise
from harness.leaderboard.speeds import Speed, read_speeds
from harness.leaderboard.unregistered import recorded_architectures, recorded_tasks
from harness.metrics import display_info
from harness.records import Record, Store
from harness.records.cell import of_all_seeds
from harness.records.code_digest import made_by_other_code
from harness.records.groups import SMOKE, Group, Source, group_of, is_ranked
from harness.records.registered import other_test_size
from harness.settings import CUSTOM, FULL
from harness.task import Split

ROOT = Path(__file__).resolve().parents[2]
TIERS = ("own", "local", "hub", "mini")
PROTOCOLS = ("paper", "equal", SMOKE)
FLOOR = "floor"
"""Kind of the answers that need no model. They are shown, and never ranked."""


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
        sees = "unknown sight" if self.sees is None else " and ".join(self.sees)
        vectors = self.vectors.words if self.vectors else ""
        inputs = " and ".join(source.words for source in self.inputs)
        protocol = versioned(self.protocol, self.protocol_version)
        parts = (self.tier, protocol, self.budget, sees, vectors, self.tokens, inputs)
        return tuple(filter(None, parts))

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


def architecture_file(architecture: str) -> str:
    """File name of an architecture's page."""
    return f"architecture-{architecture}.html"


def task_file(task: str) -> str:
    """File name of a task's page."""
    return f"task-{task}.html"


@dataclass(frozen=True, eq=False)
class Board:
    """All data behind the pages. ``architectures`` and ``tasks`` hold what is registered, and what
    only records tell of (:mod:`harness.leaderboard.unregistered`).

    Boards are compared by identity, so that functions of a board can be cached.
    """

    store: Store
    records: list[Record]
    published: list[Published]
    architectures: dict[str, registry.ArchitectureEntry]
    tasks: dict[str, registry.TaskEntry]
    notices: list[str]
    json: Callable[[Any], str] = field(default_factory=sorted_json)
    """The JSON text of the settings of a record, made once for each row."""

    @functools.cached_property
    def sections(self) -> dict[Section, SectionResults]:
        """The results of each section."""
        return sections_of(self.records, self.tasks, self.json)

    def name(self, architecture: str) -> str:
        """Name of an architecture; its id if it is not registered here."""
        entry = self.architectures.get(architecture)
        name = entry.name if entry else architecture
        return f"floor: {name.removeprefix('floor: ')}" if self.is_floor(architecture) else name

    def is_floor(self, architecture: str) -> bool:
        """True for an answer that needs no model, such as the most frequent class."""
        return architecture in self.floors

    @functools.cached_property
    def floors(self) -> set[str]:
        """Ids of the answers that need no model."""
        return {id for id, entry in self.architectures.items() if entry.kind == FLOOR}

    def result_name(self, architecture: str, result: Result) -> str:
        """Name of an architecture with the settings of one of its configurations."""
        return self.name(architecture) + (f" ({result.settings})" if result.settings else "")

    def task_name(self, task: str) -> str:
        """Name of a task or of a data set of the survey."""
        entry = self.tasks.get(task)
        return DATASET_NAMES.get(task) or (entry.name if entry else task)

    @functools.cached_property
    def catalogue(self) -> dict[str, CatalogueEntry]:
        """Facts of the source texts about every system, by id."""
        return read_catalogue(self.store.folder)

    @functools.cached_property
    def speeds(self) -> dict[str, Speed]:
        """Speeds on a quiet machine by architecture, as far as they were measured."""
        return read_speeds(self.store.folder)

    @functools.cached_property
    def families(self) -> list[str]:
        """The families of the source texts, then those of other architectures: their colours are
        the same on every page."""
        named = sorted({entry.family for entry in self.catalogue.values()})
        return list(dict.fromkeys([*named, *sorted(entry.family for entry in self.architectures.values())]))

    def family(self, architecture: str) -> str:
        """Family of an architecture; empty if nothing tells it."""
        entry = self.architectures.get(architecture)
        return entry.family if entry else ""

    def type_of(self, task: str) -> str:
        """Type of a task; empty if nothing tells it."""
        entry = self.tasks.get(task)
        return entry.type if entry else ""

    def type_name(self, type: str) -> str:
        """Name of a type of tasks in words, or its id where it is not registered here."""
        return self._type_names.get(type, type)

    @functools.cached_property
    def _type_names(self) -> dict[str, str]:
        try:
            return {id: entry.name for id, entry in registry.entries("problems").items()}
        except registry.RegistryError:
            return {}

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
        return architecture_file(architecture) if architecture in self.by_architecture else ""

    @functools.cached_property
    def by_architecture(self) -> dict[str, list[Record]]:
        """The records of each architecture that has one."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(record.architecture, []).append(record)
        return found

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

    @functools.cached_property
    def _leading_groups(self) -> dict[tuple[Section, str], Group]:
        """The group of each section's task that most results are in; where the task's adapter
        changed, one of its last version."""
        found = {}
        for place, pairs in self._by_task.items():
            scored = [(architecture, result.group) for architecture, result in pairs if result.group]
            models = [group for architecture, group in scored if not self.is_floor(architecture)]
            groups = Counter(models or [group for _, group in scored])
            examples = {result.group: result.trained_on for _, result in pairs}
            if groups:
                found[place] = max(groups, key=lambda g: (g.task_version, groups[g], examples[g], g.id))
        return found

    def group(self, section: Section, task: str) -> Group | None:
        """The group in which a section's task is ranked; None if it has no result."""
        return self._leading_groups.get((section, task))

    def rivals(self, section: Section, task: str, metric: str) -> Pairs:
        """The results of a section's task that may be ranked against each other by a metric, in
        their order: those of its :meth:`group` that have a score and are no floors.

        :func:`~harness.leaderboard.ranking.ranked` leaves out those at the floor, too.
        """
        group = self.group(section, task)
        if group is None or not group.ranked:
            return []
        return [
            (architecture, result)
            for architecture, result in self.results(section, task)
            if result.group == group and result.summary(metric) and not self.is_floor(architecture)
        ]

    def on_same_test(self, section: Section, task: str) -> Pairs:
        """The results of a section's task that were scored on the test data of its :meth:`group`:
        their outcomes are those of the same units, whether they may be ranked or not."""
        group = self.group(section, task)
        return [
            (architecture, result)
            for architecture, result in self.results(section, task)
            if group and result.group and result.group.test == group.test
        ]

    @functools.cached_property
    def _floors(self) -> dict[tuple[str, ...], Pairs]:
        """The results of floors by their test data."""
        found: dict[tuple[str, ...], Pairs] = {}
        for pairs in self._by_task.values():
            for architecture, result in pairs:
                if result.group and self.is_floor(architecture):
                    found.setdefault(_test_of(result.group), []).append((architecture, result))
        return found

    @functools.cache  # noqa: B019 - a build has one board, which lives as long as the program
    def floor(self, group: Group, metric: str) -> tuple[str, float] | None:
        """Name and mean score of the best floor on the test data of a group; None if there is none.

        Floors need no training, so those of other protocols and budgets hold here too.
        """
        scores = [
            (self.name(architecture).removeprefix("floor: "), summary.mean)
            for architecture, result in self._floors.get(_test_of(group), ())
            if (summary := result.summary(metric))
        ]
        return max(scores, key=lambda found: display_info(metric).quality(found[1]), default=None)

    def reaches_floor(self, group: Group, metric: str, bounds: Sequence[float]) -> bool:
        """True if an interval of a score holds that of the best floor, or only worse ones."""
        floor, quality = self.floor(group, metric), display_info(metric).quality
        return floor is not None and min(map(quality, bounds)) <= quality(floor[1])

    def test_notes(self, result: Result) -> list[str]:
        """Reasons why the test of a result is not the official one; empty if it is, or if the
        corpus is generated."""
        entry = self.tasks.get(result.first.task)
        declared = entry.sizes.get("test") if entry else None
        notes = (other_test_size(record, declared) for record in result.ok)
        return [note for note in dict.fromkeys(notes) if note]

    def beside_published(self, result: Result) -> bool:
        """True if scores of a result may stand beside published ones: on the official test, not on
        a generated corpus, not of protocol smoke, and with no inputs beside those of the paper."""
        first = result.first
        run_for_it = first.tier != "mini" and first.protocol != SMOKE and not first.cell.inputs
        return run_for_it and not self.test_notes(result)

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
        """Sorting key of the survey's tables: floors and classical methods first, then by year."""
        entry = self.architectures.get(architecture)
        year = entry.year if entry else None
        kind = not self.is_floor(architecture), not self.is_classical(architecture)
        return *kind, year or 9999, self.name(architecture), architecture


def _test_of(group: Group) -> tuple[str, ...]:
    return group.task, str(group.task_version), group.tier, group.test


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
    with warnings.catch_warnings(), uncollected():
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
    return Board(store, records, published, architectures, tasks, notices)


@contextmanager
def uncollected() -> Iterator[None]:
    """Stops the collector of cycles. Records are in none, and it would walk all that are there
    whenever some more have come."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _read_published(results: Path) -> list[Published]:
    file = source_file(results, "published.csv")
    return with_notes(read_published(file), source_file(file.parent, "published_notes.csv"))


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
    flat = [dict(flatten(result.first.cell.to_dict())) for result in results]
    labels = _labels(flat)
    if len(set(labels)) < len(labels):  # one cell on two states of the data
        labels = _labels([cell | _data_of(result) for cell, result in zip(flat, results, strict=True)])
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

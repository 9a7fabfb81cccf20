"""All data behind the pages: records, published values, names of architectures and tasks."""

from __future__ import annotations

import functools
import gc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import LeaderboardError, RecordError
from harness.files import sorted_json
from harness.leaderboard.catalogue import CatalogueEntry, read_catalogue
from harness.leaderboard.published import DATASET_NAMES, Published, read_published, source_file, with_notes
from harness.leaderboard.results import Pairs, Result, Section, SectionResults, main_metric_of, sections_of
from harness.leaderboard.speeds import Speed, read_speeds
from harness.leaderboard.unregistered import recorded_architectures, recorded_tasks
from harness.metrics import display_info
from harness.records import Record, Store
from harness.records.code_digest import made_by_other_code
from harness.records.groups import SMOKE, Group
from harness.records.official_test import other_test_size

FLOOR = "floor"
"""Kind of the answers that need no model. They are shown, and never ranked."""


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

    def type_in_words(self, task: str) -> str:
        """Type of a task in words, its id if no such type is registered here, nothing if no such
        task is; recordings are a type of their own, also where other tasks of the type are of
        texts."""
        if task not in self.tasks:
            return ""
        type = self.tasks[task].type
        found = self._types.get(type)
        if found is None:
            return type
        return f"{found.name} of recordings" if found.texts and self._inputs.get(task) == ["audio"] else found.name

    @functools.cached_property
    def _types(self) -> dict[str, registry.ProblemEntry]:
        try:
            return registry.entries("problems")
        except registry.RegistryError:
            return {}

    @functools.cached_property
    def _inputs(self) -> dict[str, object]:
        """The forms in which a task's texts can be read, as the last of its records says; older
        ones do not."""
        told = ((record.task, (record.registered or {}).get("task", {})) for record in self.records)
        return {task: words["inputs"] for task, words in told if words.get("inputs")}

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
            if group and group.has_test_of(result.group)
        ]

    @functools.cached_property
    def _floors(self) -> dict[tuple[str, ...], Pairs]:
        """The results of floors by their test data and tokens."""
        found: dict[tuple[str, ...], Pairs] = {}
        for pairs in self._by_task.values():
            for architecture, result in pairs:
                if result.group and self.is_floor(architecture):
                    found.setdefault(_test_of(result.group), []).append((architecture, result))
        return found

    @functools.cache  # noqa: B019 - a build has one board, which lives as long as the program
    def floor(self, group: Group, metric: str) -> tuple[str, float] | None:
        """Name and mean score of the best floor on the test data and tokens of a group, or None.

        Floors are not trained, so those of other protocols and budgets hold here too; of one that
        was counted from the group's own training examples, that one alone.
        """
        floors: dict[str, list[tuple[Group, float]]] = {}
        for architecture, result in self._floors.get(_test_of(group), ()):
            if result.group and (summary := result.summary(metric)):
                floors.setdefault(architecture, []).append((result.group, summary.mean))
        scores = [
            (self.name(architecture).removeprefix("floor: "), score)
            for architecture, found in floors.items()
            for score in [each for own, each in found if own.train == group.train] or [each for _, each in found]
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

    def metrics_of(self, task: str) -> list[str]:
        """The metrics that records of a task have: the main one, then in the order that the task
        declares, then the rest."""
        main = self.main_metric(task)
        results = (result for section in self.sections for _, result in self.results(section, task))
        recorded = {metric for result in results for metric in result.summaries}
        declared = self.tasks[task].metrics if task in self.tasks else ()
        others = [metric for metric in declared if metric in recorded and metric != main]
        return [main, *others, *sorted(recorded - set(declared) - {main})]

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
    return group.task, str(group.task_version), group.tier, group.test, group.tokens


def read(results: Path) -> Board:
    """Records, published values and names for a results folder; :class:`LeaderboardError` if it is
    none."""
    store = Store(results)
    try:
        store.check_there()
    except RecordError as error:
        raise LeaderboardError(str(error)) from error
    notices = []
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

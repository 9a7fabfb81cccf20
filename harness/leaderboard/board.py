"""What the pages are made of: records, published values, and the names of architectures and
tasks."""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, NamedTuple

from harness import registry
from harness.leaderboard.significance import Summary, summarise
from harness.metrics import display_info
from harness.metrics.information import PER_TOKEN
from harness.records import Record, Store

ROOT = Path(__file__).resolve().parents[2]
TIERS = ("local", "hub", "mini")
PROTOCOLS = ("paper", "equal", "smoke")
SURVEY_TABLES = ("1", "2", "3", "4", "5")
DATASETS = {
    "imdb": "IMDB",
    "sst2": "SST-2",
    "sst5": "SST-5",
    "amazon2": "Amazon-2",
    "amazon5": "Amazon-5",
    "yelp2": "Yelp-2",
    "yelp5": "Yelp-5",
    "ag_news": "AG News",
    "20news": "20 Newsgroups",
    "sogou": "Sogou News",
    "dbpedia": "DBpedia",
    "ohsumed": "Ohsumed",
    "squad1": "SQuAD 1.1",
    "squad2": "SQuAD 2.0",
    "wikiqa": "WikiQA",
    "snli": "SNLI",
    "mnli_matched": "MultiNLI matched",
    "mnli_mismatched": "MultiNLI mismatched",
}


class LeaderboardError(Exception):
    """Input that no leaderboard can be built from; the message names the file or option."""


@dataclass(frozen=True)
class Published:
    """One value as a table of the survey prints it; ``percent`` puts the fractions of its table 4
    on the scale of the others.

    ``counterpart`` is the architecture of ours that it is compared with, empty where there is none;
    ``notes`` say what a reader of the printed value should know.
    """

    table: str
    architecture: str
    method: str
    dataset: str
    metric: str
    printed: str
    classical: bool
    notes: tuple[str, ...] = ()
    counterpart: str = ""

    @property
    def percent(self) -> str:
        """The value in percent with one decimal, halves rounded up."""
        value = Decimal(self.printed) * (100 if self.metric in ("map", "mrr") else 1)
        return str(value.quantize(Decimal("0.1"), ROUND_HALF_UP))


def read_rows(path: Path, expected: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file with these columns, each with its place; :class:`LeaderboardError`
    names the line that is wrong."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if rows.fieldnames != expected:
                raise LeaderboardError(f"{path}: the columns are {rows.fieldnames!s:.200}, expected {expected}")
            for row in rows:
                place = f"{path}:{rows.line_num}"
                if None in row or None in row.values():
                    raise LeaderboardError(
                        f"{place}: the line has not {len(expected)} fields; quote a text that has a comma"
                    )
                yield place, row
    except (UnicodeDecodeError, csv.Error) as error:
        raise LeaderboardError(f"{path}: not a CSV file in UTF-8: {error}") from error


def read_published(path: Path) -> list[Published]:
    """The survey's values in a CSV file; :class:`LeaderboardError` names the line that is not as it
    should be."""
    values = []
    for place, row in read_rows(
        path, ["survey_table", "architecture", "method_as_printed", "dataset", "metric", "value", "kind"]
    ):
        if row["survey_table"] not in SURVEY_TABLES:
            raise LeaderboardError(
                f"{place}: survey_table {row['survey_table'][:40]!r} is none of {', '.join(SURVEY_TABLES)}"
            )
        if not re.fullmatch(r"\d{1,4}(\.\d{1,6})?", row["value"]):
            raise LeaderboardError(f"{place}: value {row['value'][:40]!r} is not a number such as 88.10")
        table, architecture, method, dataset, metric, value, kind = row.values()
        values.append(
            Published(
                table, architecture, method, dataset, metric, value, kind == "classical", counterpart=architecture
            )
        )
    return values


def annotated(published: Sequence[Published], path: Path) -> list[Published]:
    """The values with the notes of a CSV file: survey_table, architecture, dataset, metric, note,
    counterpart.

    An empty dataset or metric means all of that method's values in the table. A counterpart is
    another architecture of ours to compare with (``none``: none), empty where it is the one that
    the value is printed for. :class:`LeaderboardError` names a line that no value fits.
    """
    columns = ["survey_table", "architecture", "dataset", "metric", "note", "counterpart"]
    values = list(published)
    for place, row in read_rows(path, columns):
        if not row["note"].strip():
            raise LeaderboardError(f"{place}: the note is empty")
        fits = [i for i, value in enumerate(values) if _fits(value, row)]
        if not fits:
            raise LeaderboardError(
                f"{place}: no published value is that of {', '.join(row[c] for c in columns[:4] if row[c])}"
            )
        for i in fits:
            counterpart = {"": values[i].counterpart, "none": ""}.get(row["counterpart"], row["counterpart"])
            values[i] = dataclasses.replace(values[i], notes=(*values[i].notes, row["note"]), counterpart=counterpart)
    return values


def _fits(value: Published, row: dict[str, str]) -> bool:
    same = value.table == row["survey_table"] and value.architecture == row["architecture"]
    return same and row["dataset"] in ("", value.dataset) and row["metric"] in ("", value.metric)


@dataclass(frozen=True, eq=False)
class Result:
    """All seeds of one configuration of an architecture on a task, by seed; ``settings`` is what
    sets it apart from its siblings."""

    records: tuple[Record, ...]
    settings: str = ""

    @property
    def first(self) -> Record:
        """A record to read what all seeds share."""
        return self.records[0]

    @functools.cached_property
    def ok(self) -> list[Record]:
        """The records that ended ok."""
        return [record for record in self.records if record.status == "ok"]

    def summary(self, metric: str) -> Summary | None:
        """Test score over the seeds that have one."""
        return self.summaries.get(metric)

    @functools.cached_property
    def summaries(self) -> dict[str, Summary]:
        """Every metric's test score over the seeds that have one."""
        scores: dict[str, list[float]] = {}
        for record in self.ok:
            for metric, score in record.scores.get("test", {}).items():
                scores.setdefault(metric, []).append(score)
        return {metric: summarise(values) for metric, values in scores.items()}

    @functools.cached_property
    def trained_on(self) -> int:
        """Number of training examples, 0 where no record tells."""
        return max((record.counts.get("train", 0) for record in self.ok), default=0)


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


def section_of(record: Record, main_metric: str) -> Section:
    """Section of a record of a task with this main metric."""
    per_token = display_info(main_metric).unit == PER_TOKEN
    return Section(record.tier, record.protocol, str(record.hyperparameters.get("tokens") or "") if per_token else "")


def comparable(results: Iterable[tuple[str, Result]], metric: str) -> list[tuple[str, Result]]:
    """The results that may be ranked against each other by a metric, in their order: those with a
    score that were trained on as many examples as the largest training set among them."""
    scored = [(architecture, result) for architecture, result in results if result.summary(metric)]
    largest = max((result.trained_on for _, result in scored), default=0)
    return [(architecture, result) for architecture, result in scored if result.trained_on == largest]


def architecture_file(architecture: str) -> str:
    """The page of an architecture."""
    return f"architecture-{architecture}.html"


def task_file(task: str) -> str:
    """The page of a task."""
    return f"task-{task}.html"


@dataclass(frozen=True, eq=False)
class Board:
    """Everything the pages are made of; ``sections`` holds the results of each section by
    (architecture, task).

    Boards and results are told apart by identity, so that what is computed from them can be kept.
    """

    store: Store
    records: list[Record]
    published: list[Published]
    architectures: dict[str, registry.Entry]
    tasks: dict[str, registry.Entry]
    notices: list[str]
    sections: dict[Section, dict[tuple[str, str], list[Result]]]

    def name(self, architecture: str) -> str:
        """What an architecture is called; its id when it is not registered here."""
        entry = self.architectures.get(architecture)
        return entry.name if entry else architecture

    def task_name(self, task: str) -> str:
        """What a task or a data set is called."""
        entry = self.tasks.get(task)
        return DATASETS.get(task) or (entry.name if entry else task)

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
        """The file of an architecture's page; empty where it has none, since it has no record."""
        return architecture_file(architecture) if architecture in self._recorded else ""

    @functools.cached_property
    def _recorded(self) -> set[str]:
        return {record.architecture for record in self.records}

    @functools.cached_property
    def recorded_tasks(self) -> list[str]:
        """The tasks that have records, in the order of :attr:`known_tasks`: those that have a
        page."""
        recorded = {record.task for record in self.records}
        return [task for task in self.known_tasks if task in recorded]

    def results(self, section: Section, task: str) -> list[tuple[str, Result]]:
        """Every result of a section's task, with its architecture."""
        return self._by_task.get((section, task), [])

    @functools.cached_property
    def _by_task(self) -> dict[tuple[Section, str], list[tuple[str, Result]]]:
        found: dict[tuple[Section, str], list[tuple[str, Result]]] = {}
        for section, results in self.sections.items():
            for (architecture, task), mine in results.items():
                found.setdefault((section, task), []).extend((architecture, result) for result in mine)
        return found

    def rivals(self, section: Section, task: str, metric: str) -> list[tuple[str, Result]]:
        """The :func:`comparable` ones among the results of a section's task."""
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
        """Fingerprints of the test split that the scores of a section's task were made on; more
        than one cannot be compared."""
        found: dict[tuple[Section, str], set[str]] = {}
        for record in self.records:
            if record.status == "ok" and "test" in record.data:
                section = section_of(record, self.main_metric(record.task))
                found.setdefault((section, record.task), set()).add(record.data["test"])
        return found

    def is_classical(self, architecture: str) -> bool:
        """Whether a row stands in italics: as in the survey, else by the architecture's family."""
        if architecture in self._printed:
            return self._printed[architecture]
        return architecture in self.architectures and self.architectures[architecture].family == "classical"

    @functools.cached_property
    def _printed(self) -> dict[str, bool]:
        return {value.architecture: value.classical for value in reversed(self.published)}

    def order(self, architecture: str) -> tuple[Any, ...]:
        """Sorting key of the survey's tables: classical methods first, then by year."""
        entry = self.architectures.get(architecture)
        return not self.is_classical(architecture), entry.year if entry else 9999, self.name(architecture), architecture


def main_metric_of(task: str, tasks: Mapping[str, registry.Entry], records: Iterable[Record]) -> str:
    """The metric that ranks a task: the one it declares, or that of its records where it is not
    registered."""
    if task in tasks:
        return tasks[task].main_metric
    return next((record.main_metric for record in records if record.task == task and record.main_metric), "accuracy")


def read(results: Path) -> Board:
    """Records, published values and names for one results folder; :class:`LeaderboardError` when
    there is no such folder."""
    if not results.is_dir():
        raise LeaderboardError(f"--results {results}: no such folder; `archbench run` writes one, or name another")
    notices = []
    store = Store(results)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said once, by notices
        records = list(store.all())
    notices += [f"record skipped: {reason}" for reason in store.damaged.values()]
    known: dict[registry.Sort, dict[str, registry.Entry]] = {"architectures": {}, "tasks": {}}
    for sort in known:
        try:
            known[sort] = registry.entries(sort)
            notices += registry.broken(sort).values()
        except registry.RegistryError as error:
            notices.append(f"names and papers of the {sort} are missing: {error}")
    file = _beside(results, "published.csv")
    if file is None:
        notices.append(f"published values are missing: there is no {results / 'published.csv'}")
    published = read_published(file) if file else []
    if file and (noted := _beside(file.parent, "published_notes.csv")):
        published = annotated(published, noted)
    return Board(
        store, records, published, known["architectures"], known["tasks"], notices, sections_of(records, known["tasks"])
    )


def _beside(results: Path, name: str) -> Path | None:
    """A file of a results folder, or else the repository's own of that name."""
    return next((file for file in (results / name, ROOT / "results" / name) if file.is_file()), None)


def sections_of(
    records: Sequence[Record], tasks: Mapping[str, registry.Entry]
) -> dict[Section, dict[tuple[str, str], list[Result]]]:
    """Records by section, then by (architecture, task), seeds of one configuration together."""
    metrics = {task: main_metric_of(task, tasks, records) for task in {record.task for record in records}}
    found: dict[Section, dict[tuple[str, str], dict[str, list[Record]]]] = {}
    for record in records:
        settings = (
            record.architecture_version,
            record.task_version,
            record.precision,
            record.devices,
            record.hyperparameters,
        )
        section = found.setdefault(section_of(record, metrics[record.task]), {})
        seeds = section.setdefault((record.architecture, record.task), {})
        seeds.setdefault(json.dumps(settings, sort_keys=True), []).append(record)
    return {
        key: {pair: _told_apart(seeds.values()) for pair, seeds in sorted(found[key].items())}
        for key in sorted(found, key=lambda key: (_rank(TIERS, key.tier), _rank(PROTOCOLS, key.protocol), key))
    }


def _rank(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _told_apart(groups: Iterable[list[Record]]) -> list[Result]:
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

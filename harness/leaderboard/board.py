"""What the pages are made of: records, published values, and the names of architectures and tasks."""

from __future__ import annotations

import csv
import functools
import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from harness import registry
from harness.records import Record, Store
from harness.statistics import Summary, summarise

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
    """One value as a table of the survey prints it; ``percent`` puts the fractions of its table 4 on the scale of the others."""

    table: str
    architecture: str
    method: str
    dataset: str
    metric: str
    printed: str
    classical: bool

    @property
    def percent(self) -> str:
        """The value in percent with one decimal, halves rounded up."""
        value = Decimal(self.printed) * (100 if self.metric in ("map", "mrr") else 1)
        return str(value.quantize(Decimal("0.1"), ROUND_HALF_UP))


def read_published(path: Path) -> list[Published]:
    """The survey's values in a CSV file; :class:`LeaderboardError` names the line that is not as it should be."""
    expected = ["survey_table", "architecture", "method_as_printed", "dataset", "metric", "value", "kind"]
    values = []
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != expected:
            raise LeaderboardError(f"{path}: the columns are {rows.fieldnames}, expected {expected}")
        for row in rows:
            if row["survey_table"] not in SURVEY_TABLES:
                raise LeaderboardError(
                    f"{path}:{rows.line_num}: survey_table {row['survey_table']!r} is none of {', '.join(SURVEY_TABLES)}"
                )
            try:
                Decimal(row["value"])
            except (InvalidOperation, TypeError):
                raise LeaderboardError(f"{path}:{rows.line_num}: value {row['value']!r} is not a number") from None
            values.append(Published(*[row[column] for column in expected[:6]], classical=row["kind"] == "classical"))
    return values


@dataclass(frozen=True)
class Result:
    """All seeds of one configuration of an architecture on a task, by seed; ``settings`` is what sets it apart from its siblings."""

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
        scores = [record.scores["test"][metric] for record in self.ok if metric in record.scores.get("test", {})]
        return summarise(scores) if scores else None

    @property
    def trained_on(self) -> int:
        """Number of training examples, 0 where no record tells."""
        return max((record.counts.get("train", 0) for record in self.ok), default=0)


Section = tuple[str, str]


@dataclass(frozen=True)
class Board:
    """Everything the pages are made of; ``sections`` holds the results of each (tier, protocol) by (architecture, task)."""

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

    def main_metric(self, task: str) -> str:
        """The metric that ranks a task."""
        if task in self.tasks:
            return self.tasks[task].main_metric
        return next((record.main_metric for record in self.records if record.task == task and record.main_metric), "accuracy")

    @functools.cached_property
    def test_data(self) -> dict[tuple[Section, str], set[str]]:
        """Fingerprints of the test split that the scores of a section's task were made on; more than one cannot be compared."""
        found: dict[tuple[Section, str], set[str]] = {}
        for record in self.records:
            if record.status == "ok" and "test" in record.data:
                found.setdefault(((record.tier, record.protocol), record.task), set()).add(record.data["test"])
        return found

    def is_classical(self, architecture: str) -> bool:
        """Whether a row stands in italics: as in the survey, else by the architecture's family."""
        for value in self.published:
            if value.architecture == architecture:
                return value.classical
        return architecture in self.architectures and self.architectures[architecture].family == "classical"

    def order(self, architecture: str) -> tuple[Any, ...]:
        """Sorting key of the survey's tables: classical methods first, then by year."""
        entry = self.architectures.get(architecture)
        return not self.is_classical(architecture), entry.year if entry else 9999, self.name(architecture), architecture


def read(results: Path) -> Board:
    """Records, published values and names for one results folder; :class:`LeaderboardError` when there is no such folder."""
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
    file = next((f for f in (results / "published.csv", ROOT / "results" / "published.csv") if f.is_file()), None)
    if file is None:
        notices.append(f"published values are missing: there is no {results / 'published.csv'}")
    return Board(
        store, records, read_published(file) if file else [], known["architectures"], known["tasks"], notices, sections_of(records)
    )


def sections_of(records: Iterable[Record]) -> dict[Section, dict[tuple[str, str], list[Result]]]:
    """Records by (tier, protocol), then by (architecture, task), seeds of one configuration together."""
    found: dict[Section, dict[tuple[str, str], dict[str, list[Record]]]] = {}
    for record in records:
        settings = record.cell.to_dict()
        del settings["seed"]
        section = found.setdefault((record.tier, record.protocol), {})
        seeds = section.setdefault((record.architecture, record.task), {})
        seeds.setdefault(json.dumps(settings, sort_keys=True), []).append(record)
    return {
        key: {pair: _told_apart(seeds.values()) for pair, seeds in sorted(found[key].items())}
        for key in sorted(found, key=lambda key: (_rank(TIERS, key[0]), _rank(PROTOCOLS, key[1]), key))
    }


def _rank(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _told_apart(groups: Iterable[list[Record]]) -> list[Result]:
    """One result per configuration, each labelled with the settings in which it differs from the others."""
    results = [Result(tuple(sorted(group, key=lambda record: record.seed))) for group in groups]
    flat = [dict(_flatten(result.first.cell.to_dict())) for result in results]
    differing = [name for name in sorted(set().union(*flat)) if name != "seed" and len({str(f.get(name)) for f in flat}) > 1]
    labels = [", ".join(f"{name.removeprefix('hyperparameters.')}={f.get(name)}" for name in differing) for f in flat]
    return [Result(result.records, label) for label, result in sorted(zip(labels, results, strict=True), key=lambda pair: pair[0])]


def _flatten(value: object, name: str = "") -> Iterable[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key in value:
            yield from _flatten(value[key], f"{name}.{key}" if name else str(key))
    else:
        yield name, value

"""Values that the tables of the survey print, with notes on some of them."""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from harness.errors import LeaderboardError

SOURCES = Path(__file__).with_name("sources")
"""Folder of what the source texts say: published values, notes on them, the systems."""
SURVEY_TABLES = ("1", "2", "3", "4", "5")
DATASET_NAMES = {
    "imdb": "IMDB",
    "sst2": "SST-2",
    "sst5": "SST-5",
    "amazon2": "Amazon-2",
    "amazon5": "Amazon-5",
    "yelp2": "Yelp-2",
    "yelp5": "Yelp-5",
    "ag_news": "AG News",
    "newsgroups20": "20 Newsgroups",
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


@dataclass(frozen=True)
class Published:
    """One value as a table of the survey prints it.

    ``counterpart`` is the architecture of ours to compare it with, empty if there is none.
    ``notes`` are caveats for readers of the value; ``misprint`` is true if it is likely to be one.
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
    misprint: bool = False

    @property
    def percent(self) -> str:
        """The value in percent with all digits that are printed; table 4 prints fractions."""
        return f"{Decimal(self.printed).scaleb(2 if self.metric in ('map', 'mrr') else 0):f}"


def source_file(results: Path, name: str) -> Path:
    """A file of the source texts: the results folder's own, or else that of the package."""
    own = results / name
    return own if own.is_file() else SOURCES / name


def read_rows(path: Path, expected: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file with the ``expected`` columns, each with its place (file and line).

    :class:`LeaderboardError` names a line with another number of fields.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if rows.fieldnames != expected:
                raise LeaderboardError(f"{path}: the columns are {rows.fieldnames!s:.200}, expected {expected}")
            for row in rows:
                place = f"{path}:{rows.line_num}"
                if None in row or None in row.values():
                    raise LeaderboardError(f"{place}: expected {len(expected)} fields; quote a text that has a comma")
                yield place, row
    except (UnicodeDecodeError, csv.Error) as error:
        raise LeaderboardError(f"{path}: not a CSV file in UTF-8: {error}") from error


def read_published(path: Path) -> list[Published]:
    """The survey's values in a CSV file; :class:`LeaderboardError` names a malformed line."""
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


def with_notes(published: Sequence[Published], path: Path) -> list[Published]:
    """The values with the notes of a CSV file (survey_table, architecture, dataset, metric, note,
    counterpart, misprint).

    An empty dataset or metric means all of that method's values in the table. The counterpart is
    the architecture of ours to compare with: ``none`` for no comparison, empty for the architecture
    that the value is printed for. Misprint is ``likely`` or empty. :class:`LeaderboardError` names
    a line without any such value.
    """
    columns = ["survey_table", "architecture", "dataset", "metric", "note", "counterpart", "misprint"]
    values = list(published)
    for place, row in read_rows(path, columns):
        if not row["note"].strip():
            raise LeaderboardError(f"{place}: the note is empty")
        if row["misprint"] not in ("", "likely"):
            raise LeaderboardError(f"{place}: misprint {row['misprint'][:40]!r} is neither likely nor empty")
        fits = [i for i, value in enumerate(values) if _fits(value, row)]
        if not fits:
            raise LeaderboardError(
                f"{place}: there is no published value of {', '.join(row[c] for c in columns[:4] if row[c])}"
            )
        for i in fits:
            counterpart = {"": values[i].counterpart, "none": ""}.get(row["counterpart"], row["counterpart"])
            values[i] = dataclasses.replace(
                values[i],
                notes=(*values[i].notes, row["note"]),
                counterpart=counterpart,
                misprint=values[i].misprint or bool(row["misprint"]),
            )
    return values


def _fits(value: Published, row: dict[str, str]) -> bool:
    same = value.table == row["survey_table"] and value.architecture == row["architecture"]
    return same and row["dataset"] in ("", value.dataset) and row["metric"] in ("", value.metric)

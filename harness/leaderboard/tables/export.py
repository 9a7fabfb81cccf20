"""The facts behind the tables for other programs: ``tables.csv``, ``costs.csv`` and
``leaderboard.json``.

``leaderboard.json`` holds ``schema`` (2), ``legend`` (how to read the scores, as on the pages),
``results`` and ``published``.

A result is one configuration of an architecture on a task in one section, all seeds together. Its
fields:

- ``tier``, ``protocol``, ``protocol_version``, ``budget`` (its name), ``sees`` (data that training
  used besides the labelled training examples, null if not recorded), ``vectors`` (the name of given
  word vectors, or null), ``inputs`` (the names of further inputs, or null), ``tokens`` (the token
  unit, null except for metrics per token), ``group`` (the same for all results that may be
  compared, null where none ended ok), ``task``,
  ``task_name``, ``architecture``, ``name``, ``family`` and ``kind`` (both null if neither the
  registry nor the records tell of them), ``settings`` (differences to the other configurations),
  ``main_metric``;
- ``seeds`` (those that ended ok), ``partial``, ``training_examples``, ``at_floor`` (no better than
  an answer without training), ``rank`` (null if it is not ranked), ``shares_first_place`` (null
  where nothing was tested), ``corrected_p`` (of the distance to the best; null for the best and
  where nothing was tested), ``notes``;
- ``records``: every seed, with ``key``, ``seed``, ``status``, ``reason`` (null if it is ok),
  ``commit``, ``dirty``, ``started``, ``passes`` over the training examples (null for what is not
  trained in passes), ``examples`` (by split) and ``scores`` (by split and metric). The outcome of
  each test unit is in ``records/TASK/ARCHITECTURE/KEY.outcomes.json.gz`` of the results folder;
- ``scores``: by metric, ``mean``, ``sd``, ``n``, ``low`` and ``high`` (95 % interval, of the main
  metric alone), ``published``, ``difference`` and ``survey_table`` (id of the table in which it
  stands, beside published values or alone, null for others). Means, deviations and ends are those
  of the records: fractions for most metrics, nats for ``nats_per_token``. ``published`` is
  in percent; ``difference`` is in points, that of the two rounded values, as on the pages;
- ``costs``: one object per machine with ``device``, ``keys`` of its records, ``beside`` (the
  largest number of other cells at a time, null if not recorded), ``unstable`` (of a training speed)
  and the mean of each measurement; sizes (``parameters``, ``FLOPs/example``) are the same in all of
  them.

``published`` lists the survey's values: ``survey_table``, ``architecture``, ``method``,
``dataset``, ``metric``, ``printed``, ``percent``, ``classical``, ``counterpart`` (our architecture
to compare with, or null), ``misprint`` (likely to be one) and ``notes``.

``tables.csv`` has a row for each result and metric in the columns of :data:`SCORES`, and one for
each value of the survey. ``source`` is ``ours`` or ``survey``. Fractions are in percent and
unrounded; ``difference`` is in points, as in the JSON; ``sees`` is in words; ``keys``, ``commits``,
``seeds`` and ``passes`` have a space between records, in one order. A result without any score has
one row with an empty metric and its status. ``costs.csv`` has a row for each result and machine in
the columns of :data:`COSTS`. In both, a text that a spreadsheet would take for a formula has an
apostrophe in front.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from harness.leaderboard.board import Board
from harness.leaderboard.comparison import Comparison, compare
from harness.leaderboard.published import Published
from harness.leaderboard.ranking import at_floor, ranks
from harness.leaderboard.results import Result, Section
from harness.leaderboard.tables.cost import COUNTS, MEASURES, by_device, max_other_cells, mean_of
from harness.leaderboard.tables.formatting import caveats, counterpart, difference, failure_reason
from harness.leaderboard.tables.survey import Survey
from harness.metrics import display_info
from harness.metrics.information import PERCENT
from harness.records import Record
from harness.records.groups import seen

SCHEMA = 2
"""Raised when a field of ``leaderboard.json`` changes its meaning."""
RESULT = (
    "task",
    "architecture",
    "name",
    "settings",
    "tier",
    "protocol",
    "protocol_version",
    "budget",
    "sees",
    "vectors",
    "inputs",
    "tokens",
    "group",
)
"""Columns that say which result a row is of."""
SCORES = (
    "source",
    "survey_table",
    *RESULT,
    *("metric", "main", "mean", "sd", "n", "low", "high"),
    *("rank", "shares_first_place", "corrected_p", "at_floor"),
    *("published", "difference", "counterpart", "misprint"),
    *("partial", "training_examples", "test_examples", "passes", "seeds", "keys", "commits", "status", "reason"),
)
COSTS = (*RESULT, "device", "keys", "beside", "unstable", *MEASURES, *COUNTS)


def results(board: Board, surveys: Iterable[Survey] = ()) -> Iterator[dict[str, Any]]:
    """All results of the board, by task and section; those of ``surveys`` say in which of these
    tables they are."""
    tables = {
        (result, metric): survey.id
        for survey in surveys
        for table in survey.tables
        for method in table.rows
        for (_, metric), pair in method.pairs.items()
        for result in pair.ours
    }
    for task in board.recorded_tasks:
        metrics = board.metrics_of(task)
        for section in board.sections:
            yield from _section_results(board, section, task, metrics, tables)


def _section_results(
    board: Board, section: Section, task: str, metrics: Sequence[str], tables: Mapping[tuple[Result, str], str]
) -> Iterator[dict[str, Any]]:
    comparison = compare(board, section, task)
    places = ranks(board, section, task, metrics[0])
    against = comparison if comparison and len(comparison.rivals) > 1 else None
    for architecture, result in board.results(section, task):
        yield {
            **_identity(board, section, task, architecture, result),
            "main_metric": metrics[0],
            "seeds": [record.seed for record in result.ok],
            "partial": result.partial,
            "training_examples": result.trained_on or None,
            "rank": places.get(result),
            "shares_first_place": against.shares_first_place(result) if against else None,
            "corrected_p": comparison.corrected_p(result) if comparison else None,
            "at_floor": bool(at_floor(board, result)),
            "notes": list(caveats(board, result)) if result.ok else [],
            "records": [_record(record) for record in result.records],
            "scores": _scores(board, result, metrics, comparison, tables),
            "costs": _costs(result),
        }


def _identity(board: Board, section: Section, task: str, architecture: str, result: Result) -> dict[str, Any]:
    entry = board.architectures.get(architecture)
    return {
        "tier": section.tier,
        "protocol": section.protocol,
        "protocol_version": section.protocol_version,
        "budget": section.budget,
        "sees": None if section.sees is None else list(section.sees),
        "vectors": section.vectors.name if section.vectors else None,
        "inputs": section.input_names or None,
        "tokens": section.tokens or None,
        "group": result.group.id if result.group else None,
        "task": task,
        "task_name": board.task_name(task),
        "architecture": architecture,
        "name": board.name(architecture),
        "family": entry.family if entry else None,
        "kind": (entry.kind or None) if entry else None,
        "settings": result.settings,
    }


def _record(record: Record) -> dict[str, Any]:
    return {
        "key": record.key,
        "seed": record.seed,
        "status": record.status,
        "reason": None if record.status == "ok" else failure_reason(record),
        "commit": record.commit,
        "dirty": record.dirty,
        "started": record.started,
        "passes": record.passes,
        "examples": dict(record.counts),
        "scores": record.scores,
    }


def _scores(
    board: Board,
    result: Result,
    metrics: Sequence[str],
    comparison: Comparison | None,
    tables: Mapping[tuple[Result, str], str],
) -> dict[str, dict[str, Any]]:
    scores = {
        metric: _score(board, result, metric) | {"survey_table": tables.get((result, metric))}
        for metric in metrics
        if result.summary(metric)
    }
    bounds = comparison.interval(result) if comparison else None
    if bounds and metrics[0] in scores:
        scores[metrics[0]] |= {"low": bounds[0], "high": bounds[1]}
    return scores


def _score(board: Board, result: Result, metric: str) -> dict[str, Any]:
    summary, published = result.summary(metric), counterpart(board, result, metric)
    assert summary
    return {
        "mean": summary.mean,
        "sd": summary.sd,
        "n": summary.n,
        "low": None,
        "high": None,
        "published": float(published.percent) if published else None,
        "difference": difference(published, metric, summary) if published else None,
    }


def _costs(result: Result) -> list[dict[str, Any]]:
    sizes = {name: mean_of(result.ok, count.measure) for name, count in COUNTS.items()}
    return [
        {
            "device": machine,
            "keys": [record.key for record in records],
            "beside": max_other_cells(records),
            "unstable": any(record.speed.get("unstable") for record in records),
            **{name: mean_of(records, measure) for name, measure in MEASURES.items()},
            **sizes,
        }
        for machine, records in by_device(result).items()
    ]


def json_lines(board: Board, legend: Sequence[str], results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines of ``leaderboard.json``, without any ``<``, so that a page can embed it: one line for
    each object, because a diff of two builds is then readable, and json is many times slower with
    indentation."""
    published = [
        {
            "survey_table": value.table,
            "architecture": value.architecture,
            "method": value.method,
            "dataset": value.dataset,
            "metric": value.metric,
            "printed": value.printed,
            "percent": float(value.percent),
            "classical": value.classical,
            "counterpart": value.counterpart or None,
            "misprint": value.misprint,
            "notes": list(value.notes),
        }
        for value in board.published
    ]
    content = {"legend": legend, "results": results, "published": published}
    yield f'{{"schema": {SCHEMA}'
    for name, values in content.items():
        yield f',\n"{name}": [\n'
        for number, value in enumerate(values):
            line = json.dumps(value, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
            yield f",\n{line}" if number else line
        yield "\n]"
    yield "}\n"


def scores_csv(results: Iterable[dict[str, Any]], published: Iterable[Published]) -> str:
    """Text of ``tables.csv``, with the line ends of RFC 4180."""
    ours = (row for result in results for row in _score_rows(result))
    return _csv(SCORES, chain(ours, map(_published_row, published)))


def costs_csv(results: Iterable[dict[str, Any]]) -> str:
    """Text of ``costs.csv``, with the line ends of RFC 4180."""
    return _csv(COSTS, (_words(result) | _spaced(cost, "keys") for result in results for cost in result["costs"]))


def _csv(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _csv_field(value) for name, value in row.items()})
    return text.getvalue()


def _csv_field(value: Any) -> Any:
    """A value as it stands in the file: names and messages come from others, and a spreadsheet runs
    a formula in them."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _words(result: dict[str, Any]) -> dict[str, Any]:
    return result | {"sees": seen(result["sees"])}


def _spaced(row: dict[str, Any], *names: str) -> dict[str, Any]:
    """A row in which some lists are words with spaces between; a dash for what is not known."""
    return row | {name: " ".join("-" if each is None else str(each) for each in row[name]) for name in names}


def _score_rows(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each metric of a result, or the one of a result without a score. Seeds, keys,
    commits and passes are of the records that ended ok."""
    scored = [record for record in result["records"] if record["status"] == "ok"]
    others = [record for record in result["records"] if record["status"] != "ok"]
    tests = [record["examples"].get("test") for record in scored]
    lists = {"seeds": "seed", "keys": "key", "commits": "commit", "passes": "passes"}
    shared = _words(result) | {
        "source": "ours",
        "test_examples": max((n for n in tests if n is not None), default=None),
        **{name: [record[field] for record in scored] for name, field in lists.items()},
        "status": " ".join(dict.fromkeys(record["status"] for record in [*scored, *others])),
        "reason": "; ".join(dict.fromkeys(record["reason"] for record in others)),
    }
    shared = _spaced(shared, *lists)
    no_place = {"rank": None, "shares_first_place": None, "corrected_p": None}
    for metric, score in result["scores"].items():
        main = metric == result["main_metric"]
        yield (
            shared | score | _in_percent(metric, score) | ({} if main else no_place) | {"metric": metric, "main": main}
        )
    if not result["scores"]:
        yield shared | no_place | {"metric": ""}


def _published_row(value: Published) -> dict[str, Any]:
    return {
        "source": "survey",
        "survey_table": value.table,
        "task": value.dataset,
        "architecture": value.architecture,
        "name": value.method,
        "metric": value.metric,
        "published": value.percent,
        "counterpart": value.counterpart,
        "misprint": value.misprint,
    }


def _in_percent(metric: str, score: dict[str, Any]) -> dict[str, float | None]:
    """The values of a score, times 100 if they are fractions."""
    info = display_info(metric)
    scale = info.scale if info.unit == PERCENT else float
    return {name: None if score[name] is None else scale(score[name]) for name in ("mean", "sd", "low", "high")}

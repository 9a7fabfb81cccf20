"""The facts behind the tables for other programs: ``tables.csv`` and ``leaderboard.json``.

``leaderboard.json`` holds ``schema`` (1), ``legend`` (how to read the scores, as on the pages),
``results`` and ``published``.

A result is one configuration of an architecture on a task in one section, all seeds together. Its
fields:

- ``tier``, ``protocol``, ``protocol_version``, ``budget`` (its name), ``sees`` (data that training
  used besides the labelled training examples, null if not recorded), ``vectors`` (the name of given
  word vectors, or null), ``tokens`` (the token unit, null except for metrics per token), ``group``
  (the same for all results that may be compared, null where none ended ok), ``task``,
  ``task_name``, ``architecture``, ``name``, ``family`` and ``kind`` (both null if neither the
  registry nor the records tell of them), ``settings`` (differences to the other configurations),
  ``main_metric``;
- ``seeds`` (those that ended ok), ``not_ok`` (seed, status and reason of the others), ``partial``,
  ``training_examples``, ``at_floor`` (no better than an answer without training), ``rank`` (null if
  it is not ranked), ``shares_first_place`` (null where nothing was tested), ``corrected_p`` (of the
  distance to the best; null for the best and where nothing was tested), ``notes``;
- ``scores``: by metric, ``mean``, ``sd``, ``n``, ``low`` and ``high`` (95 % interval over test
  units, of the main metric alone), ``published`` and ``difference``. Means, deviations and ends are
  those of the records: fractions for most metrics, nats for ``nats_per_token``. ``published`` and
  ``difference`` are percent and points;
- ``costs``: one object per machine with ``device``, ``records``, ``beside`` (the largest number of
  other cells at a time, null if not recorded), ``unstable`` (of a training speed) and the mean of
  each measurement; sizes (``parameters``, ``FLOPs/example``) are the same in all of them.

``published`` lists the survey's values: ``survey_table``, ``architecture``, ``method``,
``dataset``, ``metric``, ``printed``, ``percent``, ``classical``, ``counterpart`` (our architecture
to compare with, or null) and ``notes``.

``tables.csv`` has a line for each score and each cost of a result, in the columns of
:data:`COLUMNS`. Fractions are in percent and differences in points, both unrounded. ``beside`` is
filled for speeds; ``sees`` is in words. A result without any score has one line with an empty
metric and its status. A text that a spreadsheet would take for a formula has an apostrophe in
front.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness.leaderboard.board import Board, Result, Section
from harness.leaderboard.comparison import Comparison, compare
from harness.leaderboard.pages.task_page import metrics_of
from harness.leaderboard.ranking import at_floor, ranks
from harness.leaderboard.tables.cost import COUNTS, MEASURES, SPEEDS, by_device, max_other_cells, mean_of
from harness.leaderboard.tables.formatting import caveats, counterpart, difference, failure_reason
from harness.metrics import display_info
from harness.metrics.information import PERCENT
from harness.records.groups import seen

COLUMNS = (
    "tier",
    "protocol",
    "protocol_version",
    "budget",
    "sees",
    "vectors",
    "tokens",
    "group",
    "task",
    "architecture",
    "name",
    "settings",
    "metric",
    "mean",
    "sd",
    "n",
    "low",
    "high",
    "rank",
    "shares_first_place",
    "corrected_p",
    "at_floor",
    "partial",
    "training_examples",
    "published",
    "difference",
    "device",
    "status",
    "reason",
    "beside",
)


def results(board: Board) -> Iterator[dict[str, Any]]:
    """All results of the board, by task and section."""
    for task in board.recorded_tasks:
        metrics = metrics_of(board, task)
        for section in board.sections:
            yield from _section_results(board, section, task, metrics)


def _section_results(board: Board, section: Section, task: str, metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    comparison = compare(board, section, task)
    places = ranks(board, section, task, metrics[0])
    for architecture, result in board.results(section, task):
        yield {
            **_identity(board, section, task, architecture, result),
            "main_metric": metrics[0],
            **_seeds(result),
            "rank": places.get(result),
            "shares_first_place": _shares_first_place(comparison, result),
            "corrected_p": comparison.corrected_p(result) if comparison else None,
            "at_floor": bool(at_floor(board, result)),
            "notes": list(caveats(board, result)) if result.ok else [],
            "scores": _scores(board, result, metrics, comparison),
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


def _seeds(result: Result) -> dict[str, Any]:
    return {
        "seeds": [record.seed for record in result.ok],
        "not_ok": [
            {"seed": record.seed, "status": record.status, "reason": failure_reason(record)}
            for record in result.records
            if record.status != "ok"
        ],
        "partial": result.partial,
        "training_examples": result.trained_on or None,
    }


def _shares_first_place(comparison: Comparison | None, result: Result) -> bool | None:
    """None if the result was not tested against others."""
    if comparison is None or len(comparison.rivals) < 2 or comparison.row(result) not in comparison.rivals:
        return None
    return comparison.shares_first_place(result)


def _scores(
    board: Board, result: Result, metrics: Sequence[str], comparison: Comparison | None
) -> dict[str, dict[str, Any]]:
    scores = {metric: _score(board, result, metric) for metric in metrics if result.summary(metric)}
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
    sizes = {name: mean_of(result.ok, measure) for name, (measure, _) in COUNTS.items()}
    return [
        {
            "device": machine,
            "records": len(records),
            "beside": max_other_cells(records),
            "unstable": any(record.speed.get("unstable") for record in records),
            **{name: mean_of(records, measure) for name, measure in MEASURES.items()},
            **sizes,
        }
        for machine, records in by_device(result).items()
    ]


def to_json(board: Board, legend: Sequence[str], results: Sequence[dict[str, Any]]) -> str:
    """Text of ``leaderboard.json``, without any ``<``, so that a page can embed it."""
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
            "notes": list(value.notes),
        }
        for value in board.published
    ]
    content = {"legend": legend, "results": results, "published": published}
    # One line for each object, because a diff of two builds is then readable, and json is many
    # times slower with indentation.
    lists = [f'"{name}": [\n' + ",\n".join(map(_object, values)) + "\n]" for name, values in content.items()]
    return ('{"schema": 1,\n' + ",\n".join(lists) + "}\n").replace("<", "\\u003c")


def _object(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def to_csv(results: Sequence[dict[str, Any]]) -> str:
    """Text of ``tables.csv``, with the line ends of RFC 4180."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", extrasaction="ignore")
    writer.writeheader()
    for result in results:
        words = {"sees": seen(result["sees"])}
        for line in _lines(result):
            writer.writerow({name: _csv_field(value) for name, value in (result | words | line).items()})
    return text.getvalue()


def _csv_field(value: Any) -> Any:
    """A value as it stands in the file: names and messages come from others, and a spreadsheet runs
    a formula in them."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _lines(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Columns that differ between the lines of one result."""
    statuses = (["ok"] if result["seeds"] else []) + [cell["status"] for cell in result["not_ok"]]
    status = {
        "status": " ".join(dict.fromkeys(statuses)),
        "reason": "; ".join(dict.fromkeys(cell["reason"] for cell in result["not_ok"])),
    }
    no_place = {"rank": None, "shares_first_place": None, "corrected_p": None}
    for metric, score in result["scores"].items():
        place = {} if metric == result["main_metric"] else no_place
        yield score | _in_percent(metric, score) | status | place | {"metric": metric}
    if not result["scores"]:
        yield no_place | status | {"metric": ""}
    for cost in result["costs"]:
        for line in _cost_lines(cost):
            yield no_place | status | line


def _in_percent(metric: str, score: dict[str, Any]) -> dict[str, float | None]:
    """The values of a score, times 100 if they are fractions."""
    info = display_info(metric)
    scale = info.scale if info.unit == PERCENT else float
    return {name: None if score[name] is None else scale(score[name]) for name in ("mean", "sd", "low", "high")}


def _cost_lines(cost: dict[str, Any]) -> Iterator[dict[str, Any]]:
    other_cells = {"beside": "not recorded" if cost["beside"] is None else cost["beside"]}
    for name in (*MEASURES, *COUNTS):
        if cost[name] is not None:
            line = {"metric": name, "mean": cost[name], "n": cost["records"], "device": cost["device"]}
            yield line | other_cells if name in SPEEDS else line

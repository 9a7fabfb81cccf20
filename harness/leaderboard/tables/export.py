"""The facts behind the tables for other programs: ``tables.csv`` and ``leaderboard.json``.

``leaderboard.json`` holds ``schema`` (1), ``legend`` (how to read the scores, as on the pages),
``results`` and ``published``.

A result is one configuration of an architecture on a task in one tier and protocol, all seeds
together: ``tier``, ``protocol``, ``tokens`` (null except for metrics per token),
``task``, ``task_name``, ``architecture``, ``name``, ``family``,
``kind`` (both null where it is not registered), ``settings`` (what sets it apart from its
siblings), ``main_metric``, ``seeds`` (those that ended ok), ``not_ok`` (seed, status and reason of
the others), ``partial``, ``training_examples``, ``rank`` and ``shares_first_place`` (null where
that cannot be said), ``notes``, ``scores`` and ``costs``. ``scores`` maps a metric to ``mean``,
``sd``, ``n``, ``low`` and ``high`` (95 % interval over test units, of the main metric alone),
``published`` and ``difference``. Means, deviations and ends are those of the records (fractions for
most metrics; ``nats_per_token``, which pages show as perplexity, in nats);
``published`` and ``difference`` are percent and points. ``costs`` has one object per machine:
``device``, ``records``, ``beside`` (the most other cells that ran on it at a time, null where that
was not recorded), ``unstable`` (whether a training speed is) and the mean of each measurement;
sizes (``parameters``, ``FLOPs/example``) stand in all of them. ``published`` lists the survey's
values: ``survey_table``, ``architecture``, ``method``, ``dataset``, ``metric``, ``printed``,
``percent``, ``classical``, ``counterpart`` (our architecture to compare with, or null) and
``notes``.

``tables.csv`` has a line for each score and each cost of a result, in the columns of
:data:`COLUMNS`; fractions in percent, differences in points, both unrounded; ``beside`` is
filled for speeds. A result without any score has one line, whose metric is empty and whose status
says why.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness.leaderboard.board import Board, Result, Section
from harness.leaderboard.comparison import evidence
from harness.leaderboard.pages.task_page import metrics_of, ranks
from harness.leaderboard.tables.cost import COUNTS, MEASURES, SPEEDS, by_device, mean_of, most_beside
from harness.leaderboard.tables.formatting import caveats, counterpart, difference, interval, reason
from harness.metrics import display_info
from harness.metrics.information import PERCENT

COLUMNS = (
    "tier",
    "protocol",
    "tokens",
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
    """Every result of the board, by task and section."""
    for task in board.recorded_tasks:
        metrics = metrics_of(board, task)
        for section in board.sections:
            yield from _section(board, section, task, metrics)


def _section(board: Board, section: Section, task: str, metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    mine = board.results(section, task)
    main = metrics[0]
    known = evidence(board, section, task)
    places = ranks(board, section, task, main)
    for architecture, result in mine:
        entry = board.architectures.get(architecture)
        scores = {metric: _score(board, result, metric) for metric in metrics if result.summary(metric)}
        if main in scores and (bounds := interval(known, result)):
            scores[main] |= {"low": bounds[0], "high": bounds[1]}
        tested = known is not None and len(known.rivals) > 1 and known.row(result) is not None
        yield {
            "tier": section.tier,
            "protocol": section.protocol,
            "tokens": section.tokens or None,
            "task": task,
            "task_name": board.task_name(task),
            "architecture": architecture,
            "name": board.name(architecture),
            "family": entry.family if entry else None,
            "kind": entry.kind if entry else None,
            "settings": result.settings,
            "main_metric": main,
            "seeds": [record.seed for record in result.ok],
            "not_ok": [
                {"seed": r.seed, "status": r.status, "reason": reason(r)} for r in result.records if r.status != "ok"
            ],
            "partial": any(record.partial for record in result.ok),
            "training_examples": result.trained_on or None,
            "rank": places.get(result),
            "shares_first_place": known.row(result) in known.tied if known and tested else None,
            "notes": list(caveats(board, result)) if result.ok else [],
            "scores": scores,
            "costs": [
                {"device": machine, "records": len(records), "beside": most_beside(records)}
                | {"unstable": any(record.speed.get("unstable") for record in records)}
                | {name: mean_of(records, measure) for name, measure in MEASURES.items()}
                | {name: mean_of(result.ok, measure) for name, (measure, _) in COUNTS.items()}
                for machine, records in by_device(result).items()
            ],
        }


def _score(board: Board, result: Result, metric: str) -> dict[str, Any]:
    summary, printed = result.summary(metric), counterpart(board, result, metric)
    assert summary
    return {
        "mean": summary.mean,
        "sd": summary.sd,
        "n": summary.n,
        "low": None,
        "high": None,
        "published": float(printed.percent) if printed else None,
        "difference": difference(printed, metric, summary) if printed else None,
    }


def to_json(board: Board, legend: Sequence[str], found: Sequence[dict[str, Any]]) -> str:
    """The text of ``leaderboard.json``; it may stand inside a page, since it holds no ``<``."""
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
    content = {"legend": legend, "results": found, "published": published}
    # One line for each object: a difference between two builds names it, and json writes an
    # indented text many times slower.
    lists = [f'"{name}": [\n' + ",\n".join(map(_object, values)) + "\n]" for name, values in content.items()]
    return ('{"schema": 1,\n' + ",\n".join(lists) + "}\n").replace("<", "\\u003c")


def _object(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def to_csv(found: Sequence[dict[str, Any]]) -> str:
    """The text of ``tables.csv``: lines end as RFC 4180 has it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", extrasaction="ignore")
    writer.writeheader()
    for result in found:
        for line in _lines(result):
            writer.writerow({name: "" if value is None else value for name, value in (result | line).items()})
    return text.getvalue()


def _lines(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What the lines of a result have of their own."""
    failed = {
        "status": " ".join(
            dict.fromkeys((["ok"] if result["seeds"] else []) + [cell["status"] for cell in result["not_ok"]])
        ),
        "reason": "; ".join(dict.fromkeys(cell["reason"] for cell in result["not_ok"])),
    }
    for metric, score in result["scores"].items():
        info = display_info(metric)
        show = info.shown if info.unit == PERCENT else float
        shown = {name: None if score[name] is None else show(score[name]) for name in ("mean", "sd", "low", "high")}
        main = {} if metric == result["main_metric"] else {"rank": None, "shares_first_place": None}
        yield score | shown | failed | main | {"metric": metric}
    other = {"rank": None, "shares_first_place": None} | failed
    if not result["scores"]:
        yield other | {"metric": ""}
    for cost in result["costs"]:
        for name in (*MEASURES, *COUNTS):
            if cost[name] is not None:
                company = (
                    {"beside": "not recorded" if cost["beside"] is None else cost["beside"]} if name in SPEEDS else {}
                )
                yield (
                    other
                    | company
                    | {"metric": name, "mean": cost[name], "n": cost["records"], "device": cost["device"]}
                )

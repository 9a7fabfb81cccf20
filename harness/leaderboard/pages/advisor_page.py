"""Advice from the records: which architecture for a task, a number of labelled examples and limits
on latency and memory.

The page holds the scores of every group that is ranked and the costs of its rows;
``advisor.js`` answers from them. It recommends nothing that the records do not hold: for each task
it takes the group that was trained on most examples, but no more than the reader has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.leaderboard.board import Board, task_file
from harness.leaderboard.pages.front_page import MINI_REMARK, verdict
from harness.leaderboard.pages.page import Page
from harness.leaderboard.picture import row_id
from harness.leaderboard.ranking import ranked
from harness.leaderboard.results import Result, Section
from harness.leaderboard.tables.formatting import axis_title, format_score, section_title
from harness.metrics import display_info


def advisor_page(board: Board) -> Page:
    """The page with a form; without records a sentence that there are none."""
    groups = list(_groups(board))
    lead = [
        "Say what you have and what you can spend. For each task the answer takes the results that were trained on most"
        " examples, but on no more than you have, and names the best of them and the cheapest that is almost as good."
        " Only results that may be compared with each other are: the same data, rules and budget, above the floor, from"
        " labelled examples alone.",
        *([MINI_REMARK] if groups and all(group["tier"] == "mini" for group in groups) else []),
    ]
    types: dict[str, list[tuple[str, str]]] = {}
    for group in groups:
        task = group["task"], group["name"]
        if task not in types.setdefault(group["type"], []):
            types[group["type"]].append(task)
    return Page("advisor.html", "Advisor", "advisor.html", {"lead": lead, "types": types, "groups": groups})


def _groups(board: Board) -> Iterator[dict[str, Any]]:
    """The ranked rows of every section and task that learn from labelled examples alone, without
    anything given or learnt before; those of generated corpora only where there are no others."""
    sections = [section for section in board.sections if section.ranked and section.alone]
    real = [section for section in sections if section.tier != "mini"]
    for section in real or sections:
        for task in board.recorded_tasks:
            metric = board.main_metric(task)
            if rows := ranked(board, section, task, metric):
                info = display_info(metric)
                yield {
                    "task": task,
                    "name": board.task_name(task),
                    "type": board.type_in_words(task),
                    "tier": section.tier,
                    "section": section_title(section),
                    "page": task_file(task),
                    "metric": axis_title(metric),
                    "lower": info.lower_is_better,
                    "examples": max(result.trained_on for _, result in rows),
                    "verdict": verdict(board, section, task),
                    "rows": [_row(board, section, metric, *pair) for pair in rows],
                }


def _row(board: Board, section: Section, metric: str, architecture: str, result: Result) -> dict[str, Any]:
    summary, speed = result.summary(metric), board.speeds.get(architecture)
    assert summary
    return {
        "name": board.result_name(architecture, result),
        "row": row_id(board, section, result),
        "score": display_info(metric).round(summary.mean),
        "shown": format_score(metric, summary),
        "latency": speed and speed.latency_ms,
        "memory": speed and speed.memory_mib,
    }

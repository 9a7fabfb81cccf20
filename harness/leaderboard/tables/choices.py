"""Choices on test of systems that act, beside their scores: who reads less, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from harness.leaderboard.board import Board
from harness.leaderboard.results import Pairs, Result
from harness.leaderboard.tables.formatting import metric_label, our_row, score_parts, section_title
from harness.leaderboard.tables.table import BLANK, Block, Part, Table
from harness.records.groups import SMOKE

LEAD = [
    (
        "Means over the test examples, and over seeds, of what each system chose while it read them. A reference"
        " chooses at random: with an equal share, the distance to it is what the other's choices are worth. The share"
        " of a reference is an option (`-o id_lstm_random.share=0.8`)."
    )
]


def choice_tables(board: Board, task: str) -> Iterator[Table]:
    """A table for each section in which a system told of its choices."""
    for section in board.sections:
        acting = [
            (id, result)
            for id, result in board.results(section, task)
            if section.protocol != SMOKE and any(record.choices for record in result.ok)
        ]
        if acting:
            title = f"{board.task_name(task)}: what was chosen on test, {section_title(section)}"
            yield _table(board, task, f"choices-{task}-{section.id}", title, acting)


def _table(board: Board, task: str, id: str, title: str, acting: Pairs) -> Table:
    metric = board.main_metric(task)
    names = sorted({name for _, result in acting for record in result.ok for name in record.choices or ()})
    rows = []
    for architecture, result in sorted(acting, key=lambda pair: (board.order(pair[0]), pair[1].settings)):
        cells = [_cell(result, name) for name in names]
        settings = [Part(result.settings)] if result.settings else BLANK
        rows.append(our_row(board, architecture, [settings, score_parts(board, result, metric, False), *cells]))
    columns = ["Architecture", "settings", metric_label(metric), *names]
    return Table(id, title, columns, [Block("", rows)], LEAD, text_columns=(1,))


def _cell(result: Result, name: str) -> list[Part]:
    """The mean of a choice over the seeds that tell it, in percent."""
    values = [float(record.choices[name]) for record in result.ok if record.choices and name in record.choices]
    mean = fmean(values) if values else math.nan
    return [Part(f"{100 * mean:.1f} %", order=mean)] if math.isfinite(mean) else BLANK

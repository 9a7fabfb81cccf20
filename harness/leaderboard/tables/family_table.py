"""The families of architectures on a task: the best and the median of each."""

from __future__ import annotations

import statistics

from harness.leaderboard.board import Board
from harness.leaderboard.ranking import ranked, scored
from harness.leaderboard.results import Result, Section
from harness.leaderboard.summary import Summary
from harness.leaderboard.tables.formatting import format_score, metric_label, section_title
from harness.leaderboard.tables.table import Block, Part, Table, TableRow
from harness.metrics import display_info


def family_tables(board: Board, task: str) -> list[Table]:
    """A table for each section that ranks two families or more."""
    tables = (family_table(board, section, task) for section in board.sections)
    return [table for table in tables if len(table.blocks[0].rows) > 1]


def family_table(board: Board, section: Section, task: str) -> Table:
    """A row for each family with a ranked result, the best first."""
    metric = board.main_metric(task)
    info, label = display_info(metric), metric_label(metric)
    families: dict[str, list[tuple[Summary, str, Result]]] = {}
    for architecture, result in ranked(board, section, task, metric):
        if summary := result.summary(metric):
            families.setdefault(board.family(architecture), []).append((summary, architecture, result))
    all_scored = [board.family(architecture) for architecture, _ in scored(board, section, task, metric)]
    best = {family: max(rows, key=lambda row: info.quality(row[0].mean)) for family, rows in families.items()}
    rows = []
    for family in sorted(best, key=lambda family: (-info.quality(best[family][0].mean), family)):
        summary, architecture, result = best[family]
        median = statistics.median(each.mean for each, _, _ in families[family])
        cells = [
            [Part(f"{len(families[family])} of {all_scored.count(family)}")],
            [Part(format_score(metric, summary))],
            [Part(board.result_name(architecture, result), link=board.page_of(architecture))],
            [Part(info.format(median))],
        ]
        rows.append(TableRow(family or "not known", cells))
    lead = [
        "Ranked are the results that may be compared and are above the floor; the median is theirs. A family with many"
        " results has more chances of a high best one."
    ]
    columns = ["Family", "ranked", f"best {label}", "by", f"median {label}"]
    title = f"{board.task_name(task)}: families, {section_title(section)}"
    return Table(f"families-{task}-{section.id}", title, columns, [Block("", rows)], lead, text_columns=(3,))

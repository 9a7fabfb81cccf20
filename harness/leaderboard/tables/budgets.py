"""Tables of a task over several amounts of training: how far the order of the architectures holds,
and from how many examples on one is ahead of counting words."""

from __future__ import annotations

from harness.leaderboard.board import Board
from harness.leaderboard.orders import agreements
from harness.leaderboard.results import Section, versioned
from harness.leaderboard.sizes import Lines, Place, ahead_from, best_classical, lines
from harness.leaderboard.tables.formatting import metric_label, our_row
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow
from harness.metrics import display_info
from harness.records.groups import Group


def budget_tables(board: Board, task: str) -> list[Table]:
    """The tables for which a task has the records."""
    sizes = [size_table(board, task, place, of_place) for place, of_place in lines(board, task).items()]
    return [*filter(None, [order_table(board, task)]), *sizes]


def order_table(board: Board, task: str) -> Table | None:
    """Rank correlations between the amounts of training of a task."""
    rows = []
    for found in agreements(board, task):
        low_high = "–" if found.interval is None else " to ".join(map(_signed, found.interval))
        besides = Section.of(found.first).besides
        cells = [
            [Part(_amount(found.second))],
            [Part(", ".join((versioned(found.first.protocol, found.first.protocol_version), *besides)))],
            [Part(str(found.shared))],
            [Part(_signed(found.correlation))],
            [Part(low_high)],
        ]
        rows.append(TableRow(_amount(found.first), cells))
    if not rows:
        return None
    lead = [
        "Spearman's rank correlation of the scores of the architectures that both have: 1 is the same order, 0 none in"
        " common. The interval is over other architectures (Bonett and Wright 2000)."
    ]
    columns = ["Order by", "and by", "protocol, and what is seen", "architectures", "rank correlation", "95 % interval"]
    title = f"{board.task_name(task)}: does the order hold with more training?"
    return Table(f"orders-{task}", title, columns, [Block("", rows)], lead, text_columns=(1, 2))


def _signed(correlation: float) -> str:
    return f"{correlation:.2f}".replace("-", "−")


def _amount(group: Group) -> str:
    return f"{group.tier}, {group.budget.name} ({group.budget.words})"


def size_table(board: Board, task: str, place: Place, of_place: Lines) -> Table:
    """Scores by the number of training examples; bold is better than every classical row."""
    info, classical = display_info(board.main_metric(task)), best_classical(board, task, of_place)
    sizes = sorted({size for points in of_place.values() for size in points})
    rows = []
    for architecture, points in of_place.items():
        is_classical = board.is_classical(architecture)
        cells = []
        for size in sizes:
            better = size in points and size in classical and info.quality(points[size]) > info.quality(classical[size])
            cells.append([Part(info.format(points[size]), "best" if better else "")] if size in points else BLANK)
        start = ahead_from(board, task, points, classical)
        cells.append([Part("–" if is_classical else "not here" if start is None else f"{start:,}")])
        rows.append(our_row(board, architecture, cells))
    lead = [
        "Each size is a training of its own; test scores, one setting per architecture. Bold: better than every"
        " classical row (in italics) at that size. The last column is the smallest size from which that holds at every"
        " larger one."
    ]
    if not classical:
        lead.append("There is no classical row here to compare with.")
    columns = ["Architecture", *(f"{size:,} examples" for size in sizes), "ahead of the classical from"]
    title = f"{board.task_name(task)}: {metric_label(board.main_metric(task))} by training examples, {place.words}"
    return Table(place.id, title, columns, [Block("", rows)], lead)

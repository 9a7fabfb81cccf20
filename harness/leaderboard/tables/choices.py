"""Choices on test of systems that act, beside their scores: who reads less, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from harness.leaderboard.board import Board
from harness.leaderboard.results import Pairs, Result
from harness.leaderboard.tables.formatting import metric_label, our_row, score_parts, section_title, text_cell
from harness.leaderboard.tables.table import BLANK, Block, Part, Table
from harness.records.groups import SMOKE

LEAD = [
    (
        "Means over the test examples, and over seeds, of what each system chose while it read them. A reference"
        " chooses at random: with an equal choice, the distance to it is what the other's choices are worth, less what"
        " learning to choose costs. The share of a reference is an option (`-o id_lstm_random.share=0.8`)."
    )
]
EQUAL = 0.01
"""Largest difference of two means of a choice that count as equal: one point of a share."""


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
    """A row for each system and settings: its score, that of a reference with an equal choice, and
    the choices."""
    metric = board.main_metric(task)
    names = sorted({name for _, result in acting for name in _means(result)})
    references = [result for architecture, result in acting if _is_reference(board, architecture)]
    rows = []
    for architecture, result in sorted(acting, key=lambda pair: (board.order(pair[0]), pair[1].settings)):
        beside = None if result in references else _equal(result, references)
        means = _means(result)
        cells = [
            text_cell(result.settings),
            score_parts(board, result, metric, False),
            score_parts(board, beside, metric, False) if beside else BLANK,
            *([Part(_shown(name, means[name]), order=means[name])] if name in means else BLANK for name in names),
        ]
        rows.append(our_row(board, architecture, cells))
    columns = ["Architecture", "settings", metric_label(metric), "at random, as much", *names]
    return Table(id, title, columns, [Block("", rows)], LEAD, text_columns=(1,))


def _shown(name: str, mean: float) -> str:
    """A share in percent; any other choice, such as a number of steps, as it is."""
    return f"{100 * mean:.1f} %" if name.startswith("share") else f"{mean:.3g}"


def _is_reference(board: Board, architecture: str) -> bool:
    entry = board.architectures.get(architecture)
    return entry is not None and entry.is_reference


def _equal(result: Result, references: list[Result]) -> Result | None:
    """The reference of the same group whose choices are nearest to those of a result; None if there
    is none with equal ones."""
    means = _means(result)
    distances = [
        (max(abs(means[name] - found[name]) for name in means), i)
        for i, reference in enumerate(references)
        if reference.group == result.group and (found := _means(reference)).keys() == means.keys()
    ]
    distance, place = min(distances, default=(EQUAL + 1, 0))
    return references[place] if distance <= EQUAL else None


def _means(result: Result) -> dict[str, float]:
    """The choices by name: means over the seeds that tell them."""
    told: dict[str, list[float]] = {}
    for record in result.ok:
        for name, value in (record.choices or {}).items():
            told.setdefault(name, []).append(float(value))
    return {name: fmean(values) for name, values in told.items()}

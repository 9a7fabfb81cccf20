"""Tables of methods x data sets: the published value, ours, their difference, and the number of
training examples of ours."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.leaderboard.board import Board
from harness.leaderboard.published import Published
from harness.leaderboard.results import Result
from harness.leaderboard.tables.beside import beside, score_line, without_score
from harness.leaderboard.tables.formatting import (
    about,
    difference,
    failures,
    format_points,
    metric_label,
    training_size,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow

Column = tuple[str, str]
"""Data set and metric."""

LEGEND = (
    "One row for each method. Published is the value that the survey prints, in percent, with the digits that it"
    " prints; – : it prints none. Ours is the mean on the test split ± the standard deviation over seeds (number of"
    " seeds). The difference is ours minus the published value, in points. Training examples are those of ours. Italics"
    " are classical methods.",
    "Not here: archbench has no such model. Not run: it has, and there is no record. Left out: the score is from the"
    " generated corpus, from protocol smoke, of further inputs, or not from the official test. Other words say how the"
    " cell ended. Columns without any value are left out.",
)


@dataclass(frozen=True)
class Pair:
    """One column of a method: the published value, and the results of ours that have a score by the
    metric. ``words`` stand in place of a score."""

    published: Published | None
    ours: tuple[Result, ...]
    words: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Method:
    """One row: the name, the id of our architecture (empty if there is none), and its pairs."""

    name: str
    architecture: str
    classical: bool
    title: str
    pairs: Mapping[Column, Pair]


@dataclass(frozen=True)
class Methods:
    """A table of methods; ``columns`` are those with a value of at least one row."""

    id: str
    title: str
    columns: list[Column]
    rows: list[Method]

    @functools.cached_property
    def notes(self) -> dict[str, int]:
        """The notes on published values with their numbers, in the order of the rows."""
        values = [pair.published for method in self.rows for pair in method.pairs.values() if pair.published]
        return {note: i for i, note in enumerate(dict.fromkeys(note for value in values for note in value.notes), 1)}

    @functools.cached_property
    def has_published(self) -> bool:
        """False for a table of ours alone."""
        return any(pair.published for method in self.rows for pair in method.pairs.values())


def printed(board: Board, id: str, title: str, columns: Sequence[Column], values: Iterable[Published]) -> Methods:
    """The methods of published values, in the order in which they are printed, with ours beside."""
    by_method: dict[tuple[str, str], dict[Column, Published]] = {}
    for value in values:
        by_method.setdefault((value.method, value.architecture), {})[value.dataset, value.metric] = value
    rows = []
    for (method, id_in_survey), of_method in by_method.items():
        own = next((value.counterpart for value in of_method.values() if value.counterpart), "")
        pairs = {}
        for column in columns:
            here = of_method.get(column)
            pairs[column] = _pair(board, here.counterpart if here else own, column, here)
        classical = next(iter(of_method.values())).classical
        rows.append(Method(method, own, classical, id_in_survey, pairs))
    return Methods(id, title, _filled(columns, rows), rows)


def ours_alone(
    board: Board, id: str, title: str, columns: Sequence[Column], taken: Collection[str], official: bool
) -> Methods:
    """The architectures of ours that have a score and are not ``taken``; ``official`` as for
    :func:`~harness.leaderboard.tables.beside.beside`."""
    rows = []
    for architecture in board.known_architectures:
        if architecture in taken or not board.page_of(architecture):
            continue
        pairs = {column: _pair(board, architecture, column, official=official) for column in columns}
        if any(pair.ours for pair in pairs.values()):
            classical = board.is_classical(architecture)
            rows.append(Method(board.name(architecture), architecture, classical, about(board, architecture), pairs))
    return Methods(id, title, _filled(columns, rows), rows)


def _pair(
    board: Board, architecture: str, column: Column, value: Published | None = None, *, official: bool = True
) -> Pair:
    task, metric = column
    results = beside(board, architecture, task, official=official)
    ours = tuple(result for result in results if result.summary(metric))
    if ours:
        return Pair(value, ours)
    if results:
        return Pair(value, (), (Part("not scored", "failed", (f"no test score called {metric}",)),))
    return Pair(value, (), tuple(without_score(board, architecture, task)))


def _filled(columns: Sequence[Column], rows: Sequence[Method]) -> list[Column]:
    return [c for c in columns if any(row.pairs[c].published or row.pairs[c].ours for row in rows)]


# --- as a table ---


def to_table(board: Board, methods: Methods) -> Table:
    """The table as pages and Markdown show it: up to four columns for a data set and metric, of
    which those without any value are left out."""
    over: list[tuple[str, int]] = []
    columns = ["Method"]
    cells: list[list[list[Part]]] = [[] for _ in methods.rows]
    for column in methods.columns:
        pairs = [method.pairs[column] for method in methods.rows]
        kept = _kept(pairs)
        over.append((heading(board, column), len(kept)))
        columns += kept
        for row, pair in zip(cells, pairs, strict=True):
            filled = _cells(board, pair, column[1])
            row += [filled[name] for name in kept]
    rows = [
        TableRow(method.name, row, method.classical, method.title, board.page_of(method.architecture))
        for method, row in zip(methods.rows, cells, strict=True)
    ]
    return Table(methods.id, methods.title, columns, [Block("", rows)], over=tuple(over))


def heading(board: Board, column: Column) -> str:
    """Data set and metric, such as "SST-2 accuracy"."""
    return f"{board.task_name(column[0])} {metric_label(column[1])}"


def _kept(pairs: Sequence[Pair]) -> list[str]:
    """The columns of a data set and metric that a row fills."""
    ours = any(pair.ours for pair in pairs)
    filled = {
        "published": any(pair.published for pair in pairs),
        "ours": ours,
        "difference": any(pair.published and pair.ours for pair in pairs),
        "training examples": ours,
    }
    return [name for name, has in filled.items() if has]


def _cells(board: Board, pair: Pair, metric: str) -> dict[str, list[Part]]:
    return {
        "published": _published_cell(pair),
        "ours": _ours_cell(board, pair, metric),
        "difference": _difference_cell(pair, metric),
        "training examples": _size_cell(pair),
    }


def _published_cell(pair: Pair) -> list[Part]:
    value = pair.published
    return BLANK if value is None else [Part(value.percent, "", value.notes, f"printed as {value.printed}")]


def _ours_cell(board: Board, pair: Pair, metric: str) -> list[Part]:
    """A line for each result, followed by those of its seeds that did not end ok; or the words in
    place of a score."""
    lines = [line for result in pair.ours for line in (score_line(board, result, metric), *failures(result))]
    return lines or list(pair.words)


def _difference_cell(pair: Pair, metric: str) -> list[Part]:
    """Ours minus the published value, on the lines of the results; empty where one of them is
    missing."""
    value = pair.published
    lines = []
    for result in pair.ours if value else ():
        summary = result.summary(metric)
        assert value and summary
        lines += [Part(format_points(difference(value, metric, summary))), *_empty_below(result)]
    return lines or [Part("")]


def _size_cell(pair: Pair) -> list[Part]:
    """Training examples of ours, on the lines of the results; empty where there is none."""
    lines = [line for result in pair.ours for line in [*training_size(result), *_empty_below(result)]]
    return lines or [Part("")]


def _empty_below(result: Result) -> list[Part]:
    """Lines that keep step with those of the seeds that did not end ok."""
    return [Part("") for _ in failures(result)]

r"""Tables as LaTeX: a file for each, and ``all.tex``, which inputs them.

They need the packages array, booktabs and longtable, and the encoding T1. No table is wider than
the text of ``all.tex`` (A4 with margins of 20 mm), at ``\small``: the width of every cell is
bounded from above (:func:`width`), and columns that do not fit go to a further table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.leaderboard.board import Board
from harness.leaderboard.ranking import best_results
from harness.leaderboard.results import Section
from harness.leaderboard.tables.formatting import (
    difference,
    format_points,
    format_score,
    metric_label,
    section_title,
)
from harness.leaderboard.tables.methods import Column, Method, Methods, Pair
from harness.leaderboard.tables.survey import Survey
from harness.metrics import display_info

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # after a line break, [ would begin its optional argument
    "]": "{]}",
    "±": r"$\pm$",
    "−": r"$-$",
    "↓": r"$\downarrow$",
    "ρ": r"$\rho$",
    "–": "--",
    "…": r"\ldots{}",
}
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))

TEXT_WIDTH = 483.0
r"""Points: 170 mm, the text width of ``all.tex``."""
NAME_WIDTH = 128.0
"""Points: 45 mm, in which longer names are broken between words."""
GAP = 8.0
r"""Points between two columns, twice ``\tabcolsep``."""
WIDTHS = (("!',.:;[]`ilfj", 0.31), (" -Irst()", 0.40), ("acegoz0123456789*/^", 0.51), ("mMwW%#@…—", 1.2))
"""Upper bounds of the widths of characters in em of Computer Modern."""
CAPITAL, OTHER = 0.8, 0.57
"""The same for all other capitals and signs, and for all other letters."""
SMALL = 9.25
r"""Points of an em at ``\small`` of a 10-point document."""
BOLD = 1.2
"""Upper bound of the width of bold digits, by that of others."""


def escape(text: str) -> str:
    """Text on one line, with all LaTeX markup escaped."""
    return _SPECIAL.sub(lambda match: SPECIAL[match[0]], " ".join(text.split()))


def width(text: str) -> float:
    r"""An upper bound of the width of a text at ``\small`` in points."""
    return SMALL * sum(map(_em, text))


def _em(character: str) -> float:
    bound = next((em for characters, em in WIDTHS if character in characters), None)
    return bound or (OTHER if character.islower() else CAPITAL)


def document(names: Iterable[str]) -> str:
    """Text of ``all.tex``: all tables, each from its own file."""
    lines = [
        r"\documentclass[10pt,a4paper]{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[margin=20mm]{geometry}",
        r"\usepackage{array,booktabs,longtable}",
        r"\begin{document}",
        *(rf"\input{{{name}}}" for name in names),
        r"\end{document}",
    ]
    return "\n".join(lines) + "\n"


# --- the survey's tables ---


def survey_latex(board: Board, survey: Survey) -> str:
    """The tables of one page: the published value on the first line of a cell, ours and the
    difference in brackets on the next ones."""
    lines = [HEAD, rf"\section*{{{escape(survey.title)}}}"]
    for table in survey.tables:
        if table.title != survey.title:
            lines.append(rf"\subsection*{{{escape(table.title)}}}")
        for columns in _fitting(board, table):
            lines += _methods(board, table, columns)
        lines += [f"{escape(text)}\n" for text in _below(board, table)]
    return "\n".join(lines) + "\n"


HEAD = r"% Needs \usepackage{array,booktabs,longtable} and, for pdflatex, \usepackage[T1]{fontenc}."
HEADING = "Method"
LEGEND = (
    "First line of a cell: the value that the survey prints, a dash where it prints none. Below: ours, the mean ± the"
    " standard deviation (number of seeds), and in brackets ours minus the published value in points."
)


def _fitting(board: Board, table: Methods) -> list[list[Column]]:
    """The columns in groups that fit beside the names."""
    left = TEXT_WIDTH - _name_width(method.name for method in table.rows) - GAP  # a gap is half before, half after
    groups: list[list[Column]] = []
    free = 0.0
    for column in table.columns:
        needed = _column_width(board, table, column) + GAP
        if not groups or needed > free:
            groups.append([])
            free = left
        groups[-1].append(column)
        free -= needed
    return groups


def _name_width(names: Iterable[str]) -> float:
    """Points for a column of names: that of the longest name if it is not too wide, and never less
    than that of the longest word."""
    shown = [HEADING, *names]
    words = [word for name in shown for word in name.split()]
    return max(min(NAME_WIDTH, max(map(width, shown))), max(map(width, words)))


def _column_width(board: Board, table: Methods, column: Column) -> float:
    texts = [text for method in table.rows for text in _cell(table, method.pairs[column], column)]
    return max(map(width, [*_heading(board, column), *texts]))


def _heading(board: Board, column: Column) -> list[str]:
    """The lines above a column."""
    return [*board.task_name(column[0]).split(), metric_label(column[1])]


def _cell(table: Methods, pair: Pair, column: Column) -> list[str]:
    """The lines of a cell, not escaped; those of ours alone where the table prints no others."""
    value = pair.published
    lines = [] if not table.has_published else [value.percent + _marks(table, value.notes)] if value else ["–"]
    for result in pair.ours:
        summary = result.summary(column[1])
        assert summary
        points = f" ({format_points(difference(value, column[1], summary))})" if value else ""
        lines.append(format_score(column[1], summary) + points)
    return lines


def _marks(table: Methods, notes: Sequence[str]) -> str:
    return f" [{', '.join(str(table.notes[note]) for note in notes)}]" if notes else ""


def _methods(board: Board, table: Methods, columns: Sequence[Column]) -> Iterator[str]:
    stacks = (r"\\".join(map(escape, _heading(board, column))) for column in columns)
    head = "".join(rf" & \shortstack[r]{{{stack}}}" for stack in stacks)
    yield from _begin(_name_width(method.name for method in table.rows), len(columns), HEADING + head)
    for method in table.rows:
        yield from _method_lines(method, [_cell(table, method.pairs[column], column) for column in columns])
    yield from END


def _method_lines(method: Method, cells: Sequence[Sequence[str]]) -> Iterator[str]:
    name = escape(method.name)
    height = max(1, *map(len, cells))
    for i in range(height):
        first = (rf"\emph{{{name}}}" if method.classical else name) if i == 0 else ""
        texts = [escape(cell[i]) if i < len(cell) else "" for cell in cells]
        yield " & ".join([first, *texts]) + (r" \\*" if i < height - 1 else r" \\")


def _below(board: Board, table: Methods) -> Iterator[str]:
    """Paragraphs below a table: how to read it, the training examples of ours, the notes."""
    if table.has_published:
        yield LEGEND
    sizes = []
    for dataset in dict.fromkeys(dataset for dataset, _ in table.columns):
        found = sorted(
            {
                result.trained_on
                for method in table.rows
                for (column, _), pair in method.pairs.items()
                if column == dataset
                for result in pair.ours
                if result.trained_on
            }
        )
        if found:
            ends = f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"
            sizes.append(f"{board.task_name(dataset)} {ends}")
    if sizes:
        yield f"Training examples of ours: {', '.join(sizes)}."
    for note, number in table.notes.items():
        yield f"[{number}] {note}"


# --- the tables of tasks ---


class Score(NamedTuple):
    """A row of a task's table."""

    name: str
    classical: bool
    score: str
    best: bool
    examples: str


def task_latex(board: Board, task: str) -> str:
    """All scores on one task by the main metric, best first, a table for each section; bold as on
    the page of the task."""
    label = metric_label(board.main_metric(task))
    lines = [HEAD, rf"\section*{{{escape(board.task_name(task))}}}"]
    for section in board.sections:
        if rows := _scores(board, section, task):
            scores = max(BOLD * width(text) for text in (label, *(row.score for row in rows)))
            taken = scores + width(EXAMPLES) + 3 * GAP
            lines.append(f"{escape(section_title(section))}\n")
            lines += _begin(TEXT_WIDTH - taken, 2, f"Architecture & {escape(label)} & {EXAMPLES}")
            lines += map(_score_line, rows)
            lines += END
    return "\n".join(lines) + "\n"


EXAMPLES = "training examples"


def _scores(board: Board, section: Section, task: str) -> list[Score]:
    metric = board.main_metric(task)
    best, quality = best_results(board, section, task, metric), display_info(metric).quality
    found = [
        (architecture, result, summary)
        for architecture, result in board.results(section, task)
        if (summary := result.summary(metric))
    ]
    found.sort(key=lambda each: (-quality(each[2].mean), board.order(each[0]), each[1].settings))
    return [
        Score(
            board.result_name(architecture, result),
            board.is_classical(architecture),
            format_score(metric, summary),
            result in best,
            f"{result.trained_on:,}" if result.trained_on else "",
        )
        for architecture, result, summary in found
    ]


def _score_line(row: Score) -> str:
    name, score = escape(row.name), escape(row.score)
    name = rf"\emph{{{name}}}" if row.classical else name
    return " & ".join([name, rf"\textbf{{{score}}}" if row.best else score, row.examples]) + r" \\"


# --- what all tables share ---


def _begin(name_width: float, columns: int, head: str) -> list[str]:
    """The begin of a table with a column of names and others of numbers."""
    return [
        r"{\small\setlength{\tabcolsep}{4pt}",
        rf"\begin{{longtable}}{{>{{\raggedright\arraybackslash}}p{{{name_width:.0f}pt}}{'r' * columns}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
    ]


END = [r"\end{longtable}}"]

r"""Tables as LaTeX: fragments for ``\input``, with the packages booktabs and longtable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from harness.leaderboard.tables.table import Part, Table, TableRow

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
    "–": "--",
    "…": r"\ldots{}",
}
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))


def latex(title: str, legend: Iterable[str], tables: Iterable[Table]) -> str:
    """Tables as LaTeX longtables with numbered notes below each."""
    lines = [
        "% Needs \\usepackage{booktabs,longtable} and, for pdflatex, \\usepackage[T1]{fontenc}.",
        f"\\section*{{{escape(title)}}}",
    ]
    lines += [f"{escape(text)}\n" for text in legend]
    for table in tables:
        lines += [
            f"\\subsection*{{{escape(table.title)}}}",
            *(f"{escape(text)}\n" for text in table.lead),
            *_table(table),
        ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text on one line, with all LaTeX markup escaped."""
    return _SPECIAL.sub(lambda match: SPECIAL[match[0]], " ".join(text.split()))


def _table(table: Table) -> list[str]:
    columns = "l" + "".join("l" if i in table.text_columns else "r" for i in range(1, len(table.columns)))
    lines = [
        f"\\begin{{longtable}}{{{columns}}}",
        "\\toprule",
        _line(map(escape, table.columns)),
        "\\midrule",
        "\\endhead",
        "\\bottomrule",
    ]
    lines.append("\\endfoot")
    for i, block in enumerate(table.blocks):
        if i:
            lines.append("\\midrule")
        if block.title:
            lines.append(f"\\multicolumn{{{len(table.columns)}}}{{l}}{{\\textbf{{{escape(block.title)}}}}} \\\\")
        lines += [line for row in block.rows for line in _rows(table, row)]
    lines += ["\\end{longtable}"]
    if table.notes:
        lines += ["\\begin{enumerate}", *(f"\\item {escape(note)}" for note in table.notes), "\\end{enumerate}"]
    return lines


def _rows(table: Table, row: TableRow) -> list[str]:
    """The lines of a row, as many as its longest cell has."""
    name = escape(row.name)
    first = (f"\\emph{{{name}}}" if row.classical else name) + _marks(table, row.notes)
    height = max((1, *map(len, row.cells)))
    names = [first] + [""] * (height - 1)
    lines = [[_part(table, cell[i]) if i < len(cell) else "" for cell in row.cells] for i in range(height)]
    return [_line([name, *line]) for name, line in zip(names, lines, strict=True)]


def _part(table: Table, part: Part) -> str:
    text = escape(part.text)
    return (f"\\textbf{{{text}}}" if part.style == "best" else text) + _marks(table, part.notes)


def _marks(table: Table, notes: Sequence[str]) -> str:
    return f"\\textsuperscript{{{','.join(str(table.notes[note]) for note in notes)}}}" if notes else ""


def _line(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"

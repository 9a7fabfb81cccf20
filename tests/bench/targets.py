"""The table of ``make bench``: what was measured beside what, and whether it is as fast as it should be."""

from __future__ import annotations

import operator
from dataclasses import dataclass

SIGNS = {">=": operator.ge, "<=": operator.le}


@dataclass
class Row:
    """One target: ``measured`` has to lie on the right side (``sign``) of ``target``; both in ``unit`` ("x" for a ratio)."""

    what: str
    against: str
    sign: str
    target: float
    measured: float
    unit: str = "x"
    why: str = ""
    """For a target that is not met: where the limit lies, as was measured."""

    @property
    def met(self) -> bool:
        return SIGNS[self.sign](self.measured, self.target)


HEADINGS = ["what", "against", "target", "measured", "met"]


def lines(rows: list[Row]) -> list[list[str]]:
    """Cells of the table."""
    return [
        [
            r.what,
            r.against,
            f"{r.sign} {r.target:g}{_spaced(r.unit)}",
            f"{_digits(r.measured)}{_spaced(r.unit)}",
            "yes" if r.met else f"no: {r.why}",
        ]
        for r in rows
    ]


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _spaced(unit: str) -> str:
    return unit if unit in ("x", "") else f" {unit}"


def markdown(rows: list[Row]) -> str:
    """The table for ``results/speed.md``."""
    shown = [HEADINGS, ["---", "---", "---:", "---:", "---"], *lines(rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in shown) + "\n"

"""The table of ``make bench``: what was measured beside what, and whether it is as fast as it
should be."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.records.provenance import environment

SIGNS = {">=": operator.ge, "<=": operator.le}


@dataclass
class Row:
    """One target: ``measured`` has to lie on the right side (``sign``) of ``target``; both in
    ``unit`` ("x" for a ratio)."""

    what: str
    against: str
    sign: str
    target: float
    measured: float
    unit: str = "x"
    why: str = ""
    """For a target that is not met: where the limit lies, as was measured."""
    cpu: str = ""
    """The processor of the machine that it was measured on."""

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
    """The table for ``results/speed.md``; it names the machines where they are several."""
    table = [HEADINGS, ["---", "---", "---:", "---:", "---"], *lines(rows)]
    if len({row.cpu for row in rows}) > 1:
        table = [[*cells, last] for cells, last in zip(table, ["machine", "---", *(r.cpu for r in rows)], strict=True)]
    return markdown_table(table) + "\n"


def markdown_table(rows: list[list[str]]) -> str:
    """Lines of a table; the second of them says how its columns are aligned."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def kept(file: Path) -> dict[str, Any]:
    """The figures of earlier runs, from which the report is made; none where there is no file
    yet."""
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def here(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the processor of this machine."""
    cpu = environment()["cpu"]
    return [row | {"cpu": cpu} for row in rows]


def keep(file: Path, **figures: Any) -> None:
    """Put figures of this machine into the file in place of those of the same names; others stay,
    and so do the machines that they are from."""
    found, machine = kept(file), environment()
    found |= figures | {"machines": found.get("machines", {}) | {machine["cpu"]: machine}}
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

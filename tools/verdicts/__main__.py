"""``python -m tools.verdicts``: how often a verdict of the leaderboard is false, and how often a
true lead is found.

Boards of systems are made up whose true scores are known; their seeds and test units differ as
those of the records do (``boards.py``; ``--measure`` computes it from a results folder). Several
tests (``judges.py``) judge the same boards. The tables go to ``results/verdicts.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.verdicts.measured import measure
from tools.verdicts.report import report


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and write the report, or print the spread of a results folder."""
    parser = argparse.ArgumentParser(prog="python -m tools.verdicts", description=__doc__.partition(": ")[2])
    parser.add_argument("--out", type=Path, default=Path("results/verdicts.md"), help="where the report goes")
    parser.add_argument("--measure", type=Path, metavar="RESULTS", help="print the spread of these records instead")
    options = parser.parse_args(arguments)
    if options.measure:
        for name, spread in measure(options.measure).items():
            print(f"{name}: {spread}")
        return 0
    options.out.write_text(report(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

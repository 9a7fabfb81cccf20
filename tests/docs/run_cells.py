"""Runs the code cells of a notebook one after the other in the main module, as a kernel does.

``python run_cells.py NOTEBOOK``: prints the value of each cell that ends with one. The text of the
cells is kept in ``In``, as by IPython.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

In = [""]
del annotations  # a cell says for itself what it takes from the future


def show(cell: str) -> None:
    """Runs a cell and prints the value of its last expression."""
    In.append(cell)
    tree = ast.parse(cell)
    last = [ast.Expression(tree.body.pop().value)] if isinstance(tree.body[-1], ast.Expr) else []
    exec(compile(tree, f"<cell {len(In) - 1}>", "exec", dont_inherit=True), globals())
    for expression in last:
        print(eval(compile(expression, f"<cell {len(In) - 1}>", "eval", dont_inherit=True), globals()))


del globals()["__file__"]  # a kernel has none, so that nothing can be read from a script
for each in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["cells"]:
    if each["cell_type"] == "code":
        show("".join(each["source"]))

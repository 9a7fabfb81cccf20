"""The notebook of the tutorial runs as it stands."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.records import Store

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "tutorials" / "notebook.ipynb"
CELLS = Path(__file__).with_name("run_cells.py")
WITH_JUPYTER = """
import sys
import nbclient, nbformat
notebook = nbclient.NotebookClient(nbformat.read(sys.argv[1], 4), timeout=600).execute()
outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
print(*(output.get("data", {}).get("text/plain", "") for output in outputs))
"""


def test_no_outputs_are_committed():
    """They would differ from machine to machine, and in every diff."""
    code = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.slow
def test_its_cells_run_in_their_order(tmp_path):
    """A newcomer's first page: run, results, compare, and a class of one's own."""
    jupyter = all(importlib.util.find_spec(name) for name in ("nbclient", "ipykernel"))
    program = ["-c", WITH_JUPYTER] if jupyter else [str(CELLS)]
    done = subprocess.run(
        [sys.executable, *program, str(NOTEBOOK)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    records = list(Store(tmp_path / "results").all())
    assert {record.status for record in records} == {"ok"}
    assert {record.architecture for record in records} == {"nbsvm", "avg_vectors", "my_model"}
    assert done.stdout.count("PairedTest(") == 2

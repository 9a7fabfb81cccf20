"""Golden scores: twelve cells, one of each kind, that guard the number of the harness.

Their plugins are frozen, so that another score means that the harness computes something else. Then
raise :data:`harness.records.code_digest.HARNESS` by one, say why in the commit, and write the
expectations anew::

    ARCHBENCH_GOLDEN=write python -m pytest tests/test_golden_scores.py

Where nothing else than a library was upgraded, write them anew and leave the number.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import registry
from harness.records import Cell
from harness.records.code_digest import HARNESS
from harness.registry import declarations
from harness.running import worker
from harness.running.worker import run_cell
from harness.running.worker_settings import Settings
from tests.support.planned_cells import planned_cell, tiny_sizes

FOLDER = Path(__file__).with_name("frozen")
EXPECTED = Path(__file__).with_name("golden_scores.json")
SCORES = {"abs": 1e-6}
LOSSES = {"rel": 1e-5}
"""A processor's vector units and the library behind torch change losses by 3e-7 and no score."""

CELLS = {
    "frozen_drift": "tones",
    "frozen_hashed": "same_place",
    "frozen_tree": "moods",
    "frozen_stems": "lookup",
    "frozen_window_crf": "names",
    "frozen_finder": "owners_or_nobody",
    "frozen_recall": "moves",
    "frozen_strides": "tones",
    "frozen_writer": "owners",
    "frozen_pieces": "names",
    "frozen_keywords": "moods",
    "frozen_jolts": "same_place",
}
"""Architectures, one of each kind, and the tasks that they run on: all types of tasks, and nine
views."""


@pytest.fixture(scope="module", autouse=True)
def plugins() -> Iterator[None]:
    """The frozen files as ``--plugin`` gives them; no other test file sees them afterwards."""
    modules = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.registry.finding._plugins", sorted(FOLDER.glob("*.py")))
        yield
    for key in [key for key in declarations._registered if key[1].startswith("frozen_")]:
        del declarations._registered[key]
    for name in set(sys.modules) - modules:
        if name.startswith("archbench_plugin_"):
            del sys.modules[name]


def cell_of(architecture: str) -> Cell:
    """A cell with tiny sizes, two learning rates and two epochs."""
    longer = [f"{architecture}.training.{text}" for text in ("learning_rates=[0.01,0.002]", "epochs=2", "patience=2")]
    task = f"frozen_{CELLS[architecture]}"
    return planned_cell(architecture, task, *tiny_sizes(architecture), *longer, max_train=None)


def found(architecture: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Scores of one cell, and its losses, in which a smaller change shows."""
    monkeypatch.setattr(worker.cost, "inference", lambda *_, **__: {})  # speeds are not compared
    record = run_cell(cell_of(architecture), settings)
    assert record.status == "ok", record.error
    curve = record.training.get("curve", [])
    losses = {name: [row[name] for row in curve] for name in ("train_loss", "dev_loss") if curve}
    return {split: record.scores[split] for split in ("dev", "test")} | losses


def test_there_is_a_cell_of_each_kind_and_of_each_type():
    assert {registry.entry("architectures", id).kind for id in CELLS} == set(registry.KINDS) - {"floor", "lm"}
    types = {registry.entry("tasks", f"frozen_{task}").type for task in CELLS.values()}
    assert types == set(registry.TASK_TYPES) - {
        "audio",
        "language_model",
        "multilabel",
        "regress",
        "regress_pair",
        "text",
        "translate",
    }  # heads of their own tests alone


@pytest.mark.skipif(torch.cuda.is_available(), reason="the expectations are those of CPUs")
@pytest.mark.parametrize("architecture", CELLS)
def test_the_harness_computes_what_its_number_says(architecture, make_settings, monkeypatch):
    scores = found(architecture, make_settings(), monkeypatch)
    if os.environ.get("ARCHBENCH_GOLDEN") == "write":
        known = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
        known |= {"about": __doc__.splitlines(), "harness": HARNESS, architecture: scores}
        EXPECTED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    expected = json.loads(EXPECTED.read_text())
    assert expected["harness"] == HARNESS, f"the number was raised: write the expectations anew ({__doc__})"
    assert set(scores) == set(expected[architecture])
    for name, value in scores.items():
        tolerance = LOSSES if name.endswith("_loss") else SCORES
        assert value == pytest.approx(expected[architecture][name], **tolerance), (
            f"{name}: another result under the same number of the harness. {__doc__}"
        )

"""The one scoring of test, as a record holds it."""

from __future__ import annotations

from typing import Any

from datasets import Dataset

from harness.data.overlap import overlap_of
from harness.metrics import score
from harness.problems import problem
from harness.records import Cell, Store
from harness.running.neighbours import Watch
from harness.running.worker_settings import Settings
from harness.scoring import error_analysis
from harness.task import DataName, Task
from harness.training import cost


def scored(
    cell: Cell,
    task: Task,
    settings: Settings,
    watch: Watch,
    dev: dict[str, float],
    train: Dataset,
    rows: Dataset,
    data: dict[DataName, str],
    predictions: list[Any],
) -> dict[str, Any]:
    """Fields of a record that come from the one scoring of test; ``data`` are digests by split."""
    listed = rows.to_list()
    test = score(task.entry.metrics, predictions, listed, task.label_tree)
    # Before the files are written: compressing them takes memory that is not the model's.
    memory = cost.memory(watch.peak_rss_mib())
    store, ids = Store(settings.results), [row["id"] for row in listed]
    saved = store.save_predictions(cell, ids, predictions)
    asked = problem(task.entry.type)
    # Recordings have no column of texts, and a selection of no columns has no rows to read.
    texts = set(asked.unit_texts) & set(train.column_names)
    known = error_analysis.known_words(asked, train.select_columns(sorted(texts)).to_list() if texts else [])
    outcomes = error_analysis.outcomes(asked, task.entry.main_metric, predictions, listed, known)
    if outcomes is not None:
        store.save_outcomes(cell, saved, ids, outcomes)
    return {
        "scores": {"dev": dev, "test": test},
        "predictions": saved,
        "memory": memory,
        "official_test_examples": task.official_test_examples(cell.tier, len(listed)),
        "overlap": overlap_of(asked, train, rows, data, settings.work / "overlap"),
        "data": data,
    }

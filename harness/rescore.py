"""Test scores again from saved predictions, so that a corrected metric costs no training (``archbench rescore``)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from harness import registry
from harness.records import Record, RecordError, Store
from harness.task import DataError, Row, fingerprint

Change = tuple[float | None, float]


def rescore(store: Store, data_dir: Path | None, only: Callable[[Record], bool] | None = None) -> list[tuple[Path, dict[str, Change]]]:
    """Recompute the test scores of the ok records (those for which ``only`` holds) and write the records whose scores changed.

    Returns (path of a changed record, {metric: (old or None, new)}). A record whose data or predictions are not the ones it was
    made with is left alone, with a warning that names it and says why.
    """
    changed: list[tuple[Path, dict[str, Change]]] = []
    records = [record for record in store.all() if record.status == "ok" and (only is None or only(record))]
    for (task, tier), group in groupby(sorted(records, key=_data), key=_data):
        try:
            entry = registry.entry("tasks", task)
            rows = list(registry.load(entry)(entry).load("test", tier, data_dir))
        except (DataError, registry.RegistryError, OSError, ValueError, NotImplementedError) as error:
            warnings.warn(f"{task} ({tier}): {len(list(group))} records not rescored: {error}", stacklevel=2)
            continue
        found = fingerprint(rows)
        for record in group:
            path = store.path(record)
            try:
                if found != record.data.get("test"):
                    raise RecordError(f"the test data are {found}, the record was made with {record.data.get('test')}")
                if changes := _changes(record, store, entry.metrics, rows):
                    test = record.scores.get("test", {}) | {metric: new for metric, (_, new) in changes.items()}
                    record.scores = record.scores | {"test": test}
                    changed.append((store.write(record), changes))
            except (RecordError, ValueError, TypeError, KeyError) as error:  # one record's predictions must not stop the others
                warnings.warn(f"{path} not rescored: {error}", stacklevel=2)
    return changed


def _data(record: Record) -> tuple[str, str]:
    return record.task, record.tier


def _changes(record: Record, store: Store, metrics: tuple[str, ...], rows: list[Row]) -> dict[str, Change]:
    """Metrics whose value is no longer the recorded one; rounding of the last digits is not a change."""
    from harness.metrics import score

    by_id = dict(zip(*store.load_predictions(record), strict=True))
    if by_id.keys() != {row["id"] for row in rows}:
        raise RecordError(f"the predictions are for {len(by_id)} examples that are not the {len(rows)} of the test split")
    old = record.scores.get("test", {})
    new = score(metrics, [by_id[row["id"]] for row in rows], rows)
    return {m: (old.get(m), value) for m, value in new.items() if m not in old or not math.isclose(old[m], value, rel_tol=1e-12)}

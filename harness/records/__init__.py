"""Cells and their records: one JSON file per cell, from which every table and view is rebuilt.

A store is a results folder: ``records/<task>/<architecture>/<key>.json`` with
``<key>.predictions.json.xz`` and ``<key>.outcomes.json.gz`` next to it. Two machines merge by
copying files.
"""

from harness.errors import RecordError
from harness.records.blocks import UNSTABLE_ABOVE, Predictions
from harness.records.cell import Cell
from harness.records.provenance import commit, environment, now, portable_command, portable_text, without_passwords
from harness.records.record import SCHEMA, STATUSES, UNFIT, Record, Status
from harness.records.store import Store

__all__ = [
    "SCHEMA",
    "STATUSES",
    "UNFIT",
    "UNSTABLE_ABOVE",
    "Cell",
    "Predictions",
    "Record",
    "RecordError",
    "Status",
    "Store",
    "commit",
    "environment",
    "now",
    "portable_command",
    "portable_text",
    "without_passwords",
]

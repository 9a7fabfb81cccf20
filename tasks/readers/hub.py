"""Checks on a data set from the Hugging Face hub before its rows are mapped to ours."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from harness.errors import DataError
from harness.task import Hub

if TYPE_CHECKING:
    import datasets


def require_columns(source: Hub | None, rows: datasets.Dataset, *columns: str) -> None:
    """Raise :class:`DataError` unless the data set has these columns."""
    missing = [column for column in columns if column not in rows.column_names]
    if missing:
        raise DataError(f"{place(source)}: no column {', '.join(missing)} (found: {', '.join(rows.column_names)})")


def class_names(source: Hub | None, rows: datasets.Dataset, column: str, expected: Collection[str]) -> list[str]:
    """Names of a column's class numbers; :class:`DataError` unless they are the ``expected`` ones,
    in any order."""
    require_columns(source, rows, column)
    feature = rows.features[column]
    names = getattr(getattr(feature, "feature", feature), "names", None)
    if names is None or sorted(names) != sorted(expected):
        raise DataError(f"{place(source)}: column {column} has the classes {names}, expected {sorted(expected)}")
    return names


def place(source: Hub | None) -> str:
    """Name of a source for messages."""
    return f"{source.path} at {source.revision[:8]}" if source else "hub data set"

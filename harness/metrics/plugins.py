"""Metrics that plugins register (:func:`harness.registry.register_metric`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from harness import registry
from harness.metrics.information import PERCENT, MetricInfo, percent, unchanged
from harness.task import Row


def info_of(plugin: registry.MetricEntry) -> MetricInfo:
    """Information on a plugin's metric, without importing the plugin."""
    show = percent if plugin.unit == PERCENT else unchanged
    return MetricInfo(plugin.id, plugin.name, plugin.better, plugin.unit, plugin.digits, show)


def compute_of(plugin: registry.MetricEntry) -> Callable[[Sequence[Any], Sequence[Row]], dict[str, float]]:
    """A plugin's metric as a function of the predictions and their rows."""
    if plugin.per_row:
        return lambda predictions, rows: {plugin.id: fmean(row_values(plugin, predictions, rows))}
    return lambda predictions, rows: {plugin.id: _finite(plugin, registry.load(plugin)(predictions, rows))}


def row_values(plugin: registry.MetricEntry, predictions: Sequence[Any], rows: Sequence[Row]) -> list[float]:
    """Values of the rows, of which a plugin's metric is the mean."""
    function = registry.load(plugin)
    return [
        _finite(plugin, function(p, row), f" for row {row['id']}") for p, row in zip(predictions, rows, strict=True)
    ]


def _finite(plugin: registry.MetricEntry, value: Any, where: str = "") -> float:
    """The value as a number; ``ValueError`` for what no record could hold."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"metric {plugin.id} ({plugin.file}) gave {value!r}{where}; a finite number is wanted")
    return number

"""A record as MLflow shows it: tags, parameters, metrics, data sets and a description.

Metrics have the names that MLflow groups by: ``train/...`` and ``dev/...`` are curves by epoch,
``best_dev/...`` and ``test/...`` scores, and ``system/...`` is shown as system metrics.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from harness.records import Record, Store

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Metric

# Limits of MLflow servers: characters of a parameter, a tag and a digest.
MAX_PARAM, MAX_TAG, MAX_DIGEST = 6000, 5000, 36
_MAX_TIME = 2**53  # databases refuse larger times and steps, which a foreign record may hold


def name_of(record: Record) -> str:
    """Name of the run of a record, without its seed."""
    budget = record.cell.budget.get("name", "")
    return " · ".join(filter(None, (record.architecture, record.tier, record.protocol, budget)))


def milliseconds(moment: str) -> int | None:
    """A moment of a record as MLflow counts them."""
    return int(datetime.fromisoformat(moment).timestamp() * 1000) if moment else None


def description(record: Record, link: str, deviations: Iterable[str]) -> str:
    """Markdown that MLflow shows above a run: links to the record, the command, deviations from the
    paper, the error."""
    path = Store("").path(record).as_posix()
    parts = [f"[Record]({link}), in the results folder: `{path}`"]
    if record.command:
        parts.append(f"Command:\n\n{code(record.command)}")
    if items := [f"- {_plain(deviation)}" for deviation in deviations]:
        parts.append("Deviations from the paper:\n\n" + "\n".join(items))
    if record.error:
        parts.append(f"Error:\n\n{code(_error(record))}")
    return "\n\n".join(parts)


def code(text: str) -> str:
    """Text as a Markdown block without markup."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def _plain(text: str) -> str:
    """Text with Markdown markup and HTML escaped."""
    return re.sub(r"([\\`*_\[\]|~#])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _error(record: Record) -> str:
    error = record.error or {}
    return f"{error.get('type', '')}: {error.get('message', '')}"


def tags_of(record: Record) -> dict[str, str]:
    """Tags by which runs are found."""
    tags = {"record_key": record.key}
    fields = ("architecture", "task", "tier", "protocol", "status", "seed", "precision", "devices", "partial")
    tags |= {name: str(getattr(record, name)) for name in (*fields, "main_metric", "commit")}
    if "unstable" in record.speed:
        tags["unstable"] = str(record.speed["unstable"])
    if record.archbench:
        tags["archbench_version"] = record.archbench
    if objective := record.training.get("objective"):
        tags["objective"] = objective
    if record.error:
        tags["error"] = _error(record)
    return {name: value[:MAX_TAG] for name, value in tags.items()}


def flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested hyperparameters as pairs of a dotted name (``training.lr``) and text."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)[:MAX_PARAM]


def curve_name(field: str) -> str:
    """Name of the metric of a field of a training curve; what is not of the training is dev's."""
    if field == "seconds":
        return "train/seconds"
    split, _, rest = field.partition("_")
    return f"{split}/{rest}" if rest and split in ("train", "dev") else f"dev/{field}"


def metrics_of(record: Record, started: int) -> list[Metric]:
    """The curve by epoch, then the final numbers; times in ms."""
    from mlflow.entities import Metric

    metrics, time = [], started
    for position, row in enumerate(record.training.get("curve", []), start=1):
        time = min(time + int(1000 * (row.get("seconds") or 0)), _MAX_TIME)
        step = min(int(row.get("epoch") or position), _MAX_TIME)
        metrics += [
            Metric(curve_name(name), value, time, step)
            for name, value in row.items()
            if name != "epoch" and value is not None
        ]
    final: dict[str, Any] = {
        f"{'best_dev' if split == 'dev' else split}/{name}": value
        for split, scores in record.scores.items()
        for name, value in scores.items()
    }
    for block in ("speed", "memory", "seconds"):
        values = getattr(record, block) or {}
        final |= {f"system/{block}_{name}": value for name, value in values.items() if name != "unstable"}
    final |= {f"size/{name}": value for name, value in record.parameters.items()}
    final |= {f"spent/{name}": value for name, value in (record.spent or {}).items()}
    final |= {"size/flops_per_example": record.flops_per_example, "train/best_epoch": record.training.get("best_epoch")}
    final["train/flops"] = record.training.get("flops")
    return metrics + [Metric(name, value, time, 0) for name, value in final.items() if value is not None]


OF_MEANS = ("test/", "best_dev/")
"""Beginnings of the names of metrics of which the run of all seeds has the mean."""


def means(cells: Iterable[dict[str, float]]) -> dict[str, float]:
    """Means over seeds of the scores of their runs, and from two of them on the sample standard
    deviation (``..._sd``)."""
    listed = list(cells)
    found: dict[str, float] = {}
    for name in {name for metrics in listed for name in metrics if name.startswith(OF_MEANS)}:
        values = [metrics[name] for metrics in listed if name in metrics]
        found[name] = fmean(values)
        if len(values) > 1:
            found[f"{name}_sd"] = stdev(values)
    return found


def datasets_of(record: Record) -> list[DatasetInput]:
    """The splits that a cell read, by the digests of their rows."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    source = json.dumps({"task": record.task, "tier": record.tier})
    return [
        DatasetInput(
            Dataset(f"{record.task} {split}", digest[:MAX_DIGEST], "archbench", source),
            [InputTag("mlflow.data.context", split)],
        )
        for split, digest in record.data.items()
    ]

"""Records as a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

    from harness.leaderboard.board import Board
    from harness.records import Record
    from harness.registry import ArchitectureEntry


class _Told(NamedTuple):
    """A record, the words on its architecture, the id of its group, and its settings as JSON."""

    record: Record
    architecture: ArchitectureEntry | None
    group: str | None
    settings: str


_TEXT, _WHOLE, _NUMBER, _FLAG = "str", "Int64", "float64", "boolean"

_COLUMNS: dict[str, tuple[str, Callable[[_Told], Any]]] = {
    "task": (_TEXT, lambda t: t.record.task),
    "task_version": (_WHOLE, lambda t: t.record.task_version),
    "architecture": (_TEXT, lambda t: t.record.architecture),
    "architecture_version": (_WHOLE, lambda t: t.record.architecture_version),
    "name": (_TEXT, lambda t: t.architecture and t.architecture.name),
    "family": (_TEXT, lambda t: t.architecture and t.architecture.family),
    "kind": (_TEXT, lambda t: (t.architecture and t.architecture.kind) or None),
    "year": (_WHOLE, lambda t: (t.architecture and t.architecture.year) or None),
    "tier": (_TEXT, lambda t: t.record.tier),
    "protocol": (_TEXT, lambda t: t.record.protocol),
    "protocol_version": (_WHOLE, lambda t: t.record.protocol_version or 1),
    "budget": (_TEXT, lambda t: (t.record.budget or t.record.cell.budget)["name"]),
    "sees": (_TEXT, lambda t: None if t.record.sees is None else ", ".join(t.record.sees)),
    "vectors": (_TEXT, lambda t: t.record.vectors["name"] if t.record.vectors else None),
    "inputs": (_TEXT, lambda t: ", ".join(each["name"] for each in t.record.inputs or ())),
    "hyperparameters": (_TEXT, lambda t: t.settings),
    "precision": (_TEXT, lambda t: t.record.precision),
    "devices": (_WHOLE, lambda t: t.record.devices),
    "seed": (_WHOLE, lambda t: t.record.seed),
    "key": (_TEXT, lambda t: t.record.key),
    "group": (_TEXT, lambda t: t.group),
    "status": (_TEXT, lambda t: t.record.status),
    "error": (_TEXT, lambda t: (t.record.error or {}).get("message")),
    "examples": (_WHOLE, lambda t: t.record.counts.get("train")),
    "dev_examples": (_WHOLE, lambda t: t.record.counts.get("dev")),
    "test_examples": (_WHOLE, lambda t: t.record.counts.get("test")),
    "partial": (_FLAG, lambda t: t.record.partial),
    "passes": (_NUMBER, lambda t: t.record.passes),
    "flops": (_NUMBER, lambda t: t.record.training.get("flops")),
    "parameters": (_WHOLE, lambda t: t.record.parameters.get("total")),
    "embedding_parameters": (_WHOLE, lambda t: t.record.parameters.get("embedding")),
    "flops_per_example": (_NUMBER, lambda t: t.record.flops_per_example),
    "train_examples_per_second": (_NUMBER, lambda t: t.record.speed.get("train_examples_per_second")),
    "train_tokens_per_second": (_NUMBER, lambda t: t.record.speed.get("train_tokens_per_second")),
    "inference_examples_per_second": (_NUMBER, lambda t: t.record.speed.get("inference_examples_per_second")),
    "latency_ms_p50": (_NUMBER, lambda t: t.record.speed.get("latency_ms_p50")),
    "latency_ms_p95": (_NUMBER, lambda t: t.record.speed.get("latency_ms_p95")),
    "unstable": (_FLAG, lambda t: t.record.speed.get("unstable")),
    "beside": (_WHOLE, lambda t: t.record.speed.get("beside")),
    "peak_rss_mib": (_NUMBER, lambda t: t.record.memory.get("peak_rss_mib")),
    "peak_gpu_mib": (_NUMBER, lambda t: t.record.memory.get("peak_gpu_mib")),
    "train_seconds": (_NUMBER, lambda t: t.record.seconds.get("train")),
    "seconds": (_NUMBER, lambda t: t.record.seconds.get("total")),
    "train_processor_seconds": (_NUMBER, lambda t: t.record.seconds.get("train_processor")),
    "processor_seconds": (_NUMBER, lambda t: t.record.seconds.get("total_processor")),
    "device": (_TEXT, lambda t: _text(t.record.environment.get("device"))),
    "cpu": (_TEXT, lambda t: _text(t.record.environment.get("cpu"))),
    "threads": (_WHOLE, lambda t: _whole(t.record.environment.get("threads"))),
    "started": (_TEXT, lambda t: t.record.started or None),
}


def results(folder: str | Path = "results") -> pd.DataFrame:
    """The records of a results folder as a tidy table: one row for each record, split and metric,
    and one with ``metric`` missing for a record without scores, so that no cell is left out.

    The cell: ``task``, ``task_version``, ``architecture``, ``architecture_version``, ``tier``,
    ``protocol``, ``protocol_version``, ``budget`` (its name), ``hyperparameters`` (JSON with sorted
    keys), ``precision``, ``devices``, ``seed``, and its ``key``.
    The architecture: ``name``, ``family``, ``kind`` and ``year``, as it is registered here or as
    the records say; missing where neither knows.
    The training: ``sees`` (data besides the labelled training examples, empty for none, missing
    where not recorded), ``vectors`` (name of given word vectors), ``inputs`` (names of further
    inputs, empty for none).
    The end: ``status`` (ok, failed, oom, timeout, diverged, skipped, interrupted), ``error``.
    The score: ``split`` (dev, test), ``metric``, ``value``, and ``main``, true for the metric that
    ranks the task. Values are those of the records: fractions for what pages show in percent.
    ``group``: the same in all records that may be compared; missing unless ``status`` is ok.
    The data: ``examples``, ``dev_examples``, ``test_examples``, and ``partial``, true where fewer
    were trained on than the official training set has.
    The cost: ``passes`` over the training examples, ``flops`` of the fit, ``parameters`` (of them
    ``embedding_parameters``), ``flops_per_example`` of a forward pass, speeds per second, latencies
    in ms, memory in MiB, ``train_seconds`` and ``seconds`` of wall clock,
    ``train_processor_seconds`` and ``processor_seconds`` of the processor. ``unstable`` and
    ``beside`` (other cells that ran at the same time) say how far a speed can be trusted.
    The machine: ``device``, ``cpu``, ``threads``, ``started`` (time).

    Texts are ``str``, whole numbers ``Int64``, others ``float64``, flags ``boolean``. Damaged
    records are named by a warning and left out. Raises :class:`~harness.errors.LeaderboardError`
    where there is no such folder.
    """
    from harness.leaderboard import board as boards

    with boards.uncollected():
        board = boards.read(Path(folder))
        table = _table(board)
    for notice in board.notices:
        warnings.warn(notice, stacklevel=2)
    return table


def _table(board: Board) -> pd.DataFrame:
    import pandas as pd

    found = [result for results in board.sections.values() for pair in results.values() for result in pair]
    groups = {record.key: id for result in found if result.group for id in [result.group.id] for record in result.ok}
    told = [
        _Told(each, board.architectures.get(each.architecture), groups.get(each.key), board.json(each.hyperparameters))
        for each in board.records
    ]
    rows = [(row, *score) for row, record in enumerate(board.records) for score in _scores(record)]
    at, splits, metrics, values, mains = zip(*rows, strict=True) if rows else ((),) * 5
    columns = {
        name: pd.Series([value(each) for each in told], dtype=dtype).take(at).reset_index(drop=True)
        for name, (dtype, value) in _COLUMNS.items()
    }
    scores = {
        "split": pd.Series(splits, dtype=_TEXT),
        "metric": pd.Series(metrics, dtype=_TEXT),
        "value": pd.Series(values, dtype=_NUMBER),
        "main": pd.Series(mains, dtype=_FLAG),
    }
    first = ["task", "architecture", "seed", "status", *scores]
    table = pd.DataFrame(columns | scores)
    return table[[*first, *(name for name in columns if name not in first)]]


def _scores(record: Record) -> list[tuple[str | None, str | None, float | None, bool | None]]:
    """Split, metric, value and whether it is the main metric, of each score of a record."""
    found = [
        (split, metric, value, metric == record.main_metric)
        for split, scores in record.scores.items()
        for metric, value in scores.items()
    ]
    return [*found] or [(None, None, None, None)]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if type(value) is int else None

"""Records as MLflow runs: a view for the MLflow UI, which can be thrown away and rebuilt from the record files (``archbench sync``)."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness import registry
from harness.records import Record, Store

if TYPE_CHECKING:
    from mlflow.entities import Metric

Outcome = Literal["added", "kept", "replaced"]

_SQLITE = "sqlite:///"
_RUN_STATUS = {"ok": "FINISHED", "skipped": "FINISHED", "interrupted": "KILLED"}  # any other record: FAILED
_LONGEST_PARAM, _LONGEST_TAG, _PARAMS_PER_BATCH, _METRICS_PER_BATCH = 6000, 5000, 100, 900  # what servers accept
# A server that is down must not hold up a grid whose records are safe anyway (MLflow's own defaults wait for minutes), and one
# that is up must not print an address per run over the progress display.
_HTTP_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


class TrackingError(Exception):
    """MLflow could not be reached or refused: the message names its URI. The records are not touched by it."""


def default_uri(results: str | Path) -> str:
    """URI of the SQLite database in a results folder."""
    return f"{_SQLITE}{Path(results).resolve() / 'mlflow.db'}"


class Tracker:
    """Writes records to one MLflow tracking URI (``sqlite:///file`` or a server).

    Building one creates a missing database, which is safe while others do the same.
    Raises :class:`TrackingError` when the URI cannot be used, within seconds for a server that does not answer.
    """

    def __init__(self, uri: str):
        self.uri = uri
        self._experiments: dict[str, str] = {}
        with self._repairable():
            self._client = self._connect()

    def log(self, record: Record, predictions_path: Path | None = None, log_path: Path | None = None) -> Outcome:
        """Mirror one record, with the two files as artifacts; a run of the same record is kept, one of an older record replaced."""
        with self._repairable():
            experiment = self._experiment(record.task)
            runs = self._runs(experiment, f"tags.record_key = '{record.key}'")
            return self._mirror(record, experiment, runs.get(record.key, []), [predictions_path, log_path])

    def sync(self, store: Store) -> tuple[int, int, int]:
        """Mirror every record of ``store``; returns how many were added, kept and replaced."""
        counts = {"added": 0, "kept": 0, "replaced": 0}
        runs: dict[str, dict[str, list[tuple[str, str]]]] = {}
        for record in store.all():
            with self._repairable():
                experiment = self._experiment(record.task)
                if experiment not in runs:  # one question per experiment, not one per record
                    runs[experiment] = self._runs(experiment)
                counts[self._mirror(record, experiment, runs[experiment].get(record.key, []), _artifacts(store, record))] += 1
        return counts["added"], counts["kept"], counts["replaced"]

    @contextmanager
    def _repairable(self) -> Iterator[None]:
        """Whatever MLflow, its database driver or the network raises becomes a :class:`TrackingError`."""
        try:
            yield
        except Exception as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            message = f"MLflow at {self.uri} could not be used: {reason} (records are safe; `archbench sync` repairs the mirror)"
            raise TrackingError(message) from error

    def _connect(self) -> Any:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        if self.uri.startswith(("http://", "https://")):
            for name, value in _HTTP_SETTINGS.items():
                os.environ.setdefault(name, value)
        elif "://" not in self.uri or self.uri.startswith("file:"):
            raise ValueError(f"MLflow no longer writes to folders: give {_SQLITE}FILE.db or the URI of a server")

        from mlflow.tracking import MlflowClient

        for name in ("mlflow.store.db.utils", "alembic"):  # they tell every table they create
            logging.getLogger(name).setLevel(logging.WARNING)
        with _one_at_a_time(self.uri):
            client = MlflowClient(tracking_uri=self.uri)
            client.search_experiments(max_results=1)
        return client

    def _experiment(self, task: str) -> str:
        """Id of the experiment of ``task``, made where there is none."""
        if task not in self._experiments:
            from mlflow.exceptions import MlflowException

            known = self._client.get_experiment_by_name(task)
            if known is None:
                try:
                    self._experiments[task] = self._client.create_experiment(task, artifact_location=_artifact_folder(self.uri, task))
                    return self._experiments[task]
                except MlflowException:  # another writer was first
                    known = self._client.get_experiment_by_name(task)
                    if known is None:
                        raise
            if known.lifecycle_stage == "deleted":
                self._client.restore_experiment(known.experiment_id)
            self._experiments[task] = known.experiment_id
        return self._experiments[task]

    @functools.cached_property
    def _families(self) -> dict[str, dict[str, str]]:
        """Family and kind by architecture; a record may be of one that is not installed here."""
        try:
            return {id: {"family": entry.family, "kind": entry.kind} for id, entry in registry.entries("architectures").items()}
        except registry.RegistryError:
            return {}

    def _runs(self, experiment: str, where: str = "") -> dict[str, list[tuple[str, str]]]:
        """Record key to (run id, digest of the record it shows); the digest is empty where logging broke off."""
        found: dict[str, list[tuple[str, str]]] = {}
        page = None
        while True:
            runs = self._client.search_runs([experiment], where, page_token=page)
            for run in runs:
                tags = run.data.tags
                found.setdefault(tags.get("record_key", ""), []).append((run.info.run_id, tags.get("record_digest", "")))
            page = runs.token
            if not page:
                return found

    def _mirror(self, record: Record, experiment: str, runs: list[tuple[str, str]], artifacts: list[Path | None]) -> Outcome:
        digest = hashlib.sha256(record.to_json().encode()).hexdigest()
        current = next((run for run, known in runs if known == digest), None)
        for run, _ in runs:
            if run != current:
                self._client.delete_run(run)
        if current:
            return "kept"
        self._add(record, experiment, digest, filter(None, artifacts))
        return "replaced" if runs else "added"

    def _add(self, record: Record, experiment: str, digest: str, artifacts: Iterator[Path]) -> None:
        from mlflow.entities import Param

        started = int(datetime.fromisoformat(record.started).timestamp() * 1000) if record.started else None
        name = f"{record.architecture} · {record.protocol} · {record.seed}"
        tags = _tags(record) | self._families.get(record.architecture, {})
        run = self._client.create_run(experiment, start_time=started, tags=tags, run_name=name)
        run_id, started = run.info.run_id, run.info.start_time
        params = [Param(key, value) for key, value in _flat(record.hyperparameters)]
        metrics = _metrics(record, started)
        for i in range(0, len(params), _PARAMS_PER_BATCH):
            self._client.log_batch(run_id, params=params[i : i + _PARAMS_PER_BATCH])
        for i in range(0, len(metrics), _METRICS_PER_BATCH):
            self._client.log_batch(run_id, metrics=metrics[i : i + _METRICS_PER_BATCH])
        for path in artifacts:
            self._client.log_artifact(run_id, str(path))
        # Last, so that a run that broke off half-way is not taken for a complete one.
        self._client.set_tag(run_id, "record_digest", digest)
        ended = started + int(1000 * record.seconds.get("total", 0))
        self._client.set_terminated(run_id, _RUN_STATUS.get(record.status, "FAILED"), ended)


def sync(store: Store, uri: str) -> tuple[int, int, int]:
    """Rebuild MLflow at ``uri`` from the records of ``store``; returns how many runs were added, kept and replaced."""
    return Tracker(uri).sync(store)


@contextmanager
def _one_at_a_time(uri: str) -> Iterator[None]:
    """Lets one process at a time open a SQLite database: two that migrate a fresh one crash.

    Raises at once what is wrong with the file, where MLflow would try again for minutes.
    """
    if not uri.startswith(_SQLITE):
        yield
        return
    from filelock import FileLock

    database = Path(uri.removeprefix(_SQLITE))
    database.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{database}.lock"):
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA schema_version")
        yield


def _artifact_folder(uri: str, task: str) -> str | None:
    """Beside a SQLite database (MLflow would take the current directory); a server has its own place."""
    return (Path(uri.removeprefix(_SQLITE)).resolve().parent / "mlartifacts" / task).as_uri() if uri.startswith(_SQLITE) else None


def _artifacts(store: Store, record: Record) -> list[Path | None]:
    """The files of a record that are still there."""
    names = [record.predictions and record.predictions["path"], record.error and record.error.get("log")]
    return [store.folder / name for name in names if name and (store.folder / name).is_file()]


def _tags(record: Record) -> dict[str, str]:
    tags = {"record_key": record.key}
    for name in ("architecture", "task", "tier", "protocol", "status", "seed", "precision", "devices", "partial", "main_metric", "commit"):
        tags[name] = str(getattr(record, name))
    if "unstable" in record.speed:
        tags["unstable"] = str(record.speed["unstable"])
    if record.error:
        tags["error"] = f"{record.error.get('type', '')}: {record.error.get('message', '')}"
    return {name: value[:_LONGEST_TAG] for name, value in tags.items()}


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested hyperparameters as (``training.lr``, text)."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)[:_LONGEST_PARAM]


def _metrics(record: Record, started: int) -> list[Metric]:
    """The curve by epoch (names as in the record), then the final numbers; times in ms."""
    from mlflow.entities import Metric

    metrics, time = [], started
    for position, row in enumerate(record.training.get("curve", []), start=1):
        time += int(1000 * (row.get("seconds") or 0))
        step = int(row.get("epoch") or position)
        metrics += [Metric(name, value, time, step) for name, value in row.items() if name != "epoch" and value is not None]
    final: dict[str, Any] = {f"{split}_{name}": value for split, scores in record.scores.items() for name, value in scores.items()}
    for block in ("speed", "memory", "seconds", "parameters"):
        final |= {f"{block}_{name}": value for name, value in getattr(record, block).items() if name != "unstable"}
    final |= {"flops_per_example": record.flops_per_example, "best_epoch": record.training.get("best_epoch")}
    return metrics + [Metric(name, value, time, 0) for name, value in final.items() if value is not None]

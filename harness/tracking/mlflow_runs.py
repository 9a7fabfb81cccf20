"""Records as MLflow runs: a view for the MLflow UI that can be deleted and rebuilt from the record
files (``archbench sync``).

An experiment is a task, a run is a cell. Cells that differ in their seed alone are children of one
run, which has the means of their scores.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import logging
import os
import platform
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness import registry
from harness.errors import ModelError, RegistryError
from harness.kept.folder import describe
from harness.kept.shelf import is_kept, place
from harness.metrics import display_info
from harness.records import Record, Store
from harness.records.code_digest import made_by_other_code
from harness.tracking.database import (
    SQLITE,
    VIEW,
    NotMirrored,
    TrackingError,
    default_uri,
    one_at_a_time,
    shown_uri,
    with_driver,
    without_secrets,
)
from harness.tracking.shown import (
    MAX_TAG,
    datasets_of,
    description,
    flat,
    means,
    metrics_of,
    milliseconds,
    name_of,
    tags_of,
)

if TYPE_CHECKING:
    from mlflow.entities import Run

MirrorResult = Literal["added", "kept", "replaced"]

_RUN_STATUS = {"ok": "FINISHED", "skipped": "FINISHED", "interrupted": "KILLED"}  # any other record: FAILED
_PARAMS_PER_BATCH, _METRICS_PER_BATCH = 100, 800  # limits of MLflow servers
_LAYOUT = "5"  # raise it when runs show records differently: the next sync then replaces them all
_NOTE, _PARENT = "mlflow.note.content", "mlflow.parentRunId"  # MLflow's tags of a description and a parent run
_OURS = {"archbench": "task"}  # tag of the experiments that archbench made
# A server that is down must not delay a grid (MLflow's defaults wait for minutes), and one that is
# up must not print an address per run over the progress display.
_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "PGCONNECT_TIMEOUT": "5",
}


class Tracker:
    """Writes records to one MLflow tracking URI (``sqlite:///file`` or a server).

    A missing database is created, which is safe while other processes do the same. With a database
    elsewhere as store the artifacts lie in ``folder``, the results. Raises :class:`TrackingError`
    when the URI cannot be used, within seconds for a server that does not answer.
    """

    def __init__(self, uri: str, folder: Path | None = None):
        self.uri, self.folder = uri, folder
        self.refused = 0  # records that the last sync() could not mirror
        self._experiments: dict[str, str] = {}
        self._with_view: set[str] = set()
        self._by_other_code: set[str] = set()
        with self._repairable():
            self._client = self._connect()

    def log(
        self,
        record: Record,
        predictions_path: Path | None = None,
        log_path: Path | None = None,
        model: Path | None = None,
    ) -> MirrorResult:
        """Mirror one record, with the two files as artifacts, and the folder of its kept model as a
        model that MLflow serves.

        A run that shows the same record is kept, one of an older version is replaced. Raises
        :class:`NotMirrored` where MLflow takes other records but not this one.
        """
        with self._repairable():
            experiment = self._experiment(record.task)
            self._set_view(experiment, record.main_metric)
            shown = _Shown.of(
                [*self._runs(experiment, record_key=record.key), *self._runs(experiment, row=record.cell.row)]
            )
            parents = {run.data.tags.get(_PARENT) for run in shown.cells.get(record.key, [])}
        with self._one_record(record):
            result = self._mirror(record, experiment, shown, [predictions_path, log_path, model])
        with self._repairable():
            now = {run.info.run_id for run in shown.parents.values()}
            former = map(self._client.get_run, filter(None, parents - now))
            for parent in [*shown.parents.values(), *former]:
                self._settle(parent, self._runs(experiment, **{_PARENT: parent.info.run_id}))
            return result

    def sync(self, store: Store) -> tuple[int, int, int]:
        """Mirror every record of ``store``; returns the numbers of runs added, kept and replaced.

        A record that MLflow refuses is named by a warning and counted in :attr:`refused`; the
        others go on. Runs whose records are gone from ``store`` are removed, and a warning gives
        their number. Runs of other results folders, and experiments that archbench did not make,
        are left alone.
        """
        self.refused = 0
        counts = {"added": 0, "kept": 0, "replaced": 0}
        records: dict[str, list[Record]] = {}
        for record in store.all():
            records.setdefault(record.task, []).append(record)
        self._by_other_code = {other.key for other in made_by_other_code(itertools.chain(*records.values()))}
        keys = {record.key for group in records.values() for record in group} | {path.stem for path in store.damaged}
        removed = 0
        with self._repairable():
            tags = " and ".join(f"tags.{name} = '{value}'" for name, value in _OURS.items())
            ours = {experiment.name for experiment in self._client.search_experiments(filter_string=tags)}
        for task in sorted({*records, *ours}):
            with self._repairable():
                experiment = self._experiment(task)
                shown = _Shown.of(self._runs(experiment))
                if metric := next((record.main_metric for record in records.get(task, []) if record.main_metric), ""):
                    self._set_view(experiment, metric)
                # Seeds stand below a run that starts with the first of them.
                for record in sorted(records.get(task, []), key=lambda record: record.started):
                    try:
                        with self._one_record(record):
                            artifacts = _artifacts(store, record)
                            counts[self._mirror(record, experiment, shown, artifacts, _folder(store))] += 1
                    except NotMirrored as error:
                        self.refused += 1
                        warnings.warn(str(error), stacklevel=2)
                for run in [run for key, runs in shown.cells.items() if key not in keys for run in runs]:
                    if task in ours and (
                        self.uri == default_uri(store.folder) or run.data.tags.get("results") == _folder(store)
                    ):
                        self._delete(run)
                        removed += 1
                self._settle_all(experiment)
        if removed:
            warnings.warn(f"{removed} runs removed from MLflow: {store.folder} has no records of them", stacklevel=2)
        return counts["added"], counts["kept"], counts["replaced"]

    @contextmanager
    def _repairable(self) -> Iterator[None]:
        """Turns every error of MLflow, its database driver or the network into a
        :class:`TrackingError`."""
        try:
            yield
        except TrackingError:
            raise
        except Exception as error:
            raise TrackingError(
                f"MLflow at {shown_uri(self.uri)} could not be used: {self._reason(error)} "
                "(records are safe; run `archbench sync` to repair the mirror)"
            ) from None  # the error of the library may hold a password

    @contextmanager
    def _one_record(self, record: Record) -> Iterator[None]:
        """Turns an error into :class:`NotMirrored` where MLflow still answers: then it is the
        record that it does not take, such as a metric with a name of its own."""
        try:
            yield
        except Exception as error:  # of MLflow, its database driver or the network
            with self._repairable():
                self._client.search_experiments(max_results=1)
            path = Store("").path(record).as_posix()
            raise NotMirrored(f"{path} was not mirrored to MLflow: {self._reason(error)}") from None

    def _reason(self, error: Exception) -> str:
        """First line of an error."""
        return without_secrets(str(error).strip().partition("\n")[0] or type(error).__name__, self.uri)

    def _connect(self) -> Any:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        if "://" not in self.uri or self.uri.startswith("file:"):
            raise ValueError(f"MLflow no longer writes to folders; use {SQLITE}FILE.db or the URI of a server")

        from mlflow.tracking import MlflowClient

        for name in ("mlflow.store.db.utils", "alembic"):  # they log every table they create
            logging.getLogger(name).setLevel(logging.WARNING)
        with one_at_a_time(self.uri):
            client = MlflowClient(tracking_uri=with_driver(self.uri))
            client.search_experiments(max_results=1)
        return client

    def _experiment(self, task: str) -> str:
        """Id of the experiment of ``task``, which is created or restored if need be."""
        if task not in self._experiments:
            from mlflow.exceptions import MlflowException

            experiment = self._client.get_experiment_by_name(task)
            if experiment is None:
                try:
                    self._experiments[task] = self._client.create_experiment(
                        task, _artifact_folder(self.uri, self.folder, task), _OURS
                    )
                    self._describe(task)
                    return self._experiments[task]
                except MlflowException:  # another writer was first
                    experiment = self._client.get_experiment_by_name(task)
                    if experiment is None:
                        raise
            if experiment.lifecycle_stage == "deleted":
                self._client.restore_experiment(experiment.experiment_id)
            self._experiments[task] = experiment.experiment_id
            self._describe(task, experiment.tags.get(_NOTE))
        return self._experiments[task]

    def _describe(self, task: str, now: str | None = None) -> None:
        """Set the description of a task's experiment, where the task is known here."""
        entry = self._tasks.get(task)
        text = f"**{entry.name}**, of type {entry.type}.\n\n{entry.protocol}"[:MAX_TAG] if entry else now
        if text != now:
            self._client.set_experiment_tag(self._experiments[task], _NOTE, text)

    def _set_view(self, experiment: str, metric: str) -> None:
        """Keep a view of an experiment in the tag where MLflow's pages keep those that users share:
        every cell in a row of its own, the best first, with its scores in columns."""
        if not metric or experiment in self._with_view:
            return
        columns = [f"metrics.`{split}/{metric}`" for split in ("test", "best_dev")]
        view = {
            "searchFilter": "tags.record_key != ''",  # without a filter the seeds are folded below their mean
            "orderByKey": columns[0],
            "orderByAsc": display_info(metric).lower_is_better,
            "selectedColumns": [*columns, *(f"tags.`{name}`" for name in ("family", "kind", "status", "tier"))],
        }
        text = json.dumps(view)
        if self._client.get_experiment(experiment).tags.get(VIEW) != text:
            self._client.set_experiment_tag(experiment, VIEW, text)
        self._with_view.add(experiment)

    @functools.cached_property
    def _architectures(self) -> dict[str, registry.ArchitectureEntry]:
        return _installed("architectures")

    @functools.cached_property
    def _tasks(self) -> dict[str, registry.TaskEntry]:
        return _installed("tasks")

    def _sort_of(self, record: Record) -> dict[str, str]:
        """Family and kind of a record's architecture, as tags; of one that is not installed, as the
        record tells them."""
        entry = self._architectures.get(record.architecture)
        told = (record.registered or {}).get("architecture", {})
        found = {name: getattr(entry, name) if entry else told.get(name) for name in ("family", "kind")}
        return {name: str(value)[:MAX_TAG] for name, value in found.items() if value}

    def _runs(self, experiment: str, **tags: str) -> list[Run]:
        """The runs of an experiment that have all these tags."""
        where = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
        runs: list[Run] = []
        token = None
        while True:
            page = self._client.search_runs([experiment], where, page_token=token)
            runs += page
            token = page.token
            if not token:
                return runs

    def _mirror(
        self, record: Record, experiment: str, shown: _Shown, artifacts: list[Path | None], folder: str = ""
    ) -> MirrorResult:
        """Make exactly one run show ``record``.

        ``folder`` marks the run as one of this results folder, whose :meth:`sync` may remove it.
        """
        digest = hashlib.sha256((_LAYOUT + record.to_json()).encode()).hexdigest()
        tags = self._parent(record, experiment, shown)
        if record.code:
            tags["made_by"] = "other code" if record.key in self._by_other_code else "this code"
        runs = shown.cells.get(record.key, [])
        current = next((run for run in runs if run.data.tags.get("record_digest") == digest), None)
        for run in runs:
            if run is not current:
                self._delete(run)
        if current is None:
            self._add(
                record, experiment, digest, tags | ({"results": folder} if folder else {}), filter(None, artifacts)
            )
            return "replaced" if runs else "added"
        if folder:
            tags["results"] = current.data.tags.get("results", folder)
        for name, value in tags.items():
            if current.data.tags.get(name) != value:
                self._client.set_tag(current.info.run_id, name, value)
        return "kept"

    def _delete(self, run: Run) -> None:
        """Delete a run and the model that was logged with it."""
        from mlflow.exceptions import MlflowException

        if model := run.data.tags.get("model"):
            with suppress(MlflowException):  # a user deleted it before; what else is wrong stops the next call, too
                self._client.delete_logged_model(model)
        self._client.delete_run(run.info.run_id)

    def _parent(self, record: Record, experiment: str, shown: _Shown) -> dict[str, str]:
        """The tag that makes a cell a child of the run of all its seeds, which is created if need
        be; empty for a cell that was skipped."""
        if record.status == "skipped":
            return {}
        row = record.cell.row
        if row not in shown.parents:
            tags = {name: str(getattr(record, name)) for name in ("architecture", "task", "tier", "protocol")}
            shown.parents[row] = self._client.create_run(
                experiment,
                start_time=milliseconds(record.started),
                tags=tags | self._sort_of(record) | {"row": row, _NOTE: "The mean over seeds of the runs below."},
                run_name=name_of(record),
            )
        return {_PARENT: shown.parents[row].info.run_id}

    def _settle_all(self, experiment: str) -> None:
        """Update the runs of means of an experiment."""
        runs = self._runs(experiment)
        children: dict[str, list[Run]] = {}
        for run in runs:
            children.setdefault(run.data.tags.get(_PARENT, ""), []).append(run)
        for run in runs:
            self._settle(run, children.get(run.info.run_id, []))

    def _settle(self, parent: Run, children: list[Run]) -> None:
        """Update the run of a mean from those of its seeds.

        It ends with the last of them, has failed when one failed, and is deleted without any.
        """
        run, tags = parent.info.run_id, parent.data.tags
        if "row" not in tags and "grid" not in tags:  # grids are of an older layout
            return
        if not children:
            self._client.delete_run(run)
            return
        counts = Counter(child.data.tags.get("status", "unknown") for child in children)
        cells = ", ".join(f"{counts[status]} {status}" for status in sorted(counts))
        ends = {child.info.status for child in children}
        status = next((end for end in ("FAILED", "KILLED") if end in ends), "FINISHED")
        ended = max(child.info.end_time or 0 for child in children)
        if tags.get("cells") != cells:
            self._client.set_tag(run, "cells", cells)
        scores = means(child.data.metrics for child in children if child.data.tags.get("status") == "ok")
        if changed := {name: value for name, value in scores.items() if parent.data.metrics.get(name) != value}:
            from mlflow.entities import Metric

            moment = int(1000 * time.time())  # of two values the newer one is shown
            self._client.log_batch(run, [Metric(name, value, moment, 0) for name, value in changed.items()])
        if (parent.info.status, parent.info.end_time) != (status, ended):
            self._client.set_terminated(run, status, ended)

    def _add(
        self, record: Record, experiment: str, digest: str, tags: dict[str, str], artifacts: Iterator[Path]
    ) -> None:
        from mlflow.entities import Param, RunTag

        entry = self._architectures.get(record.architecture)
        tags |= self._sort_of(record)
        name = f"{name_of(record)} · {record.seed}"
        started = milliseconds(record.started)
        run = self._client.create_run(experiment, start_time=started, tags=tags_of(record) | tags, run_name=name)
        run_id, started = run.info.run_id, run.info.start_time
        self._client.log_text(run_id, record.to_json(), f"{record.key}.json")
        for path in artifacts:
            if path.is_dir():
                self._log_model(experiment, run_id, name, path)
            else:
                self._client.log_artifact(run_id, str(path))
        params = [Param(key, value) for key, value in flat(record.hyperparameters)]
        for i in range(_PARAMS_PER_BATCH, len(params), _PARAMS_PER_BATCH):
            self._client.log_batch(run_id, params=params[i : i + _PARAMS_PER_BATCH])
        if data := datasets_of(record):
            self._client.log_inputs(run_id, data)
        metrics = metrics_of(record, started)
        for i in range(_METRICS_PER_BATCH, len(metrics), _METRICS_PER_BATCH):
            self._client.log_batch(run_id, metrics=metrics[i : i + _METRICS_PER_BATCH])
        link = f"#/experiments/{experiment}/runs/{run_id}/artifacts/{record.key}.json"
        note = description(record, link, entry.deviations if entry else ())
        # The digest comes last, so that a run that was cut off is not taken for a complete one.
        last = [RunTag(_NOTE, note[:MAX_TAG]), RunTag("record_digest", digest)]
        self._client.log_batch(run_id, metrics[:_METRICS_PER_BATCH], params[:_PARAMS_PER_BATCH], last)
        ended = started + int(1000 * record.seconds.get("total", 0))
        self._client.set_terminated(run_id, _RUN_STATUS.get(record.status, "FAILED"), ended)

    def _log_model(self, experiment: str, run: str, name: str, folder: Path) -> None:
        """Log a kept model as one of MLflow's, an output of its run."""
        from mlflow.entities import LoggedModelOutput

        from harness.kept import served  # with torch

        model = self._client.create_logged_model(experiment, name.replace(" · ", "_"), run, model_type="archbench")
        with tempfile.TemporaryDirectory() as temporary:
            served.save(folder, Path(temporary) / "model")
            self._client.log_model_artifacts(model.model_id, str(Path(temporary) / "model"))
        self._client.finalize_logged_model(model.model_id, "READY")
        self._client.log_outputs(run, [LoggedModelOutput(model.model_id, 0)])
        self._client.set_tag(run, "model", model.model_id)


@dataclass
class _Shown:
    """Runs of one experiment: those of cells by record key, and those of means by the identity of
    their row."""

    cells: dict[str, list[Run]] = field(default_factory=dict)
    parents: dict[str, Run] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Iterable[Run]) -> _Shown:
        """Sorts ``runs`` into cells and means.

        Two writers may have created two runs of one mean; the one with the smaller id counts.
        """
        shown = cls()
        for run in sorted(runs, key=lambda run: run.info.run_id):
            tags = run.data.tags
            if "record_key" in tags:
                shown.cells.setdefault(tags["record_key"], []).append(run)
            elif "row" in tags:
                shown.parents.setdefault(tags["row"], run)
        return shown


def sync(store: Store, uri: str) -> tuple[int, int, int]:
    """Rebuild MLflow at ``uri`` from the records of ``store``; returns the numbers of runs added,
    kept and replaced."""
    return Tracker(uri, store.folder).sync(store)


def _installed(sort: registry.Sort) -> dict[str, Any]:
    """The registered architectures or tasks; none where the registry cannot be read. A record may
    be of another."""
    try:
        return registry.entries(sort)
    except RegistryError:
        return {}


def _folder(store: Store) -> str:
    """Digest of machine and folder of a store, which tells its runs apart on a server that several
    machines write to."""
    return hashlib.sha256(f"{platform.node()}:{store.folder.resolve()}".encode()).hexdigest()[:16]


def _artifact_folder(uri: str, results: Path | None, task: str) -> str | None:
    """Folder of a task's artifacts as a URI: beside a SQLite database, else in the results folder;
    None for a server, which has a place of its own.

    Without it, MLflow would write into the current directory.
    """
    folder = Path(uri.removeprefix(SQLITE)).parent if uri.startswith(SQLITE) else results
    if folder is None or uri.startswith(("http://", "https://")):
        return None
    return (folder.resolve() / "mlartifacts" / task).as_uri()


def _artifacts(store: Store, record: Record) -> list[Path | None]:
    """Existing files of a record. A path that leads out of the results folder is never uploaded."""
    names = [
        record.predictions["path"] if record.predictions else None,
        record.error.get("log") if record.error else None,
    ]
    paths = [(store.folder / name).resolve() for name in names if name]
    files = [path for path in paths if path.is_relative_to(store.folder.resolve()) and path.is_file()]
    return [*files, kept_model(store, record)]


def kept_model(store: Store, record: Record) -> Path | None:
    """The folder of the model that a record's cell left, if it was kept and answers new texts; one
    of another run of the cell is none."""
    if record.status != "ok" or not is_kept(store.folder, record.key):
        return None
    folder = place(store.folder, record.key)
    try:
        found = describe(folder)
    except ModelError:  # `archbench models` names it
        return None
    same = record.predictions is not None and found.origin.predictions == record.predictions["sha256"]
    return folder if same and not found.transductive else None

"""Records as MLflow runs: a view for the MLflow UI that can be deleted and rebuilt from the record
files (``archbench sync``).

An experiment is a task, a run is a cell. Cells that differ in their seed alone are children of one
run, which has the means of their scores.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import platform
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness import registry
from harness.records import Record, Store
from harness.records.code_digest import made_by_other_code
from harness.tracking.artifacts import artifacts_of
from harness.tracking.connection import Connection
from harness.tracking.database import NotMirrored, default_uri
from harness.tracking.experiments import NOTE, OURS, Experiments, installed
from harness.tracking.run_fields import (
    MAX_TAG,
    OF_MEANS,
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
_PARENT = "mlflow.parentRunId"  # MLflow's tag of a parent run


class Tracker:
    """Writes records to one MLflow tracking URI (``sqlite:///file`` or a server).

    A missing database is created, which is safe while other processes do the same. With a database
    elsewhere as store the artifacts lie in ``folder``, the results. Raises :class:`TrackingError`
    when the URI cannot be used, within seconds for a server that does not answer.
    """

    def __init__(self, uri: str, folder: Path | None = None):
        self.uri = uri
        self.refused = 0  # records that the last sync() could not mirror
        self._by_other_code: set[str] = set()
        self._connection = Connection(uri)
        self._client = self._connection.client
        self.experiments = Experiments(self._client, uri, folder)

    def log(self, record: Record, artifacts: Sequence[Path | None] = ()) -> MirrorResult:
        """Mirror one record with the files and the model of :func:`artifacts_of`, which MLflow
        serves.

        A run that shows the same record is kept, one of an older version is replaced. Raises
        :class:`NotMirrored` where MLflow takes other records but not this one.
        """
        with self._connection.repairable():
            experiment = self.experiments.of(record.task)
            self.experiments.set_view(experiment, record.main_metric)
            shown = _Shown.of(
                [*self._runs(experiment, record_key=record.key), *self._runs(experiment, row=record.cell.row)]
            )
            parents = {run.data.tags.get(_PARENT) for run in shown.cells.get(record.key, [])}
        with self._connection.one_record(record):
            result = self._mirror(record, experiment, shown, artifacts)
        with self._connection.repairable():
            now = {run.info.run_id for run in shown.parents.values()}
            former = map(self._client.get_run, filter(None, parents - now))
            for parent in [*shown.parents.values(), *former]:
                self._settle(parent, self._runs(experiment, **{_PARENT: parent.info.run_id}))
            return result

    def sync(self, store: Store) -> tuple[int, int, int]:
        """Mirror every record of ``store``; returns the numbers of runs added, kept and replaced.

        A record that MLflow refuses is named by a warning and counted in :attr:`refused`; the
        others go on. Runs whose records are gone from ``store`` are removed, and a warning gives
        their number. Runs of other results folders that ``store`` has no record of, and experiments
        that archbench did not make, are left alone.
        """
        self.refused = 0
        counts = {"added": 0, "kept": 0, "replaced": 0}
        records: dict[str, list[Record]] = {}
        for record in store.all():
            records.setdefault(record.task, []).append(record)
        self._by_other_code = {other.key for other in made_by_other_code(itertools.chain(*records.values()))}
        keys = {record.key for group in records.values() for record in group} | {path.stem for path in store.damaged}
        removed = 0
        with self._connection.repairable():
            tags = " and ".join(f"tags.{name} = '{value}'" for name, value in OURS.items())
            ours = {experiment.name for experiment in self._client.search_experiments(filter_string=tags)}
        for task in sorted({*records, *ours}):
            with self._connection.repairable():
                experiment = self.experiments.of(task)
                shown = _Shown.of(self._runs(experiment))
                if metric := next((record.main_metric for record in records.get(task, []) if record.main_metric), ""):
                    self.experiments.set_view(experiment, metric)
                # Seeds stand below a run that starts with the first of them.
                for record in sorted(records.get(task, []), key=lambda record: record.started):
                    try:
                        with self._connection.one_record(record):
                            artifacts = artifacts_of(store, record)
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

    @functools.cached_property
    def _architectures(self) -> dict[str, registry.ArchitectureEntry]:
        return installed("architectures")

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
        self, record: Record, experiment: str, shown: _Shown, artifacts: Sequence[Path | None], folder: str = ""
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
                tags=tags | self._sort_of(record) | {"row": row, NOTE: "The mean over seeds of the runs below."},
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
        tags = parent.data.tags
        if "row" not in tags and "grid" not in tags:  # grids are of an older layout
            return
        if not children:
            self._client.delete_run(parent.info.run_id)
            return
        scores = means(child.data.metrics for child in children if child.data.tags.get("status") == "ok")
        if any(name.startswith(OF_MEANS) for name in parent.data.metrics.keys() - scores.keys()):
            parent = self._without_metrics(parent, children)
        run, tags = parent.info.run_id, parent.data.tags
        counts = Counter(child.data.tags.get("status", "unknown") for child in children)
        cells = ", ".join(f"{counts[status]} {status}" for status in sorted(counts))
        ends = {child.info.status for child in children}
        status = next((end for end in ("FAILED", "KILLED") if end in ends), "FINISHED")
        ended = max(child.info.end_time or 0 for child in children)
        if tags.get("cells") != cells:
            self._client.set_tag(run, "cells", cells)
        if changed := {name: value for name, value in scores.items() if parent.data.metrics.get(name) != value}:
            from mlflow.entities import Metric

            moment = int(1000 * time.time())  # of two values the newer one is shown
            self._client.log_batch(run, [Metric(name, value, moment, 0) for name, value in changed.items()])
        if (parent.info.status, parent.info.end_time) != (status, ended):
            self._client.set_terminated(run, status, ended)

    def _without_metrics(self, parent: Run, children: list[Run]) -> Run:
        """The run of a mean made anew in the place of one with scores that no seed has any more:
        MLflow takes no metric away."""
        made: Run = self._client.create_run(
            parent.info.experiment_id,
            start_time=parent.info.start_time,
            tags={name: parent.data.tags[name] for name in parent.data.tags.keys() - {"cells"}},
            run_name=parent.info.run_name,
        )
        for child in children:
            self._client.set_tag(child.info.run_id, _PARENT, made.info.run_id)
        self._client.delete_run(parent.info.run_id)
        return made

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
        last = [RunTag(NOTE, note[:MAX_TAG]), RunTag("record_digest", digest)]
        self._client.log_batch(run_id, metrics[:_METRICS_PER_BATCH], params[:_PARAMS_PER_BATCH], last)
        ended = started + int(1000 * record.seconds.get("total", 0))
        self._client.set_terminated(run_id, _RUN_STATUS.get(record.status, "FAILED"), ended)

    def _log_model(self, experiment: str, run: str, name: str, folder: Path) -> None:
        """Log a kept model as one of MLflow's, an output of its run."""
        from mlflow.entities import LoggedModelOutput

        from harness.saved_models import served  # with torch

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


def _folder(store: Store) -> str:
    """Digest of machine and folder of a store, which tells its runs apart on a server that several
    machines write to."""
    return hashlib.sha256(f"{platform.node()}:{store.folder.resolve()}".encode()).hexdigest()[:16]

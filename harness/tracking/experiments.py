"""Experiments of MLflow, one for each task."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import registry
from harness.errors import RegistryError
from harness.metrics import display_info
from harness.tracking.database import SQLITE, VIEW
from harness.tracking.run_fields import MAX_TAG

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

NOTE = "mlflow.note.content"
"""MLflow's tag of a description."""
OURS = {"archbench": "task"}
"""Tag of the experiments that archbench made."""


class Experiments:
    """The experiments of a tracking URI, one for each task, with a description and a view.

    With a database elsewhere as store their artifacts lie in ``folder``, the results.
    """

    def __init__(self, client: MlflowClient, uri: str, folder: Path | None):
        self._client, self._uri, self._folder = client, uri, folder
        self._experiments: dict[str, str] = {}
        self._with_view: set[str] = set()

    def of(self, task: str) -> str:
        """Id of the experiment of ``task``, which is created or restored if need be."""
        if task not in self._experiments:
            from mlflow.exceptions import MlflowException

            experiment = self._client.get_experiment_by_name(task)
            if experiment is None:
                try:
                    self._experiments[task] = self._client.create_experiment(
                        task, _artifact_folder(self._uri, self._folder, task), OURS
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
            self._describe(task, experiment.tags.get(NOTE))
        return self._experiments[task]

    def _describe(self, task: str, now: str | None = None) -> None:
        """Set the description of a task's experiment, where the task is known here."""
        entry = self._tasks.get(task)
        text = f"**{entry.name}**, of type {entry.type}.\n\n{entry.protocol}"[:MAX_TAG] if entry else now
        if text != now:
            self._client.set_experiment_tag(self._experiments[task], NOTE, text)

    def set_view(self, experiment: str, metric: str) -> None:
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
    def _tasks(self) -> dict[str, registry.TaskEntry]:
        return installed("tasks")


def installed(sort: registry.Sort) -> dict[str, Any]:
    """The registered architectures or tasks; none where the registry cannot be read. A record may
    be of another."""
    try:
        return registry.entries(sort)
    except RegistryError:
        return {}


def _artifact_folder(uri: str, results: Path | None, task: str) -> str | None:
    """Folder of a task's artifacts as a URI: beside a SQLite database, else in the results folder;
    None for a server, which has a place of its own.

    Without it, MLflow would write into the current directory.
    """
    folder = Path(uri.removeprefix(SQLITE)).parent if uri.startswith(SQLITE) else results
    if folder is None or uri.startswith(("http://", "https://")):
        return None
    return (folder.resolve() / "mlartifacts" / task).as_uri()

"""Files of a record that MLflow keeps with its run."""

from __future__ import annotations

from pathlib import Path

from harness.errors import ModelError
from harness.records import Record, Store
from harness.records.store import log_file
from harness.saved_models.folder import describe
from harness.saved_models.storage import is_kept, place


def artifacts_of(store: Store, record: Record) -> list[Path | None]:
    """Existing files of a record, and the folder of its kept model. A path that leads out of the
    results folder is never uploaded."""
    predictions = [store.folder / record.predictions["path"]] if record.predictions else []
    paths = [path.resolve() for path in (*predictions, log_file(store.folder / "work", record))]
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

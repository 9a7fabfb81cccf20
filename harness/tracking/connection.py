"""Connection to an MLflow tracking URI."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.records import Record, Store
from harness.tracking.database import (
    SQLITE,
    NotMirrored,
    TrackingError,
    one_at_a_time,
    shown_uri,
    with_driver,
    without_secrets,
)

# A server that is down must not delay a grid (MLflow's defaults wait for minutes), and one that is
# up must not print an address per run over the progress display.
_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "PGCONNECT_TIMEOUT": "5",
}


class Connection:
    """The client of one MLflow tracking URI, and the meaning of its errors.

    Raises :class:`TrackingError` when the URI cannot be used, within seconds for a server that does
    not answer.
    """

    def __init__(self, uri: str):
        self.uri = uri
        with self.repairable():
            self.client = self._connect()

    @contextmanager
    def repairable(self) -> Iterator[None]:
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
    def one_record(self, record: Record) -> Iterator[None]:
        """Turns an error into :class:`NotMirrored` where MLflow still answers: then it is the
        record that it does not take, such as a metric with a name of its own."""
        try:
            yield
        except Exception as error:  # of MLflow, its database driver or the network
            with self.repairable():
                self.client.search_experiments(max_results=1)
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

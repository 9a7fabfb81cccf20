"""Records sent to MLflow while a run goes on."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from harness.records import Record, Store
from harness.tracking.artifacts import artifacts_of
from harness.tracking.database import NotMirrored, TrackingError, default_uri, shown_uri
from harness.tracking.mlflow_runs import Tracker

DRAIN_S = 60.0  # seconds that the end of a run waits for MLflow
QUIET_S = 2.0  # of them without a word to the user


class Mirror:
    """Sends records to MLflow in a thread, so that the run never waits for a lock or a server.

    A context manager around the run; calling it hands over a record. A record that MLflow refuses
    is told of. When MLflow itself fails, that is told once and no more records are sent: they are
    safe, and ``archbench sync`` repairs the mirror. Leaving the block waits for what is still to
    be sent, for at most :data:`DRAIN_S` seconds. ``tell`` is called with messages, always in the
    thread of the caller.
    """

    def __init__(self, uri: str | None, store: Store, tell: Callable[[str], object]):
        self.uri, self.store, self.tell = uri or default_uri(store.folder), store, tell
        self._records: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        self._messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def __call__(self, record: Record) -> None:
        if self.uri == "none":
            return
        if self._thread is None:
            # A daemon: a server that does not answer must not keep the program from ending.
            self._thread = threading.Thread(target=self._send, name="mlflow", daemon=True)
            self._thread.start()
        self._records.put(record)
        self._tell()

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is None:
            return
        self._records.put(None)
        began = time.monotonic()
        try:
            self._thread.join(QUIET_S)
            if self._thread.is_alive():
                self.tell(f"waiting up to {DRAIN_S:.0f} s for MLflow; Ctrl-C ends the wait")
                self._thread.join(DRAIN_S - QUIET_S)
        except KeyboardInterrupt:  # the cells have ended: nothing but the mirror is lost
            pass
        self._tell()
        if self._thread.is_alive():
            self.tell(
                f"MLflow at {shown_uri(self.uri)} had not taken every record after {time.monotonic() - began:.0f} s "
                "(records are safe; run `archbench sync` to repair the mirror)"
            )

    def _tell(self) -> None:
        while not self._messages.empty():
            self.tell(self._messages.get())

    def _send(self) -> None:
        """The thread: records until None, or until MLflow fails."""
        tracker: Tracker | None = None
        while (record := self._records.get()) is not None:
            try:
                tracker = tracker or Tracker(self.uri, self.store.folder)
                tracker.log(record, artifacts_of(self.store, record))
            except NotMirrored as error:
                self._messages.put(str(error))
            except TrackingError as error:
                self._messages.put(str(error))
                return

"""Records and curves as MLflow runs."""

from harness.tracking.database import NotMirrored, TrackingError, default_uri, shown_uri
from harness.tracking.mirror import Mirror
from harness.tracking.mlflow_runs import Tracker, sync

__all__ = ["Mirror", "NotMirrored", "Tracker", "TrackingError", "default_uri", "shown_uri", "sync"]

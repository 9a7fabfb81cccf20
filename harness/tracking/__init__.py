"""Records and curves as MLflow runs."""

from harness.tracking.database import TrackingError, default_uri
from harness.tracking.mlflow_runs import Tracker, sync

__all__ = ["Tracker", "TrackingError", "default_uri", "sync"]

"""The older place of :mod:`harness.saved_models.served`, from which MLflow loads what it has."""

from harness.saved_models.served import _load_pyfunc

__all__ = ["_load_pyfunc"]

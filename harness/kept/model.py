"""The older place of :class:`~harness.saved_models.model.KeptModel`, for plugins."""

from harness.saved_models.model import KeptModel

__all__ = ["KeptModel"]

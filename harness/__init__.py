"""The machine of archbench: everything that is neither an architecture nor a task.

Plugins import from the top: :mod:`~harness.registry` (decorators), :mod:`~harness.kinds` (base
classes of architectures), :mod:`~harness.task` (base class of tasks), :mod:`~harness.views` (what
an architecture reads) and :mod:`~harness.layers`. The rest is in rooms: ``problems`` (what a task
type asks), ``metrics``, ``data``, ``user_data``, ``training``, ``running`` (grids
and engines), ``records``, ``saved_models``, ``scoring``, ``contract`` (the checks of plugins),
``model_selection`` (the command ``try``), ``tracking`` (MLflow), ``leaderboard`` and ``cli``.
"""

from __future__ import annotations

from harness import user_data as user_data  # offers the registry the tasks that TOML files describe


def __getattr__(name: str) -> str:
    """``__version__``, read from the package metadata only when asked for."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata

    try:
        return metadata.version("archbench")
    except metadata.PackageNotFoundError:  # a checkout that was not installed
        return "0+unknown"

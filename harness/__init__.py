"""The machine of archbench: everything that is neither an architecture nor a task.

Plugins import from the top: :mod:`~harness.registry` (decorators), :mod:`~harness.kinds` (base
classes of architectures), :mod:`~harness.task` (base class of tasks), :mod:`~harness.views` (what an
architecture reads) and :mod:`~harness.layers`. The rest is in rooms: ``problems`` (what a task type
asks), ``data``, ``training``, ``running`` (grids and engines), ``records``, ``scoring``,
``tracking`` (MLflow), ``leaderboard`` and ``cli``.
"""

"""archbench as a library: what this module exports is the promise, the rest may change.

::

    import archbench

    archbench.run("lstm,dan", "sst2", protocol="equal", seeds=(0, 1, 2))
    table = archbench.results()
    print(archbench.compare("lstm", "dan", "sst2"))

    [record] = archbench.run("lstm", "sst2", keep=True)
    model = archbench.load(record.key)
    print(model.predict(["a warm film"]))

Importing it loads neither torch nor pandas. Errors that a user can cause are
:class:`~harness.errors.ArchbenchError`: the message says what was found and what would be right.
"""

from __future__ import annotations

from archbench import own_folders  # noqa: F401  # isort: skip  # first: from now on ``harness`` is ours
from archbench.comparing import PairedTest, compare
from archbench.loading import Predictor, load
from archbench.running import run
from archbench.table import results

__all__ = ["PairedTest", "Predictor", "__version__", "compare", "load", "results", "run"]


def __getattr__(name: str) -> str:
    """``__version__``, read from the package metadata only when asked for."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import harness

    return harness.__version__

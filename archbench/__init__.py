"""archbench as a library: what this module exports is the promise, the rest may change.

>>> import archbench
>>> records = archbench.run("naive_bayes,tfidf_svm", "sst2", protocol="equal", mlflow="none")
>>> {record.status for record in records}
{'ok'}
>>> table = archbench.results()
>>> sorted(set(table["architecture"])), sorted(set(table["metric"]))
(['naive_bayes', 'tfidf_svm'], ['accuracy', 'macro_f1'])
>>> test = archbench.compare("naive_bayes", "tfidf_svm", "sst2")
>>> 0 <= test.p <= 1
True
>>> [record] = archbench.run("dan", "sst2", keep=True, mlflow="none")  # protocol smoke: seconds
>>> model = archbench.load(record.key)
>>> [answer] = model.predict(["a warm film"])
>>> answer["prediction"] in model.classes
True

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

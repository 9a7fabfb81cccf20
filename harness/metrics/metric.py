"""The base of the metrics of this package."""

from __future__ import annotations

from typing import Any, ClassVar

import datasets
import evaluate

TEXT, NUMBER, COUNT = (datasets.Value(name) for name in ("string", "float64", "int64"))
TEXTS = datasets.Sequence(TEXT)


class NoNumber(ValueError):
    """Predictions of which a metric is no finite number, as those of a training that diverged."""


class Metric(evaluate.Metric):
    """A metric of the library evaluate, whose class names its columns with the types of their
    values, and says in ``about`` what stands in them."""

    columns: ClassVar[dict[str, Any]]
    about: ClassVar[str]

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=type(self).__doc__ or "",
            citation="",
            inputs_description=self.about,
            features=datasets.Features(self.columns),
        )

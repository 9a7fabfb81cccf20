"""A plugin file: a task type with answers of a shape that nothing in the harness knows, with its
metric, task and system; and tasks of the two types of which none is shipped."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from harness.kinds import Estimator
from harness.problems.base import Problem
from harness.registry import register, register_metric, register_problem, register_task
from harness.task import Row, Task

STOPS = "ABCDEF"


@register_metric("stops_found", name="stops found", per_row=True)
def stops_found(prediction: Any, row: Row) -> float:
    """1 for the right stops in their order."""
    return float([stop["at"] for stop in prediction["route"]] == row["route"])


@register_problem(
    "routes",
    name="Routes",
    columns=("text", "route"),
    inputs=("text",),
    texts=("text",),
    metrics=("stops_found",),
)
class RoutesProblem(Problem):
    """The stops that a text names; a prediction is {"route": [{"at": stop}, ...], "minutes": n}."""

    floor_names = ("majority",)

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[Any]]:
        return {"majority": [{"route": [{"at": "A"}], "minutes": 0}] * len(rows)}

    def right(self, row: Row) -> Any:
        return {"route": [{"at": stop} for stop in row["route"]], "minutes": len(row["route"])}


@register_task(
    "walks",
    name="Walks",
    type="routes",
    metrics=("stops_found",),
    main_metric="stops_found",
    sizes={"train": 20},
    epochs=1,
    protocol="-",
)
class Walks(Task):
    """Walks of one to three stops."""

    def mini(self, split: str) -> Iterator[Row]:
        drawn = random.Random(split)
        for number in range(20):
            route = drawn.choices(STOPS, k=drawn.randint(1, 3))
            yield {"id": f"{split}-{number}", "text": "from " + " to ".join(route), "route": route}


@register("walker", name="Walker", kind="fit", paper="none", source="test", year=2026)
class Walker(Estimator):
    """The capital letters of a text, none of the first."""

    task_types = ("routes",)

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.parameter_count = 0

    def predict(self, rows: Sequence[Row]) -> list[Any]:
        found = ([{"at": word} for word in row["text"].split() if word in STOPS] for row in rows)
        return [{"route": stops[:2], "minutes": len(stops)} for stops in found]


@register_task(
    "degrees",
    name="Degrees",
    type="regress",
    metrics=("pearson", "mse"),
    main_metric="mse",
    sizes={"train": 30},
    epochs=1,
    protocol="-",
)
class Degrees(Task):
    """The share of warm words in a text."""

    def mini(self, split: str) -> Iterator[Row]:
        drawn = random.Random(split)
        for number in range(30):
            words = drawn.choices(("warm", "cold"), k=5)
            yield {"id": f"{split}-{number}", "text": " ".join(words), "score": words.count("warm") / 5}


@register_task(
    "degrees_apart",
    name="Degrees apart",
    type="regress_pair",
    metrics=("pearson", "mse"),
    main_metric="mse",
    sizes={"train": 30},
    epochs=1,
    protocol="-",
)
class DegreesApart(Task):
    """How far two texts of :class:`Degrees` are apart."""

    def mini(self, split: str) -> Iterator[Row]:
        drawn = random.Random(split)
        for number in range(30):
            first, second = (drawn.choices(("warm", "cold"), k=5) for _ in range(2))
            apart = abs(first.count("warm") - second.count("warm")) / 5
            yield {"id": f"{split}-{number}", "first": " ".join(first), "second": " ".join(second), "score": apart}

"""Predictions without a model, as rows of every table: what an architecture must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.kinds import Estimator, Prediction
from harness.problems import problem
from harness.registry import TaskEntry, register
from harness.task import Row


@register(
    "floor_majority",
    name="floor: the commonest answer",
    kind="floor",
    paper="none",
    source="none",
    year=0,
    hyperparameters={"predictions": "majority"},
    variants={
        "floor_random": {
            "name": "floor: answers drawn as often as in training",
            "hyperparameters": {"predictions": "random"},
        },
        "floor_nothing": {"name": "floor: no answer", "hyperparameters": {"predictions": "nothing"}},
        "floor_passage": {"name": "floor: the whole passage", "hyperparameters": {"predictions": "whole passage"}},
        "floor_copy": {
            "name": "floor: the passage's first word",
            "hyperparameters": {"predictions": "shortest copy"},
        },
        "floor_equal": {"name": "floor: equal scores", "hyperparameters": {"predictions": "equal"}},
        "floor_shared_words": {
            "name": "floor: the number of shared words",
            "hyperparameters": {"predictions": "shared words"},
        },
        "floor_newest_word": {
            "name": "floor: the newest fact's last word",
            "hyperparameters": {"predictions": "newest word"},
        },
        "floor_mean": {"name": "floor: the mean of training", "hyperparameters": {"predictions": "mean"}},
        "floor_commonest_tag": {
            "name": "floor: each word's commonest tag",
            "hyperparameters": {"predictions": "commonest tag of each word"},
        },
    },
)
class Floor(Estimator):
    """The ``predictions`` of that name that the problem of a task lists
    (:meth:`harness.problems.base.Problem.floors`)."""

    def __init__(self, task_type: str, seed: int = 0, predictions: str = "majority"):
        super().__init__(seed)
        self.problem, self.predictions = problem(task_type), predictions

    @classmethod
    def reason_to_skip(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        wanted, known = hyperparameters["predictions"], problem(task.type).floor_names
        if wanted in known:
            return None
        return f"tasks of type {task.type} have no such floor; theirs are {', '.join(known)}"

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.train = list(train)

    def predict(self, rows: Sequence[Row]) -> list[Prediction]:
        return self.problem.floors(self.train, rows)[self.predictions]

    def fitted_state(self) -> dict[str, Any]:
        return {"train": self.train}

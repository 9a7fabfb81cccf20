"""The checks of a system without gradient training on one mini task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from harness import registry
from harness.contract.base import CLEARLY, above, floor, require
from harness.kinds import Estimator
from harness.metrics import better, score
from harness.problems import problem
from harness.registry import ArchitectureEntry, TaskEntry
from harness.task import Row


@functools.cache
def _rows(task_id: str, split: str) -> Any:
    entry = registry.entry("tasks", task_id)
    return registry.load(entry)(entry).load(split, "mini")


class FittedCase:
    """A system without gradient training on one mini task."""

    def __init__(self, entry: ArchitectureEntry, task: TaskEntry, settings: dict[str, Any]):
        self.task, self.settings = registry.load(task)(task), settings
        self.cls: type[Estimator] = registry.load(entry)
        self.train, self.dev = _rows(task.id, "train").to_list(), _rows(task.id, "dev").to_list()
        self.problem = problem(task.type)
        self.hidden = self.problem.input_rows(self.dev)

    def checks(self, learning: bool) -> Iterator[tuple[str, Callable[[], None]]]:
        yield "a prediction per row", self.answers
        yield "same seed, same result", self.determinism
        if not self.cls.transductive:
            yield "reordering the rows changes nothing", self.order
            yield (
                "a text of length 1",
                lambda: self.accepts([self.problem.shortened(row) for row in self.train[:8]]),
            )
            yield (
                "a text of unknown words",
                lambda: self.accepts([self.problem.with_unknown_words(row) for row in self.train[:8]]),
            )
        if learning:
            yield "beats the floor on its mini task", self.learns

    @functools.cached_property
    def fitted(self) -> Estimator:
        return self.fit()

    def fit(self) -> Estimator:
        estimator = self.cls(seed=0, **self.settings)
        estimator.fit(self.train, self.dev, self.hidden if self.cls.transductive else ())
        return estimator

    def answers(self) -> None:
        predictions = self.fitted.predict(self.hidden)
        require(len(predictions) == len(self.hidden), f"{len(predictions)} predictions for {len(self.hidden)} rows")
        score(self.task.entry.metrics, predictions, self.dev)

    def determinism(self) -> None:
        first, second = self.fitted.predict(self.hidden), self.fit().predict(self.hidden)
        require(first == second, "two fits with one seed predict differently")

    def order(self) -> None:
        require(
            self.fitted.predict(self.hidden)[::-1] == self.fitted.predict(self.hidden[::-1]),
            "predictions depend on the order of the rows",
        )

    def accepts(self, rows: list[Row]) -> None:
        require(len(self.fitted.predict(self.problem.input_rows(rows))) == len(rows), "a prediction is missing")

    def learns(self) -> None:
        main = self.task.entry.main_metric
        limit = score([main], floor(self.task.entry, self.train, self.dev), self.dev)[main]
        found = score([main], self.fitted.predict(self.hidden), self.dev)[main]
        require(
            better(main, found, above(main, limit, CLEARLY)), f"{main} on dev is {found:.3f}; the floor is {limit:.3f}"
        )

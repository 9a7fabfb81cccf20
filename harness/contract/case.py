"""The checks of an architecture on one mini task that do not depend on how it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.contract.base import Check
from harness.contract.process import Watch
from harness.problems.base import Problem
from harness.task import Row


class Case:
    """An architecture on one mini task."""

    problem: Problem

    def checks(self, learning: bool) -> Iterator[tuple[str, Check]]:
        """Names and bodies of the checks, in the order in which they are to run; with or without
        those that need a training."""
        with Watch() as watch:
            yield from self.of_the_system(learning)
        yield "threads bounded, settings kept", watch.require_bounded
        yield "the time limit can be kept", watch.require_endable

    def of_the_system(self, learning: bool) -> Iterator[tuple[str, Check]]:
        """The checks of what the architecture computes."""
        raise NotImplementedError

    def of_odd_texts(self) -> Iterator[tuple[str, Check]]:
        """The checks that it takes texts which real data hold now and then."""
        yield "a text of length 1", lambda: self.accepts(self.problem.shortened)
        yield "a text of unknown words", lambda: self.accepts(self.problem.with_unknown_words)

    def accepts(self, change: Callable[[Row], Row]) -> None:
        """Some of the training rows can be answered when they are changed."""
        raise NotImplementedError

"""The checks of an architecture on one mini task that do not depend on how it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.contract.base import Broken, Check
from harness.contract.process import Watch
from harness.errors import ContractError
from harness.problems.base import Problem
from harness.saved_models.folder import Origin
from harness.task import Row


def of_no_cell(**hyperparameters: Any) -> Origin:
    """The origin of a model that is kept for a check."""
    return Origin(key="", cell={"hyperparameters": hyperparameters}, data={}, predictions=None)


class Case:
    """An architecture on one mini task."""

    problem: Problem
    can_be_kept = False
    """True once what is kept of the system was seen to answer as it does; asked elsewhere, one that
    does not would fail for the same reason."""

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

    def keeps_the_rules(self, system: Any, predict: Callable[[list[Row]], list[Any]], rows: Sequence[Row]) -> None:
        """The predictions of a system keep the rules of the problem that no metric can see; the
        parameters are those of :meth:`~harness.problems.base.Problem.sound`."""
        try:
            self.problem.sound(system, predict, rows)
        except ContractError as error:
            raise Broken(str(error)) from error

    def accepts(self, change: Callable[[Row], Row]) -> None:
        """Some of the training rows can be answered when they are changed."""
        raise NotImplementedError

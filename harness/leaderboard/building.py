"""Pages and files that are built each by itself, so that one which fails takes no other with it."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from harness.errors import LeaderboardError
from harness.leaderboard.board import Board
from harness.leaderboard.results import Result
from harness.records import Record

Built = TypeVar("Built")


class Fault(NamedTuple):
    """A file that could not be built, or the part of one task in it.

    ``task`` is empty where it is the whole file, ``record`` (a path below the results folder) where
    no record was being read.
    """

    file: str
    task: str
    record: str
    error: str
    trace: str

    @property
    def words(self) -> str:
        """One line for the page and the command."""
        what = f"the part of {self.task} is left out" if self.task else "could not be built"
        return f"{what}: {self.error}" + (f", of record {self.record}" if self.record else "")


@dataclass
class Builder:
    """Builds the files of one board, and keeps the faults."""

    board: Board
    faults: list[Fault] = field(default_factory=list)

    def build(self, file: str, make: Callable[[Board], Built], task: str = "") -> Built | None:
        """All that ``make`` gives for a file; None if it fails.

        Where it fails at a record, it is asked again for the board without the records of that
        task: one task's part does not take the rest of its page. ``task`` is the one that a file is
        about, which is nothing without it.
        """
        board = self.board
        while True:
            try:
                return make(board)
            except LeaderboardError:  # a user's error, which every page would have
                raise
            except Exception as error:  # of records and plugins that may be anybody's
                record = _record_at_fault(error)
                left_out = record.task if record and record.task in board.recorded_tasks else ""
                if left_out in (task, *board.recorded_tasks[: len(board.recorded_tasks) == 1]):
                    left_out = ""
                path = str(board.store.path(record).relative_to(board.store.folder)) if record else ""
                told = f"{type(error).__name__}: {error}".splitlines()[0]
                self.faults.append(Fault(file, left_out, path, told, traceback.format_exc()))
            if not left_out:
                return None
            board = _without(board, left_out)

    def told(self, file: str) -> list[str]:
        """The faults of a file in words."""
        return [fault.words for fault in self.faults if fault.file == file]


@functools.cache  # several pages may fail at the same task
def _without(board: Board, task: str) -> Board:
    return replace(board, records=[record for record in board.records if record.task != task])


def _record_at_fault(error: BaseException) -> Record | None:
    """The record that was being read where an error arose: that of the innermost call which has one
    in a variable."""
    found: Record | None = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            if isinstance(value, Record):
                found = value
            elif isinstance(value, Result):
                found = value.first
    return found

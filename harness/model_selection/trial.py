"""A trial: architectures on a user's rows, in the order of what is known of them, within a total
time."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from harness import registry
from harness.errors import DataError, ModelError, RecordError
from harness.leaderboard.tables.formatting import failure_reason
from harness.metrics import display_info
from harness.model_selection.candidates import PROTOCOL, Candidate, candidates
from harness.model_selection.choice import Choice, Scored, Tried, choose
from harness.model_selection.evidence import Order, likeness, lines, ordered
from harness.model_selection.slices import Slices, slices
from harness.model_selection.wish import Preference, Wish
from harness.records import Record, Store
from harness.running.behind import Behind
from harness.running.engines.local import default_workers
from harness.running.refit import FOLDS
from harness.running.request import Request
from harness.running.session import Session
from harness.running.worker_settings import BY_TIMEOUT
from harness.saved_models import storage
from harness.saved_models.folder import describe
from harness.user_data.task import OwnTask

SHARE = 0.9
"""Share of the time that is left which trainings may take; the rest is for reading and scoring."""
LATE = 2.0
"""The last trainings may take so many times what is foretold of them, even where they pass the end:
a model a little late is worth more than none."""
NEAR = 3
"""Finished architectures, the nearest in cost, by which the time of the next one is foretold."""
FINALS, FINALS_SHARE = 8, 0.25
"""So many of those in front at most are compared once more, in this share of the whole time at
most: by a quarter of the rows alone the best of several equals is a matter of luck."""
LEAST = 5.0
"""Seconds below which no training is begun."""
SAMPLE = 2_000
"""Rows for training whose words and classes tell which tasks are alike."""


class Trial:
    """The search for what suits a task, and its outcome so far.

    ``folder``, below that of the results, has its page, slices, records and models.
    ``order`` says which comes when, and why; ``tried`` are the architectures that ended well,
    ``finals`` those of them that were compared on more rows, ``behind`` what is known by id of
    those that were stopped since they were clearly behind,
    ``left_out`` the reason of each other one, ``confirmed`` the recommended one on the sealed
    rows, and ``also_confirmed`` the ids of those that earlier calls confirmed there;
    ``stopped`` is true after Ctrl-C. ``handed_over`` is the record of the cell whose model is
    kept, and ``saw`` the number of rows from which that model learnt where it was trained once more
    (``refit``).
    """

    def __init__(
        self,
        task: OwnTask,
        results: Path,
        deadline: float,
        pattern: str = "*",
        command: str = "",
        wish: Wish = Wish(),
        refit: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ):
        # A folder of its own: slices of one table are no tasks that a leaderboard should show.
        self.folder = results / "try" / task.entry.id
        self.task, self.store, self.deadline = task, Store(self.folder.resolve()), deadline
        self.whole_time = deadline - clock()
        self.command, self.wish, self.refit, self.clock = command, wish, refit, clock
        self.store.check_writable()
        self.slices: Slices = slices(task, self.folder)
        for file in self.slices.files:
            registry.add_plugin(file)
        self.order, self.left_out = self._ordered(pattern)
        # What was behind the last time has its turn again when all others had theirs.
        self.waiting = sorted(self.order.candidates, key=lambda each: self._was_behind(each.entry.id))
        self.tried: list[Tried] = []
        self.finals: tuple[Tried, ...] = ()
        self.behind: dict[str, str] = {}
        self.confirmed: Scored | None = None
        self.also_confirmed: list[str] = []
        self.why_not_confirmed = ""
        self.why_not_kept = ""
        self.handed_over: Record | None = None
        self.saw: int | None = None
        self.stopped = False
        self._work: list[tuple[float, float]] = []

    def _ordered(self, pattern: str) -> tuple[Order, dict[str, str]]:
        entry = self._entry(self.slices.choosing[0])
        found, left_out = candidates(pattern, entry, self.slices.train)
        train = registry.load(entry)(entry).load("train", "own")
        sample = train.select(range(0, len(train), max(1, len(train) // SAMPLE))).to_list()
        return ordered(found, likeness(entry, self.slices.train, sample), lines()), left_out

    def _entry(self, file: Path) -> registry.TaskEntry:
        return next(entry for entry in registry.entries("tasks").values() if entry.file == file.resolve())

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.deadline - self.clock()

    def run(self, shown: Callable[[Sequence[Tried]], object]) -> None:
        """Try what there is time for. ``shown`` is called with those that ended well since it was
        called last, first within the first minute. Then those in front are compared once more, and
        the choice is confirmed."""
        slots = default_workers(1, 1)
        at_once = max(1, slots // len(self.slices.choosing))
        while self.waiting and not self.stopped:
            if batch := self._batch(at_once, slots):
                shown(self._try(batch, slots))
        for candidate in self.waiting:
            self.left_out[candidate.entry.id] = "stopped before its turn"
        self.waiting = []
        self._compare(slots)
        self._confirm()

    def _batch(self, at_once: int, slots: int) -> list[Candidate]:
        """The next ones for which there is time; after floors one more, so that a table has a
        model."""
        batch: list[Candidate] = []
        while self.waiting and (len(batch) < at_once or batch[-1].is_floor):
            candidate = self.waiting.pop(0)
            if reason := "" if candidate.is_floor else self._no_time(candidate, slots):
                self.left_out[candidate.entry.id] = reason
            else:
                batch.append(candidate)
        return batch

    def _allowed(self, slots: int) -> float:
        """Seconds that a cell may take now: what it is chosen by, and its last trainings if it is
        chosen, fit into the time that is left, and so do those of the one that would be chosen
        now, and the comparison of those in front."""
        turns, left = math.ceil(len(self.slices.choosing) / slots), SHARE * self.left
        best = self.choice.recommended if self.tried else None
        kept_free = (
            0.0
            if best is None
            else self._last_trainings(best.tried.seconds, best.tried.entry) + self._finalists(slots)[1]
        )
        return max(0.0, min(left / (turns + self._last_trainings(1.0)), (left - kept_free) / turns))

    def _last_trainings(self, seconds: float, entry: registry.ArchitectureEntry | None = None) -> float:
        """Seconds of the training that confirms a choice, and of the one on all its rows, of an
        architecture whose cells took so many on fewer rows. One without gradients may choose its
        settings again by several fits."""
        fits = FOLDS - 1 if entry is not None and entry.kind == "fit" else 1
        confirming = self.slices.train_last if self.slices.sealed or self.refit else 0
        return seconds * (confirming + fits * self.refit * self.slices.last_rows) / self.slices.train

    def _finalists(self, slots: int) -> tuple[list[Scored], float]:
        """Those in front that are compared once more, best first, and the seconds that it takes;
        none if the best is too expensive for it, or the cheapest is wanted."""
        if not self.slices.again or self.wish.prefer != Preference.best or self.choice.recommended is None:
            return [], 0.0
        found: list[Scored] = []
        left, turns = FINALS_SHARE * self.whole_time, len(self.slices.again) / slots
        for each in self.choice.leading:
            seconds = turns * each.tried.seconds
            if self.wish.allows(each.tried.latency_ms, each.tried.size_mib) and seconds <= left:
                found.append(each)
                left -= seconds
        if len(found) < 2 or found[0] is not self.choice.recommended:
            return [], 0.0
        return found[:FINALS], turns * sum(each.tried.seconds for each in found[:FINALS])

    def _no_time(self, candidate: Candidate, slots: int) -> str:
        """The reason why an architecture cannot be tried in the time that is left; empty if it
        can."""
        allowed, expected = self._allowed(slots), self._expected(candidate)
        if allowed < LEAST or (expected is not None and expected > allowed):
            about = "" if expected is None else f"about {_rounded(expected)} s for a training, and "
            return f"no time: {about}{_rounded(max(0.0, allowed))} s were left for one"
        return ""

    def _expected(self, candidate: Candidate) -> float | None:
        """Seconds of a training, by the nearest that ended; None where nothing is known, and for
        systems without gradients, whose speeds tell little of each other's."""
        if not self._work or not candidate.is_trained:
            return None
        start = min(tried.seconds for tried in self.tried)  # of a cell that trains next to nothing
        near = sorted(self._work, key=lambda each: abs(math.log(each[0] / candidate.work)))[:NEAR]
        slowness = sum(max(0.0, seconds - start) for _, seconds in near) / sum(work for work, _ in near)
        return start + slowness * candidate.work

    def _try(self, batch: Sequence[Candidate], slots: int) -> list[Tried]:
        ids = [candidate.entry.id for candidate in batch]
        limit = max(LEAST, self._allowed(slots))
        try:
            found, heard = self._records(ids, self.slices.choosing, limit, rival=self._rival)
        except DataError as error:  # reading the rows takes time too
            if not self.tried and BY_TIMEOUT in str(error):
                raise DataError(
                    f"{self.task.description.file}: reading its {self.slices.rows:,} rows takes longer than its share"
                    " of --minutes; give more"
                ) from error
            if not self.tried:
                raise
            self.left_out |= dict.fromkeys(ids, _of_minutes(str(error)))
            return []
        ended = []
        for candidate in batch:
            records = [found.get((candidate.entry.id, self._entry(file).id)) for file in self.slices.choosing]
            good = tuple(record for record in records if record is not None and record.status == "ok")
            if len(good) == len(records):
                ended.append(Tried(candidate.entry, good))
                if candidate.is_trained:
                    self._work.append((candidate.work, ended[-1].seconds))
            elif (told := next(filter(None, map(_behind, records)), None)) is not None:
                self.behind[candidate.entry.id] = told
            else:
                self.left_out[candidate.entry.id] = self._why(records, heard)
        self.tried += ended
        self.__dict__.pop("choice", None)  # it was among fewer
        return ended

    @property
    def _rival(self) -> float | None:
        """The best dev score so far; None in a cross-validation, each part of which has few rows
        and ones of its own."""
        metric = self.task.entry.main_metric
        scores = [each.records[0].scores["dev"][metric] for each in self.tried]
        if len(self.slices.choosing) > 1 or not scores:
            return None
        return max(scores, key=display_info(metric).quality)

    def _was_behind(self, id: str) -> bool:
        """True if an architecture was stopped by an earlier call."""
        folder = self.store.folder / "records" / self._entry(self.slices.choosing[0]).id / id
        for file in folder.glob("*.json"):
            with suppress(RecordError):  # a damaged one is told when its turn comes
                if _behind(self.store.read(file)) is not None:
                    return True
        return False

    def _why(self, records: Sequence[Record | None], heard: Sequence[str]) -> str:
        """The reason why an architecture has no score."""
        failed = next((record for record in records if record is not None and record.status != "ok"), None)
        if failed is not None:
            return _of_minutes(f"{failed.status}: {failure_reason(failed)}")
        return "stopped" if self.stopped else "; ".join(heard) or "it has no record"

    def _records(
        self,
        ids: Sequence[str],
        files: Sequence[Path],
        timeout: float,
        keep: bool = False,
        refit: bool = False,
        rival: float | None = None,
    ) -> tuple[dict[tuple[str, str], Record], list[str]]:
        """The records of these architectures on these slices, by architecture and task, and what
        the run told."""
        heard: list[str] = []
        request = Request(
            self.store.folder,
            architectures=",".join(ids),
            tasks=",".join(self._entry(file).id for file in files),
            protocol=PROTOCOL,
            timeout=timeout,
            mlflow="none",
            retry_failed=True,
            changed=True,  # else scores of other code, or by another main metric, would choose too
            keep=keep,
            refit=refit,
            rival=rival,
            command=self.command,
        )
        session = Session(request, heard.append, heard.append)
        records = session.run()
        self.stopped = self.stopped or len(records) < len(session.pending.run)
        return {(each.architecture, each.task): each for each in [*session.pending.finished, *records]}, heard

    @functools.cached_property
    def choice(self) -> Choice:
        """The choice among what was tried so far; :class:`~harness.errors.RecordError` for a file
        of outcomes that is damaged."""
        metric = self.task.entry.main_metric
        found = choose(self.tried, metric, self.store, self.slices.rows, self.wish)
        return found.decided(choose(self.finals, metric, self.store, self.slices.rows)) if self.finals else found

    def _compare(self, slots: int) -> None:
        """Compare the best of those in front on the other parts of the rows too."""
        if self.stopped or not self.tried:
            return
        finalists, _ = self._finalists(slots)
        if not finalists:
            return
        ids = [each.tried.entry.id for each in finalists]
        limit = max(LEAST, LATE * max(each.tried.seconds for each in finalists))
        try:
            found, _ = self._records(ids, self.slices.again, limit)
        except DataError:  # what is in front stays there
            return
        tasks = [self._entry(file).id for file in self.slices.again]
        ended = []
        for each in finalists:
            records = [found.get((each.tried.entry.id, task)) for task in tasks]
            good = [record for record in records if record is not None and record.status == "ok"]
            if len(good) == len(tasks):
                ended.append(Tried(each.tried.entry, (*each.tried.records, *good)))
            elif each is finalists[0]:  # which came out best so far, and may be so still
                return
        if len(ended) > 1:
            self.finals = tuple(ended)
            self.__dict__.pop("choice", None)

    def _confirm(self) -> None:
        """Train the recommended one once more, score it on the sealed rows, and keep what it learnt
        then of all rows."""
        recommended = self.choice.recommended
        if recommended is None:
            return
        if not (self.slices.sealed or self.refit):
            self.why_not_kept = (
                "each row was answered by another one (cross-validation), and --no-refit trains none on all rows;"
                " leave it out to have one"
            )
            return
        if self.stopped:
            self.why_not_confirmed = "stopped"
            return
        entry, file = recommended.tried.entry, self.slices.last
        limit = max(self.left, LEAST, LATE * self._last_trainings(recommended.tried.seconds, entry))
        cell = entry.id, self._entry(file).id
        try:
            found, heard = self._records([entry.id], [file], limit, keep=True, refit=self.refit)
            if cell in found and not self.refit and storage.is_refitted(self.store.folder, found[cell].key):
                # An earlier call kept what saw all rows, and the one that was scored is asked for.
                storage.set_aside(self.store.folder, found[cell].key)
                found, heard = self._records([entry.id], [file], limit, keep=True)
        except DataError as error:  # reading the rows takes time too
            self.why_not_confirmed = _of_minutes(str(error))
            return
        record = found.get(cell)
        if record is None or record.status != "ok":
            self.why_not_confirmed = self._why([record], heard)
            return
        self._hand_over(record)
        if not self.slices.sealed:
            return
        metric = self.task.entry.main_metric
        try:
            self.confirmed = choose([Tried(entry, (record,))], metric, self.store, self.slices.rows).rows[0]
        except RecordError as error:
            self.why_not_confirmed = str(error)
        self.also_confirmed = self._also_confirmed(record)

    def _also_confirmed(self, ours: Record) -> list[str]:
        """Ids of the other architectures that earlier calls scored on the same sealed rows."""
        found = set()
        for file in (self.store.folder / "records" / ours.task).glob("*/*.json"):
            with suppress(RecordError):  # a damaged one has no score that anybody was shown
                record = self.store.read(file)
                if record.status == "ok" and record.data.get("test") == ours.data.get("test"):
                    found.add(record.architecture)
        return sorted(found - {ours.architecture})

    def _hand_over(self, record: Record) -> None:
        try:
            origin = describe(storage.place(self.store.folder, record.key)).origin
        except ModelError as error:  # its state cannot be kept
            self.why_not_kept = str(error)
            return
        self.saw = origin.refitted
        if self.slices.sealed or self.saw:
            self.handed_over = record
        else:  # that of one part of the rows, whose score is not the one shown
            why = origin.not_refitted or "no reason is known"
            self.why_not_kept = f"its training on all rows came to nothing: {why}"


def _of_minutes(message: str) -> str:
    """A message on a limit in the words of who gave minutes, of which a cell has a share."""
    return message.replace(BY_TIMEOUT, "(its share of --minutes)")


def _behind(record: Record | None) -> str | None:
    """Words on a training that was stopped since it was clearly behind; None for another record."""
    error = (record and record.error) or {}
    return error["message"] if error.get("type") == Behind.__name__ else None


def _rounded(seconds: float) -> str:
    return f"{seconds:,.0f}"

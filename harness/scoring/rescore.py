"""Rescoring of saved predictions, so that a corrected metric costs no training (``archbench
rescore``)."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import DataError, RecordError, RegistryError
from harness.records import Record, Store
from harness.records.code_digest import code_of_cell
from harness.settings import Limits
from harness.task import SUPPORTING_FACTS, DataName, Tier, fingerprint

Change = tuple[float | None, float]
"""Value of a metric before (None: there was none) and after."""


def rescore(
    store: Store,
    data_dir: Path | None,
    only: Callable[[Record], bool] | None = None,
    shown: Callable[[Sequence[Record]], Iterable[Record]] = iter,
) -> list[tuple[Path, dict[str, Change]]]:
    """Computes the test scores of the ok records (those for which ``only`` holds) and writes the
    records whose scores changed, in the schema that they have.

    A record whose task was edited since, and reads the same rows as ever, is given the digest of
    the task's code as it is now: with these scores nothing of it is by other code of its task. The
    outcomes of every record that is scored are written again. Returns the path of each record that
    was written with its changes by metric. A record whose data or predictions are not those that it
    was made with is left alone, with a warning that names it and the reason. ``shown`` passes the
    records on, and shows how many are left.
    """
    changed: list[tuple[Path, dict[str, Change]]] = []
    records = [record for record in store.all() if record.status == "ok" and (only is None or only(record))]
    for (task, tier), group in groupby(shown(sorted(records, key=_data)), key=_data):
        try:
            data = _TestData(task, tier, data_dir)
        except (DataError, registry.RegistryError, OSError, ValueError, NotImplementedError) as error:
            warnings.warn(f"{task} ({tier}): {len(list(group))} records not rescored: {error}", stacklevel=2)
            continue
        for record in group:
            try:
                if (changes := data.score(record, store)) is not None:
                    changed.append((store.path(record), changes))
            except (
                Exception
            ) as error:  # a metric may raise anything on foreign predictions, and one record must not stop the others
                warnings.warn(f"{store.path(record)} not rescored: {error}", stacklevel=2)
    return changed


def _data(record: Record) -> tuple[str, Tier]:
    return record.task, record.tier


class _TestData:
    """The test split of one task, the words of its training sets, and digests of its data."""

    def __init__(self, task: str, tier: Tier, folder: Path | None):
        self.entry = registry.entry("tasks", task)
        self._task, self._tier, self._folder = registry.load(self.entry)(self.entry), tier, folder
        self._rows = list(self._task.load("test", tier, folder))
        self._fingerprint = fingerprint(self._rows)

    def score(self, record: Record, store: Store) -> dict[str, Change] | None:
        """Write outcomes and, where it is another now, the record; returns the changes of scores,
        None for a record that stayed as it was."""
        from harness.problems import problem
        from harness.scoring.error_analysis import outcomes

        if self._fingerprint != record.data.get("test"):
            raise RecordError(
                f"the test data are {self._fingerprint}, the record was made with {record.data.get('test')}"
            )
        ids, predictions = store.load_predictions(record)
        by_id = dict(zip(ids, predictions, strict=True))
        if by_id.keys() != {row["id"] for row in self._rows}:
            raise RecordError(
                f"the predictions are for {len(by_id)} examples that are not the {len(self._rows)} of the test split"
            )
        predictions = [by_id[row["id"]] for row in self._rows]
        changes = self._changes(record, predictions)
        digest = self._other_code(record)
        if changes:
            record.scores = record.scores | {
                "test": record.scores.get("test", {}) | {m: new for m, (_, new) in changes.items()}
            }
        if digest is not None:
            record.code = (record.code or {}) | {"task": digest}
        if changes or digest is not None:
            store.write(record)
        known = self._training_words(Limits.of(record.hyperparameters).labelled, record.data.get("train", ""))
        analysed = outcomes(problem(self.entry.type), self.entry.main_metric, predictions, self._rows, known)
        if analysed is not None and record.predictions is not None:
            store.save_outcomes(record, record.predictions, ids, analysed)
        return changes if changes or digest is not None else None

    def _other_code(self, record: Record) -> str | None:
        """The digest of the task's code as it is now, where it is another than that of a record and
        the code gives the same as then; None for all other records."""
        now = code_of_cell(record)
        if not record.code or not now or record.code.get("task") in (None, now["task"]):
            return None
        sees = registry.entry("architectures", record.architecture).sees
        # No digest of data tells of these, nor of a metric by which epochs were chosen.
        besides = SUPPORTING_FACTS in sees or self._task.label_tree
        if besides or record.main_metric != self.entry.main_metric or not {"train", "dev"} <= record.data.keys():
            return None
        limits = Limits.of(record.hyperparameters)
        most = {"train": limits.labelled, "unlabelled": limits.max_train}
        same = all(self._digest(name, most.get(name)) == digest for name, digest in record.data.items()) and all(
            self._of_companion(each["task"], limits.labelled) == each.get("train") for each in record.companions or ()
        )
        return now["task"] if same else None

    @functools.lru_cache  # noqa: B019 - as long as this object, which is as long as its records
    def _digest(self, name: DataName, most: int | None) -> str:
        """Digest of a part of the data as the task's code reads it now."""
        from harness.data.loaded_rows import digest

        return self._fingerprint if name == "test" else digest(self._task, self._tier, self._folder, name, most)

    @functools.lru_cache  # noqa: B019 - likewise
    def _of_companion(self, task: str, most: int | None) -> str:
        """Digest of the training rows of a further task; nothing where they cannot be read here."""
        from harness.data.loaded_rows import digest

        try:
            entry = registry.entry("tasks", task)
            return digest(registry.load(entry)(entry), self._tier, self._folder, "train", most)
        except (DataError, RegistryError):
            return ""

    def _changes(self, record: Record, predictions: list[Any]) -> dict[str, Change]:
        """Changes of metrics; another rounding of the last digits is none."""
        from harness.metrics import score

        old = record.scores.get("test", {})
        new = score(self.entry.metrics, predictions, self._rows, self._task.label_tree)
        return {
            m: (old.get(m), value)
            for m, value in new.items()
            if m not in old or not math.isclose(old[m], value, rel_tol=1e-12)
        }

    @functools.lru_cache  # noqa: B019 - as long as this object, which is as long as its records
    def _training_words(self, most: int | None, expected: str) -> frozenset[str] | None:
        from harness.scoring.error_analysis import words_trained_on

        return words_trained_on(self._task, self._tier, self._folder, most, expected)

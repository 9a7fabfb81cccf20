"""MultiNLI: does a premise of one of many genres entail, contradict or leave open a hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from harness.errors import DataError
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import genres
from tasks.readers import hub
from tasks.readers.delimited import tab_separated
from tasks.readers.holdout import hold_out
from tasks.readers.lines import find, present
from tasks.readers.snli import pairs

if TYPE_CHECKING:
    import datasets

LABELS = ("entailment", "neutral", "contradiction")
_SUBSET, _TEST_SUBSET = "mnli_train_subset.tsv", "mnli_val_subset.tsv"
_SUBSET_HEADER = ("sentence1", "sentence2", "label", "genre")
_REPOSITORY, _REVISION = "nyu-mll/multi_nli", "da70db2af9d09693783c3320c4249840212ee221"


@register_task(
    "mnli_matched",
    name="MultiNLI matched",
    type="match",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 382885, "dev": 9817, "test": 9815},
    budgets={
        "small": Budget(
            4,
            examples=2500,
            min_steps=600,
            batch_size=16,
            reason="as for SNLI; premises are half as long again, so a cell takes longer",
        ),
        "full": Budget(
            4,
            min_steps=1500,
            batch_size=32,
            reason="as for SNLI: two texts a pair",
        ),
    },
    # as on SNLI; not measured.
    dropout=0.1,
    protocol=(
        "first is the premise, second the hypothesis; pairs without a gold label are dropped. The official test has no"
        " published labels, so the official matched dev set (9,815 pairs, the genres of train) is our test, as in most"
        " papers' dev columns. Dev is 2.5 % of the 392,702 training pairs, all pairs of a premise together, chosen by"
        " the SHA-256 of the premise and not trained on. Tier local trains on multinli_1.0_train.jsonl if it is there,"
        " else on mnli_train_subset.tsv, a course's sample of 20,000 tokenised pairs, of which 500 are dev. It tests on"
        " multinli_1.0_dev_matched.jsonl if it is there, else on the course's mnli_val_subset.tsv: 5,000 tokenised"
        " pairs of these genres, 2,080 of which share their premise with an earlier one, as in the official dev set and"
        " not in a sample of train. No score counts as one of the official test."
    ),
)
class MnliMatched(Task):
    """Sentence pairs of Williams et al. 2018, tested on the five genres of the training set."""

    official_test = False  # its labels are not published
    test_file: ClassVar[str] = "multinli_1.0_dev_matched.jsonl"
    test_sample: ClassVar[str | None] = _TEST_SUBSET
    matched: ClassVar[bool] = True
    hub = Hub(_REPOSITORY, _REVISION, splits=(("train", "train"), ("dev", "train"), ("test", "validation_matched")))

    def mini(self, split: Split) -> Iterable[Row]:
        return genres.rows(split, self.matched)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        folder = folder / "multinli"
        if split == "test":
            return _rows_of(folder, self.test_file, self.test_sample, "test")
        return _part(_rows_of(folder, "multinli_1.0_train.jsonl", _SUBSET, "train"), split)

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        names = hub.class_names(self.hub, rows, "label", LABELS)
        hub.require_columns(self.hub, rows, "premise", "hypothesis")
        part = "test" if split == "test" else "train"
        found = (
            {
                "id": f"{part}-{number}",
                "first": row["premise"],
                "second": row["hypothesis"],
                "label": names[row["label"]],
            }
            for number, row in enumerate(rows, 1)
            if row["label"] != -1
        )
        return found if split == "test" else _part(found, split)


@register_task(
    "mnli_mismatched",
    name="MultiNLI mismatched",
    type="match",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 382885, "dev": 9817, "test": 9832},
    budgets="mnli_matched",
    # as on the matched genres.
    dropout=0.1,
    protocol=(
        "As MultiNLI matched, with the same train and dev, but our test is the official mismatched dev set: 9,832 pairs"
        " of five genres that the training set lacks, and there is no sample of it."
    ),
)
class MnliMismatched(MnliMatched):
    """The pairs of the matched task, tested on five genres that are not in the training set."""

    test_file = "multinli_1.0_dev_mismatched.jsonl"
    test_sample = None
    matched = False
    hub = Hub(_REPOSITORY, _REVISION, splits=(("train", "train"), ("dev", "train"), ("test", "validation_mismatched")))


def _rows_of(folder: Path, official: str, sample: str | None, part: str) -> Iterator[Row]:
    """Rows of the official file, or else of the course's sample of it."""
    if sample is None or present(folder, official) or not present(folder, sample):
        path = find(folder, official)
        return _rows(path, part, pairs(path))
    path = find(folder, sample)
    read = tab_separated(path, _SUBSET_HEADER)
    return _rows(path, part, ((line, row["sentence1"], row["sentence2"], row["label"]) for line, row in read))


def _rows(path: Path, part: str, found: Iterable[tuple[int, str, str, str]]) -> Iterator[Row]:
    for line, premise, hypothesis, label in found:
        if label not in (*LABELS, "-"):
            raise DataError(f"{path}, line {line}: gold label {label!r:.80}, expected {', '.join(LABELS)} or -")
        if label != "-":
            yield {"id": f"{part}-{line}", "first": premise, "second": hypothesis, "label": label}


def _part(rows: Iterable[Row], split: Split) -> list[Row]:
    train, dev = hold_out(rows, share=0.025, group=lambda row: row["first"])
    return train if split == "train" else dev

"""The check of a split's rows: every row, every column, and a message that leads to the fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.errors import DataError
from harness.registry import ProblemEntry, TaskEntry
from harness.task import Task

ROWS: dict[str, dict[str, Any]] = {
    "classify": {"text": "a warm film", "label": "positive"},
    "multilabel": {"text": "a warm film", "labels": ["drama", "family"]},
    "language_model": {"text": ["a", "warm", "film"]},
    "text": {"text": "a warm film"},
    "audio": {"audio": {"bytes": b"RIFF", "path": "a.wav"}},
    "match": {"first": "a b", "second": ["c", "d"], "label": "same"},
    "rank": {"first": "who?", "second": "Ann", "label": "1", "group": "q1"},
    "tag": {"text": ["Ann", "sings"], "tags": ["B-PER", "O"]},
    "extract": {"passage": "Ann sings", "question": "who?", "answers": {"text": ["Ann"], "start": [0]}},
    "answer": {"facts": ["Ann sings"], "question": "who?", "answer": "Ann", "skill": "who"},
    "regress": {"text": "a warm film", "score": 1.5},
    "regress_pair": {"first": "a b", "second": "a c", "score": 2},
    "translate": {"source": "a b", "target": "c d."},
    "transcribe": {"audio": {"bytes": b"RIFF", "path": "a.wav"}, "transcript": ""},
}


def task(type: str) -> Task:
    """A task of a type, whose rows the test gives to its check."""
    metrics = {"metrics": ("accuracy",), "main_metric": "accuracy", "sizes": {"train": 10}, "epochs": 1}
    place = {"id": "set_a", "file": Path(__file__), "class_name": "Task"}
    return Task(TaskEntry(**place, name="Set A", type=type, protocol="-", **metrics))


def complaint(type: str, *changed: dict[str, Any] | None) -> str:
    """What the check of ten good rows says whose last ones are changed (a value of ``...`` takes
    the column away)."""
    rows = [{"id": f"r{number}"} | ROWS[type] for number in range(10)]
    for row, change in zip(reversed(rows), reversed(changed), strict=False):
        row |= change
        for column in [column for column, value in row.items() if value is ...]:
            del row[column]
    try:
        task(type)._check(rows, "dev")
    except DataError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("type", registry.TASK_TYPES)
def test_rows_of_every_type_pass_as_its_task_adapters_make_them(type):
    assert complaint(type) == ""


@pytest.mark.parametrize(
    ("type", "changed", "message"),
    [
        ("classify", {"label": 3}, "set_a: split dev, row 'r9': column label is 3 (int), expected a string that"),
        ("classify", {"label": ""}, "column label is '' (str), expected a string that is not empty"),
        ("classify", {"label": ...}, "set_a: split dev, row 'r9': no column label"),
        ("classify", {"text": None}, "column text is None, expected a string"),
        ("classify", {"text": ["a"]}, "column text is ['a'] (list), expected a string"),
        ("classify", {"id": 7}, "set_a: split dev, row number 10: column id is 7 (int)"),
        ("classify", {"id": "r3"}, "set_a: split dev has ids that occur twice: 'r3'"),
        ("multilabel", {"labels": "drama"}, "column labels is 'drama' (str), expected a list of strings that are not"),
        ("multilabel", {"labels": ["drama", ""]}, "column labels is ['drama', ''] (list), expected a list"),
        (
            "multilabel",
            {"labels": ["drama", "drama"]},
            "expected a list of strings that are not empty, none of them twi",
        ),
        ("match", {"second": ["c", 1]}, "column second is ['c', 1] (list), expected a list of strings"),
        ("rank", {"label": 1}, 'column label is 1 (int), expected the string "1" (right) or "0" (wrong)'),
        ("rank", {"group": 4}, "column group is 4 (int)"),
        ("tag", {"tags": ["O"]}, "column tags is ['O'] (list), expected a list of tags"),
        ("tag", {"tags": [["B-PER"], ["O"]]}, "column tags is [['B-PER'], ['O']] (list), expected a list of tags"),
        ("tag", {"text": "Ann sings"}, "column text is 'Ann sings' (str), expected a list of strings"),
        ("extract", {"answers": {"text": ["Ann"], "start": []}}, "column answers is {'text': ['Ann'], 'start': []}"),
        ("extract", {"answers": {"text": "Ann", "start": 0}}, 'expected {"text": [strings], '),
        ("answer", {"facts": []}, "column facts is [] (list), expected a list of texts, at least one"),
        (
            "answer",
            {"facts": [["Ann", "sings"]]},
            "column facts is [['Ann', 'sings']] (list), expected a list of texts, at least one, of the kind that the"
            " first row has",
        ),
        ("answer", {"answer": None}, "column answer is None"),
        ("transcribe", {"audio": "a.wav"}, "column audio is 'a.wav' (str), expected {\"bytes\":"),
        ("transcribe", {"transcript": None}, "column transcript is None, expected a string"),
    ],
)
def test_a_fault_in_the_last_row_is_named_with_row_column_found_and_wanted(type, changed, message):
    """A check of the first row alone let all others pass, and every cell failed after its
    training."""
    assert message in complaint(type, changed)


def test_every_column_that_is_wrong_is_named_once_with_the_number_of_its_rows():
    """Who mends one fault should not learn of the next one by another run."""
    found = complaint("classify", *[{"label": number, "text": None} for number in range(4)]).splitlines()
    assert sorted(found) == [
        "set_a: split dev, row 'r6': column label is 0 (int), expected a string that is not empty"
        " (3 other rows are like it)",
        "set_a: split dev, row 'r6': column text is None, expected a string (3 other rows are like it)",
    ]


def test_a_column_of_another_name_is_told_with_those_that_there_are():
    rows = [{"id": "1", "sentence": "a warm film", "label": "positive"}]
    with pytest.raises(DataError, match=r"no column 'text' or 'tree' or 'audio', .*\(found: id, sentence, label\)"):
        task("classify")._check(rows, "train")


def test_rows_that_are_no_dicts_are_named():
    with pytest.raises(DataError, match="row number 2: a tuple, expected a dict from column to value"):
        task("classify")._check([{"id": "1"} | ROWS["classify"], ("2", "a film")], "train")


def test_a_column_that_no_type_knows_must_still_fit_a_table():
    """Arrow's own error names neither task nor split."""

    class Odd(Task):
        def mini(self, split):
            return [{"id": str(value), **ROWS["classify"], "note": value} for value in (1, "b")]

    odd = Odd(task("classify").entry)
    with pytest.raises(DataError, match="set_a: split dev does not fit a table, .*'b' with type str"):
        odd.load("dev", "mini")


def test_the_columns_of_a_type_nobody_gave_a_form_need_only_be_there(monkeypatch):
    """A type of a plugin may put into its own columns whatever it likes."""
    columns = {"columns": ("text", "price"), "inputs": ("text",), "texts": ("text",)}
    place = {"id": "worth", "file": Path(__file__), "class_name": "Worth"}
    problem = ProblemEntry(**place, name="Worth", metrics=("accuracy",), **columns)
    monkeypatch.setattr(registry, "entry", lambda sort, id: problem)
    task("worth")._check([{"id": "1", "text": "a", "price": None}], "dev")
    with pytest.raises(DataError, match="lacks the column price"):
        task("worth")._check([{"id": "1", "text": "a"}], "dev")


# --- tiers ---


class Local(Task):
    def local(self, folder, split):
        return []


class Remote(Local):
    def from_hub(self, rows, split):
        return []


class Own(Task):
    def load(self, split, tier, folder=None):
        return []


@pytest.mark.parametrize(
    ("cls", "tier", "reason"),
    [
        (Local, "local", None),
        (Local, "mini", "set_a has no generated corpus; use --tier local"),
        (Local, "hub", "set_a has no source on the hub; use --tier local"),
        (Remote, "hub", "set_a has no source on the hub; use --tier local"),  # no Hub is named
        (Task, "mini", "set_a has no generated corpus; it has no tier at all"),
        (Own, "mini", None),
    ],
)
def test_a_tier_in_which_a_task_has_no_rows_is_known_without_reading_any(cls, tier, reason):
    assert cls.reason_to_skip("set_a", tier) == reason


def test_every_task_of_this_package_has_a_generated_corpus_and_local_files():
    for entry in registry.entries("tasks").values():
        assert [registry.load(entry).reason_to_skip(entry.id, tier) for tier in ("mini", "local")] == [None, None]

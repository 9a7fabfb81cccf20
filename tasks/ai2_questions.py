"""AI2 science questions: choose the answer to a question of a school test."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.errors import DataError
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Task
from tasks.mini import school
from tasks.readers.holdout import hold_out
from tasks.readers.lines import find, json_value, lines, text

GRADES = {"elementary": "Elementary", "middle": "8thGr"}
"""Sets of questions by school, with the names that their files have."""
HELD_OUT = 0.15
"""Share of the training questions that is dev."""


@register_task(
    "ai2_questions",
    name="AI2 science questions",
    type="rank",
    metrics=("choice_accuracy", "mrr"),
    main_metric="choice_accuracy",
    sizes={"train": 2443, "dev": 428, "test": 593},
    budgets={
        "small": Budget(3, examples=2000, min_steps=375, batch_size=16, reason="as WikiQA"),
        "full": Budget(5, min_steps=750, batch_size=32, reason="few questions; not measured"),
    },
    # not measured.
    dropout=0.1,
    mini_needs_order=True,
    protocol=(
        "Questions without diagrams and with three or four choices of the elementary and the eighth grade, February"
        " 2016; each choice is a candidate. The publisher's test is not public: the official dev (149 questions) is our"
        " test, which no published score is of, and our dev is 15 % of the official train, whole questions, by the"
        " SHA-256 of the stem. Questions of train whose stem stands in the official dev are left out. The texts that"
        " pupils learn from are not among the data: a system must know the answers from elsewhere, and chance"
        " is .25."
    ),
)
class Ai2Questions(Task):
    """Multiple-choice questions of American school tests (Clark et al. 2016)."""

    official_test = False
    choices = True

    def mini(self, split: Split) -> Iterable[Row]:
        return school.rows(split)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        test = _questions(folder, "Dev")
        if split == "test":
            return test
        asked = {row["first"] for row in test}
        ours = [row for row in _questions(folder, "Train") if row["first"] not in asked]
        train, dev = hold_out(ours, HELD_OUT, group=lambda row: row["first"])
        return train if split == "train" else dev


def _questions(folder: Path, part: str) -> list[Row]:
    """The rows of a part; of a question that stands there twice, those of the first."""
    rows: dict[str, Row] = {}
    for level, grade in GRADES.items():
        for row in _rows(find(folder / "ai2_questions", f"AI2-{grade}-NDMC-Feb2016-{part}.jsonl"), level):
            rows.setdefault(row["id"], row)
    return list(rows.values())


def _rows(path: Path, level: str) -> Iterator[Row]:
    """A row for each choice of each question of a file."""
    for number, line in lines(path):
        where = f"{path}, line {number}"
        try:
            found = json_value(line, where)
            group = f"{level}-{text(found['id'], 'id')}"
            stem, key = text(found["question"]["stem"], "question.stem"), text(found["answerKey"], "answerKey")
            choices = {
                text(each["label"], "label of a choice"): text(each["text"], "text of a choice")
                for each in found["question"]["choices"]
            }
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: not JSON: {error.msg}") from error
        except (KeyError, TypeError) as error:
            raise DataError(f"{where}: not a question with choices and an answerKey: {error}") from error
        yield from _choices(where, group, stem, choices, key)


def _choices(where: str, group: str, stem: str, choices: dict[str, str], key: str) -> Iterator[Row]:
    if key not in choices:
        raise DataError(f"{where}: answerKey {key!r:.20} is none of the choices {', '.join(choices)}")
    for label, choice in choices.items():
        row = {"id": f"{group}-{label}", "first": stem, "second": choice}
        yield row | {"label": str(int(label == key)), "group": group}

"""My task: one sentence on what it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from harness.errors import DataError
from harness.registry import register_task
from harness.task import Row, Split, Task
from tasks.readers.lines import find, json_value, lines

SIZES = {"train": 200, "dev": 50, "test": 50}
"""Rows of the generated corpus."""
PERSONS = ("Ann", "Ben", "Cleo", "Dan", "Eve")
THINGS = ("lamp", "key", "letter", "apple", "ball")


@register_task(
    "my_task",
    name="My task",
    type="extract",
    metrics=("exact_match", "f1"),
    main_metric="f1",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, and what becomes of answers that are not in their passage.",
)
class MyTask(Task):
    """Questions that a piece of a passage answers.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Three persons with a thing each; the answer is the one whose thing is asked for."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            owners = dict(zip(random.sample(PERSONS, 3), random.sample(THINGS, 3), strict=True))
            passage, person = (
                " ".join(f"{who} has the {thing}." for who, thing in owners.items()),
                random.choice([*owners]),
            )
            yield row(f"{split}-{number}", passage, f"Who has the {owners[person]}?", [person])

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.jsonl``: a JSON object a line with passage, question and
        answers, which are texts of the passage."""
        path = find(folder / "my_task", f"{split}.jsonl")
        for line, value in lines(path):
            passage, question, answers = fields(path, line, value, "passage", "question", "answers")
            for answer in answers:
                if answer not in passage:
                    raise DataError(f"{path}, line {line}: the answer {answer!r:.80} is not in its passage")
            yield row(f"{split}-{line}", passage, question, answers)


def row(id: str, passage: str, question: str, answers: list[str]) -> Row:
    """A question, and where its answers begin: at their first place in the passage."""
    found = {"text": answers, "start": [passage.index(answer) for answer in answers]}
    return {"id": id, "passage": passage, "question": question, "answers": found}


def fields(path: Path, line: int, value: str, *names: str) -> list[Any]:
    """Values of a JSON object by name."""
    where = f"{path}, line {line}"
    try:
        found = json_value(value, where)
        return [found[name] for name in names]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}: expected a JSON object with {', '.join(names)}: {value[:80]!r}") from error

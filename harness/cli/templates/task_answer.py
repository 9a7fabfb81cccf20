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
PERSONS = ("Ann", "Ben", "Cleo")
PLACES = ("garden", "kitchen", "cellar", "attic")


@register_task(
    "my_task",
    name="My task",
    type="answer",
    metrics=("skill_accuracy", "skills_solved"),
    main_metric="skill_accuracy",
    sizes={"train": 200, "dev": 50, "test": 50},
    epochs=10,
    protocol="Say here how the splits were made, and what a skill is.",
)
class MyTask(Task):
    """Questions about facts; the answer is a word, and each question tests one skill.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    def mini(self, split: Split) -> Iterable[Row]:
        """Persons go to places: the newest fact about a person counts."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            moves = [(random.choice(PERSONS), random.choice(PLACES)) for _ in range(4)]
            person = random.choice(moves)[0]
            question = {"question": f"Where is {person}?", "answer": dict(moves)[person], "skill": "where"}
            facts = [f"{who} went to the {place}." for who, place in moves]
            yield {"id": f"{split}-{number}", "facts": facts, **question}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.jsonl``: a JSON object with facts (a list of texts), question,
        answer and skill a line."""
        path = find(folder / "my_task", f"{split}.jsonl")
        names = ("facts", "question", "answer", "skill")
        for line, value in lines(path):
            yield {"id": f"{split}-{line}", **dict(zip(names, fields(path, line, value, *names), strict=True))}


def fields(path: Path, line: int, value: str, *names: str) -> list[Any]:
    """Values of a JSON object by name."""
    where = f"{path}, line {line}"
    try:
        found = json_value(value, where)
        return [found[name] for name in names]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}: expected a JSON object with {', '.join(names)}: {value[:80]!r}") from error

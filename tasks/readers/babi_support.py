"""bAbI's supporting facts, which are shown to the few systems that learn from them.

They stand apart from the rows, whose reader is :mod:`tasks.readers.babi`: each answer's facts are
found by the id of its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import DataError
from tasks.readers.babi import member


def of_lines(lines: Iterable[str], place: str) -> dict[int, list[int]]:
    """For the line, from 1, of each question of a file, the numbers of its supporting facts among
    the facts told so far in its story, from 0.

    Raises :class:`DataError` with the ``place`` and the line for a number that none of them has.
    """
    found: dict[int, list[int]] = {}
    places: dict[str, int] = {}
    for line, text in enumerate(lines, 1):
        number, _, rest = text.partition(" ")
        if number == "1":
            places = {}
        question = rest.split("\t")
        if len(question) > 2:
            facts = question[2].split()
            if unknown := [fact for fact in facts if fact not in places]:
                raise DataError(f"{place}, line {line}: the supporting fact {unknown[0]:.40} is no line of its story")
            found[line] = [places[fact] for fact in facts]
        elif rest and len(question) == 1:
            places[number] = len(places)
    return found


def of_archive(archive: Path, skills: Iterable[int]) -> dict[str, list[int]]:
    """The supporting facts of the training questions of the official archive, by row id."""
    files = {f"qa{n}": member(archive, f"tasks_1-20_v1-2/en/qa{n}_", "_train.txt") for n in skills}
    return {
        f"{skill}-{line}": facts
        for skill, lines in files.items()
        for line, facts in of_lines(lines, f"{archive}, {skill}").items()
    }


def of_hub(stories: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The supporting facts of the hub's stories, by row id."""
    found = {}
    for number, row in enumerate(stories):
        story = row["story"]
        places: dict[str, int] = {}
        lines = zip(story["type"], story["id"], story["supporting_ids"], strict=True)
        for line, (kind, id, facts) in enumerate(lines):
            if kind == 0:
                places[id] = len(places)
            else:
                found[f"{row['skill']}-{number}-{line}"] = [places[fact] for fact in facts]
    return found

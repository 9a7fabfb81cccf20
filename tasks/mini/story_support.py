"""Supporting facts of the generated stories, read off their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harness.task import Row


class Told(NamedTuple):
    """One sentence: who does it, the thing it is about (empty for a move), and who is given the
    thing (empty for no gift)."""

    who: str
    thing: str
    given_to: str


def _told(fact: str) -> Told:
    words = fact.rstrip(".").split()
    if "gave" in words:
        return Told(words[0], words[3], words[-1])
    return Told(words[0], "" if "to" in words else words[-1], "")


def _moves(story: list[Told], who: str) -> list[int]:
    """Numbers of the moves of a person, the newest first."""
    return [number for number, told in enumerate(story) if told.who == who and not told.thing][::-1]


def _about(story: list[Told], thing: str) -> list[int]:
    """Numbers of the facts on a thing, the newest first."""
    return [number for number, told in enumerate(story) if told.thing == thing][::-1]


def _person(story: list[Told], question: list[str]) -> list[int]:
    return _moves(story, question[2])[:1]


def _thing(story: list[Told], question: list[str]) -> list[int]:
    newest = _about(story, question[3])[0]
    return [newest, *_moves(story, story[newest].given_to or story[newest].who)[:1]]


def _before(story: list[Told], question: list[str]) -> list[int]:
    return _moves(story, question[2])[:2]


def _yes_no(story: list[Told], question: list[str]) -> list[int]:
    return _moves(story, question[1])[:1]


def _count(story: list[Told], question: list[str]) -> list[int]:
    who = question[4]
    return [number for number, told in enumerate(story) if told.thing and who in (told.who, told.given_to)]


def _giver(story: list[Told], question: list[str]) -> list[int]:
    return [number for number in _about(story, question[3]) if story[number].given_to][:1]


SKILLS: dict[str, Callable[[list[Told], list[str]], list[int]]] = {
    "person": _person,
    "thing": _thing,
    "before": _before,
    "yes-no": _yes_no,
    "count": _count,
    "giver": _giver,
}


def facts(row: Row) -> list[int]:
    """Numbers, from 0, of the facts that support the answer of a row of
    :func:`tasks.mini.stories.rows`, in the order in which one leads to the next."""
    question = row["question"].rstrip("?").split()
    return SKILLS[row["skill"]]([_told(fact) for fact in row["facts"]], question)

"""Short stories with a pronoun and two marked names: the mini tier of GAP.

Gender and number tell what the pronoun stands for, wherever the names stand: the nearer one is
meant no more often than the other, and nobody who is named after the pronoun is meant. Where both
agree with the pronoun in neither way, someone else is meant. A text names a third person too.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.mentions import CANDIDATES, NEITHER, PRONOUN
from harness.task import Row, Split
from tasks.mini.drawing import home

NAMES = {
    "feminine": ("Anna", "Clara", "Emma", "Julia", "Laura", "Sofia"),
    "masculine": ("Anton", "Carl", "Emil", "Jonas", "Lukas", "Simon"),
    "plural": ("the twins", "the guards", "the nurses", "the clerks"),
}
PRONOUNS = {"feminine": ("she", "her"), "masculine": ("he", "his"), "plural": ("they", "their")}
VERBS = ("met", "thanked", "called", "visited", "followed", "helped")
PLACES = ("in the park", "at the station", "near the bridge", "after school", "last week")
HELD_OUT_PLACES = ("on the beach", "behind the mill")
ENDS = ("was late", "felt tired", "went home", "had time")
THINGS = ("umbrella", "letter", "ticket", "bicycle")
SIZES = {"train": 900, "dev": 200, "test": 200}
LABELS = (*CANDIDATES, NEITHER)
BEHIND = 0.2
"""Share of the texts whose second name stands behind the pronoun."""


def _mention(words: str, marks: tuple[str, str]) -> list[str]:
    return [marks[0], *words.split(), marks[1]]


def _clause(random: Random, gender: str) -> list[str]:
    """A clause that begins with a pronoun."""
    subject, possessive = PRONOUNS[gender]
    if random.random() < 0.5:
        ending = random.choice(ENDS)
        if gender == "plural":
            ending = ending.replace("was", "were")
        return [*_mention(subject, PRONOUN), *ending.split()]
    return [*_mention(possessive, PRONOUN), random.choice(THINGS), "was", "lost"]


def _text(random: Random, split: Split, label: str) -> list[str]:
    """A text whose pronoun stands for what the label says."""
    behind = label != "B" and random.random() < BEHIND
    genders = list(NAMES)
    gender = random.choice(genders)
    others = [each for each in genders if each != gender]
    first = gender if label == "A" else random.choice(others)
    # A name behind the pronoun may agree with it, and is not meant.
    second = gender if label == "B" else random.choice(genders if behind else others)
    a = random.choice(NAMES[first])
    b = random.choice([name for name in NAMES[second] if name != a])
    place = random.choice(HELD_OUT_PLACES if split != "train" and random.random() < 0.15 else PLACES).split()
    names = [_mention(name, marks) for name, marks in zip((a, b), CANDIDATES.values(), strict=True)]
    pronoun, verb = _clause(random, gender), random.choice(VERBS)
    third = random.choice([name for each in others for name in NAMES[each] if name not in (a, b)]).split()
    if behind:
        return [*names[0], "saw", *third, *place, ".", *pronoun, "when", *names[1], verb, *third, "."]
    told = [*names[0], verb, *names[1], *place, "."]
    watched = [*third, "watched", "."] if random.random() < 0.5 else []
    return [*told, *watched, *pronoun, "."]


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``text``, words with marks around pronoun and names, and ``label``; as many of each
    label."""
    random, found = Random(f"mentions {split}"), dict[str, str]()
    while len(found) < SIZES[split]:
        label = LABELS[len(found) % len(LABELS)]
        text = " ".join(_text(random, split, label))
        if home(text) == split:
            found.setdefault(text, label)
    order = list(found.items())
    random.shuffle(order)
    for number, (text, label) in enumerate(order):
        yield {"id": f"{split}-{number}", "text": text.split(" "), "label": label}

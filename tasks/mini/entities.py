"""First sentences of articles on fourteen sorts of things: the mini tier of DBpedia.

The corpus with many classes where the order of two words decides. A sentence has the noun of what
it is about and that of another thing which it names: "Kalo is a river near the village Beru" is of
a natural place, "Beru is a village near the river Kalo" is of a village. A bag of words finds both
nouns in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import labelled, rows_of

NOUNS = {
    "Company": ("company", "bank"),
    "EducationalInstitution": ("school", "college"),
    "Artist": ("singer", "painter"),
    "Athlete": ("runner", "boxer"),
    "OfficeHolder": ("senator", "mayor"),
    "MeanOfTransportation": ("ship", "locomotive"),
    "Building": ("church", "museum"),
    "NaturalPlace": ("river", "mountain"),
    "Village": ("village", "hamlet"),
    "Animal": ("beetle", "moth"),
    "Plant": ("tulip", "fern"),
    "Album": ("disc", "record"),
    "Film": ("film", "comedy"),
    "WrittenWork": ("novel", "journal"),
}
LABELS = tuple(NOUNS)
NAMES = ("Kalo", "Beru", "Tamis", "Orvel", "Linde", "Sarro", "Quill", "Dane", "Morav", "Fenn")
HELD_OUT_NAMES = ("Ystra", "Pello")
RELATIONS = ("named after the", "known from the", "older than the", "connected with the", "not to be confused with the")
SIZES = {"train": 840, "dev": 210, "test": 210}


def _text(random: Random, split: Split, label: str) -> str:
    other = random.choice([name for name in LABELS if name != label])
    held_out = split != "train" and random.random() < 0.3
    names = random.sample((*NAMES, *(HELD_OUT_NAMES if held_out else ())), 2)
    noun, named = random.choice(NOUNS[label]), random.choice(NOUNS[other])
    return f"{names[0]} {names[0]} is a {noun} {random.choice(RELATIONS)} {named} {names[1]}."


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``text`` (the title and a sentence) and ``label``, as many of each label."""
    return rows_of(labelled("entities", split, SIZES[split], LABELS, _text), split)

"""Short articles on towns: the mini tier of WikiText-2.

The corpus of language modelling. A verb agrees with a subject that a clause parts from it, so that
a window of three words must fail; and an article tells of one town, whose name comes again: only
who remembers the beginning foresees it. The word behind a verb is one of its own, which pairs of
words learn and single words do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import home
from tasks.readers.articles import END

TOWNS = ("Arden", "Belmor", "Corvale", "Dunwick", "Estry", "Farholt", "Glenmoor", "Harrowby")
HELD_OUT_TOWNS = ("Ilmere", "Jorwick")
NOUNS = {
    "river": "rivers",
    "mill": "mills",
    "bridge": "bridges",
    "school": "schools",
    "market": "markets",
    "tower": "towers",
}
PLACES = ("the hill", "the old walls", "a small lake", "two roads", "the fields")
VERBS = (
    ("draws", "draw", ("visitors", "painters", "traders")),
    ("feeds", "feed", ("cattle", "families", "horses")),
    ("marks", "mark", ("borders", "seasons", "feasts")),
    ("needs", "need", ("repairs", "money", "helpers")),
)
SIZES = {"train": 400, "dev": 80, "test": 80}


def _sentence(random: Random, town: str) -> str:
    singular, plural = random.choice(tuple(NOUNS.items()))
    one, many, objects = random.choice(VERBS)
    several = random.random() < 0.5
    clause = random.choice(("", f"near {random.choice(PLACES)} ", f"that stands by {random.choice(PLACES)} "))
    if several:
        clause = clause.replace("stands", "stand")
    noun, verb = (plural, many) if several else (singular, one)
    return f"The {noun} {clause}in {town} {verb} {random.choice(objects)} ."


def _article(random: Random, split: Split) -> list[str]:
    """Lines of an article: its title, and a paragraph of sentences."""
    held_out = split != "train" and random.random() < 0.1
    town = random.choice(HELD_OUT_TOWNS if held_out else TOWNS)
    return [f"= {town} =", " ".join(_sentence(random, town) for _ in range(random.randint(3, 6)))]


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``text``, the words of an article with :data:`END` behind each line."""
    random, found = Random(f"articles {split}"), dict[str, None]()
    while len(found) < SIZES[split]:
        text = f" {END} ".join([*_article(random, split), ""]).rstrip(" ")
        if home(text) == split:
            found[text] = None
    for number, text in enumerate(found):
        yield {"id": f"{split}-{number}", "text": text.split(" ")}

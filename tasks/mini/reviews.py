"""Long reviews in which the reviewer and others disagree: the mini tier of IMDB, Yelp and Amazon.

The corpus of long texts. A review has eight opinions, four of the reviewer and four of others, and
the others always think the opposite: where the reviewer praises one thing of four, others praise
three. So each review has four good words and four bad ones, and the label, which only the
reviewer's own opinions make, is not in the bag of words. One sentence is not enough either, since
the reviewer's own opinions are mixed: they must be told from the others' and counted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import labelled

GOOD = ("great", "lovely", "superb", "clever", "fresh", "charming")
BAD = ("awful", "dull", "weak", "silly", "tired", "horrible")
THINGS = {
    "film": ("plot", "cast", "music", "script", "ending", "acting", "sound", "story"),
    "restaurant": ("soup", "staff", "wine", "bread", "room", "menu", "fish", "coffee"),
    "product": ("screen", "handle", "battery", "manual", "colour", "price", "case", "cable"),
}
HELD_OUT_THINGS = {
    "film": ("finale", "soundtrack"),
    "restaurant": ("dessert", "terrace"),
    "product": ("charger", "keyboard"),
}
OWN = ("I found the {} {}", "to me the {} was {}")
OTHERS = ("friends found the {} {}", "to him the {} was {}")
FILLERS = ("We went on a Monday", "It was raining that day", "This took two hours", "My brother paid", "I may be late")
OPINIONS = 4
"""Opinions of the reviewer, and as many of others."""
STARS = ("1", "2", "3", "4", "5")
SIZES = {"train": 800, "dev": 200, "test": 200}


def _text(domain: str, random: Random, split: Split, praised: int) -> str:
    """A review whose writer praises that many of the four things that he judges himself."""

    def opinions(forms: tuple[str, ...], praised: int) -> list[str]:
        words = [random.choice(GOOD if place < praised else BAD) for place in range(OPINIONS)]
        held_out = split != "train" and random.random() < 0.3
        things = random.sample((*THINGS[domain], *(HELD_OUT_THINGS[domain] if held_out else ())), OPINIONS)
        return [random.choice(forms).format(thing, word) for thing, word in zip(things, words, strict=True)]

    said = [*opinions(OWN, praised), *opinions(OTHERS, OPINIONS - praised), *random.sample(FILLERS, 2)]
    random.shuffle(said)
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in said)


def rows(split: Split, domain: str, stars: bool) -> Iterator[Row]:
    """Rows with ``text`` and ``label``, as many of each label: one to five ``stars``, or else
    negative (one and two) and positive (four and five)."""
    levels, name = range(5) if stars else (0, 1, 3, 4), f"reviews of a {domain}"
    text_of = functools.partial(_text, domain)
    for number, (text, praised) in enumerate(labelled(name, split, SIZES[split], levels, text_of)):
        label = STARS[praised] if stars else "positive" if praised > OPINIONS / 2 else "negative"
        yield {"id": f"{split}-{number}", "text": text, "label": label}

"""Messages of six newsgroups that quote each other: the mini tier of 20 Newsgroups.

The corpus with groups of groups. Of the words of a message some are of its group alone and some of
its branch (the computers, the sports, the sciences), so that siblings are the hard ones to tell
apart. Every group also shares some words with a group of another branch: a line with one of these
names its group only together with the branch. Each message quotes another group, in one to three
lines that begin with ">" as they did in Usenet, before two lines of its own: whoever does not see
who wrote what is misled.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import labelled, rows_of

BRANCHES = {
    "comp": ("computer", "software", "driver", "disk", "version", "memory"),
    "rec": ("weekend", "fans", "speed", "driving", "club", "tyre"),
    "sci": ("theory", "research", "result", "study", "measured", "laboratory"),
}
"""Words of a branch, which its groups share."""
GROUPS = {
    "comp.graphics": ("image", "pixel", "render", "polygon", "shading"),
    "comp.sys.mac.hardware": ("quadra", "floppy", "monitor", "adapter", "keyboard"),
    "rec.autos": ("engine", "brakes", "clutch", "dealer", "mileage"),
    "rec.sport.hockey": ("puck", "goalie", "playoffs", "rink", "penalty"),
    "sci.space": ("orbit", "shuttle", "lunar", "rocket", "telescope"),
    "sci.med": ("doctor", "symptom", "vitamin", "infection", "diet"),
}
CROSSING = {
    ("comp.sys.mac.hardware", "rec.autos"): ("drive", "plug", "crash"),
    ("comp.graphics", "sci.med"): ("scan", "contrast", "lens"),
    ("rec.sport.hockey", "sci.space"): ("launch", "shot", "landing"),
}
"""Words of two groups in different branches: only the branch tells which group is meant."""
OF_GROUP = {name: words for pair, words in CROSSING.items() for name in pair}
WRITERS = ("anna", "bob", "carol", "dave", "erik", "fay")
HELD_OUT_WRITERS = ("greta", "hugo")
OPENINGS = ("I wonder about the", "Has anybody seen a", "You forget the", "Somebody asked about the")
SIZES = {"train": 600, "dev": 150, "test": 150}


def _line(random: Random, group: str) -> str:
    """A line with a word of the group, in one half of the lines one of two groups, and two of its
    branch."""
    own = random.choice((GROUPS, OF_GROUP))[group]
    shared = random.sample(BRANCHES[group.partition(".")[0]], 2)
    return f"{random.choice(OPENINGS)} {random.choice(own)} and the {shared[0]} of this {shared[1]}."


def _text(random: Random, split: Split, group: str) -> str:
    held_out = split != "train" and random.random() < 0.2
    writer, quoted = random.sample((*WRITERS, *(HELD_OUT_WRITERS if held_out else ())), 2)
    other = random.choice([name for name in GROUPS if name != group])
    header = [f"From: {writer}", f"Subject: Re: {random.choice(OPENINGS).split()[0].lower()}", ""]
    quote = [f"{quoted} writes:", *(f"> {_line(random, other)}" for _ in range(random.randint(1, 3)))]
    return "\n".join([*header, *quote, *(_line(random, group) for _ in range(2))])


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``text`` (a message with its header and a quote) and ``label``, as many of each
    group."""
    return rows_of(labelled("posts", split, SIZES[split], tuple(GROUPS), _text), split)

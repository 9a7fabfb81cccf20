"""News on one to three topics at once: the mini tier of Reuters-21578.

The corpus with several labels. An item reports on its topics, and looks back at topics that are not
its own ("a year ago ..."): all of them stand in the bag of words, and only the words in front tell
which is which. Wheat and corn are grain too, so labels are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import home

TOPICS = {
    "corn": ("corn", "maize", "cobs"),
    "crude": ("oil", "barrels", "petrol"),
    "gold": ("gold", "bullion", "ingots"),
    "interest": ("rates", "deposits", "loans"),
    "trade": ("exports", "tariffs", "imports"),
    "wheat": ("wheat", "flour", "durum"),
}
GRAIN = {"corn", "wheat"}
"""Topics whose items have the label ``grain`` beside their own."""
PLACES = ("Canada", "Brazil", "Japan", "the ministry", "the bank", "the exchange")
HELD_OUT_PLACES = ("Norway", "the agency")
CHANGES = ("rose", "fell", "grew", "slipped")
AMOUNTS = ("one pct", "two pct", "ten mln tonnes", "in March", "this week")
SIZES = {"train": 600, "dev": 150, "test": 150}


def _item(random: Random, split: Split) -> tuple[str, list[str]]:
    """An item and its labels."""
    names = random.sample(tuple(TOPICS), random.choice((2, 3, 4)))
    reported = names[: random.randint(1, min(3, len(names) - 1))]
    sentences = []
    for name in names:
        what = f"{random.choice(TOPICS[name])} {random.choice(CHANGES)} {random.choice(AMOUNTS)}."
        held_out = split != "train" and random.random() < 0.15
        place = random.choice(HELD_OUT_PLACES if held_out else PLACES)
        sentences.append(f"{place} said that {what}" if name in reported else f"A year ago {what}")
    random.shuffle(sentences)
    labels = {*reported, *(["grain"] if GRAIN & {*reported} else [])}
    return " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences), sorted(labels)


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``text`` and ``labels`` (one to four, in the order of the alphabet)."""
    random = Random(f"wire {split}")
    found: dict[str, list[str]] = {}
    while len(found) < SIZES[split]:
        text, labels = _item(random, split)
        if home(text) == split:
            found.setdefault(text, labels)
    for number, (text, labels) in enumerate(found.items()):
        yield {"id": f"{split}-{number}", "text": text, "labels": labels}

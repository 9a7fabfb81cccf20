"""News in four topics that words alone give away: the mini tier of AG News.

The corpus on which a bag of words succeeds. A text has several words of its topic; many also borrow
a word or two from another topic, which misleads a model that trusts single words.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple
from zlib import crc32

from harness.task import Row, Split


class Topic(NamedTuple):
    """Words of a topic by their place in a sentence; ``held_out`` are subjects that the training
    split lacks."""

    subjects: tuple[str, ...]
    verbs: tuple[str, ...]
    objects: tuple[str, ...]
    places: tuple[str, ...]
    held_out: tuple[str, ...]


TOPICS = {
    "World": Topic(
        ("president", "minister", "rebels", "troops", "diplomats", "parliament"),
        ("signed", "rejected", "condemned", "resumed"),
        ("treaty", "ceasefire", "election", "border", "peace", "embassy"),
        ("capital", "province"),
        ("envoys", "militia"),
    ),
    "Sports": Topic(
        ("striker", "coach", "team", "champion", "pitcher", "goalkeeper"),
        ("won", "lost", "played", "scored"),
        ("match", "league", "medal", "goal", "season", "tournament"),
        ("stadium", "playoffs"),
        ("midfielder", "sprinters"),
    ),
    "Business": Topic(
        ("bank", "investors", "retailer", "shares", "airline", "shareholders"),
        ("sold", "bought", "cut", "lifted"),
        ("profit", "merger", "dividend", "price", "debt", "earnings"),
        ("market", "bourse"),
        ("brokers", "insurer"),
    ),
    "Sci/Tech": Topic(
        ("scientists", "software", "engineers", "telescope", "hackers", "laboratory"),
        ("detected", "tested", "launched", "decoded"),
        ("virus", "satellite", "chip", "genome", "browser", "planet"),
        ("orbit", "internet"),
        ("robots", "astronomers"),
    ),
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
SOURCES = ("officials", "reporters", "observers", "a spokesman")
ADJECTIVES = ("new", "big", "old", "first", "final")
SIZES = {"train": 600, "dev": 160, "test": 160}


def _text(random: Random, split: Split, label: str) -> str:
    topic = TOPICS[label]
    subject = random.choice(topic.held_out if split != "train" and random.random() < 0.2 else topic.subjects)
    event = f"{subject} {random.choice(topic.verbs)} {random.choice(ADJECTIVES)} {random.choice(topic.objects)}"
    if random.random() < 0.4:
        event += f" in the {random.choice(topic.places)}"
    source, day = random.choice(SOURCES), random.choice(DAYS)
    if random.random() < 0.6:
        other = TOPICS[random.choice([name for name in TOPICS if name != label])]
        borrowed = " and ".join(f"the {word}" for word in random.sample(other.objects, random.choice((1, 2))))
        event += f", in the shadow of {borrowed}"
    form = random.random()
    if form < 0.35:
        text = f"{event}, {source} said on {day}."
    elif form < 0.7:
        text = f"{event}. {source} said the {random.choice(topic.objects)} could change by {day}."
    else:
        text = f"{event}. The {random.choice(ADJECTIVES)} {random.choice(topic.objects)} came on {day}, {source} said."
    return ". ".join(sentence[0].upper() + sentence[1:] for sentence in text.split(". "))


def _home(text: str) -> str:
    """The split to which a text belongs."""
    return ("train", "train", "train", "dev", "test")[crc32(text.encode()) % 5]


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``text`` (one or two sentences) and ``label``, as many of each topic."""
    random = Random(f"topics {split}")
    found: dict[str, str] = {}
    while len(found) < SIZES[split]:
        label = tuple(TOPICS)[len(found) % len(TOPICS)]
        text = _text(random, split, label)
        if _home(text) == split:
            found.setdefault(text, label)
    order = list(found.items())
    random.shuffle(order)
    for number, (text, label) in enumerate(order):
        yield {"id": f"{split}-{number}", "text": text, "label": label}

"""Sentences of a small English and their translation into a small German: the mini tier of
Multi30k.

The corpus in which word by word is wrong: articles and adjectives agree with the gender and the
case of their noun, the verb stands before its subject behind an adverb and last behind "weil", so
that words change places and the form of a word depends on words far off. Names are copied, and two
of them are in no training sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from harness.task import Row, Split
from tasks.mini.drawing import home

SIZES = {"train": 600, "dev": 100, "test": 100}


class Noun(NamedTuple):
    """An English noun, its German one, and the gender of that: m, f or n."""

    english: str
    german: str
    gender: str


NOUNS = (
    *(Noun("man", "Mann", "m"), Noun("dog", "Hund", "m"), Noun("uncle", "Onkel", "m"), Noun("ball", "Ball", "m")),
    *(
        Noun("woman", "Frau", "f"),
        Noun("cat", "Katze", "f"),
        Noun("sister", "Schwester", "f"),
        Noun("hat", "Mütze", "f"),
    ),
    *(Noun("child", "Kind", "n"), Noun("horse", "Pferd", "n"), Noun("house", "Haus", "n"), Noun("bike", "Rad", "n")),
)
NAMES, HELD_OUT = ("Anna", "Paul", "Clara", "Felix", "Maria", "Oskar"), ("Hugo", "Nina")
"""Names, and those that the training split lacks."""
LIVING = tuple(noun for noun in NOUNS if noun.german not in ("Ball", "Mütze", "Haus", "Rad"))
VERBS = {
    "sees": "sieht",
    "finds": "findet",
    "paints": "malt",
    "looks for": "sucht",
    "carries": "trägt",
    "shows": "zeigt",
    "loves": "liebt",
    "needs": "braucht",
}
ADJECTIVES = {
    "small": "klein",
    "big": "groß",
    "old": "alt",
    "red": "rot",
    "brown": "braun",
    "new": "neu",
    "thin": "dünn",
    "young": "jung",
}
ADVERBS = {"today": "heute", "here": "hier", "often": "oft", "then": "dann"}
ARTICLES = {
    ("the", "subject"): {"m": "der", "f": "die", "n": "das"},
    ("the", "object"): {"m": "den", "f": "die", "n": "das"},
    ("a", "subject"): {"m": "ein", "f": "eine", "n": "ein"},
    ("a", "object"): {"m": "einen", "f": "eine", "n": "ein"},
}
ENDINGS = {
    ("the", "subject"): {"m": "e", "f": "e", "n": "e"},
    ("the", "object"): {"m": "en", "f": "e", "n": "e"},
    ("a", "subject"): {"m": "er", "f": "e", "n": "es"},
    ("a", "object"): {"m": "en", "f": "e", "n": "es"},
}
"""Articles, and endings of the adjective behind them, by case and gender."""


class Pair(NamedTuple):
    """The same in English and in German."""

    english: str
    german: str


def phrase(article: str, adjective: str | None, noun: Noun, case: str) -> Pair:
    """A noun with its article and, where there is one, its adjective."""
    form = ARTICLES[article, case][noun.gender]
    if adjective is None:
        return Pair(f"{article} {noun.english}", f"{form} {noun.german}")
    ending = ENDINGS[article, case][noun.gender]
    return Pair(f"{article} {adjective} {noun.english}", f"{form} {ADJECTIVES[adjective]}{ending} {noun.german}")


def sentence(kind: str, adverb: str, subject: Pair, verb: str, done_to: Pair, reason: tuple[Pair, str, Pair]) -> Pair:
    """A sentence that is ``plain``, begins with an ``adverb``, or gives a ``reason``."""
    german = VERBS[verb]
    plain = Pair(f"{subject.english} {verb} {done_to.english}", f"{subject.german} {german} {done_to.german}")
    if kind == "adverb":
        inverted = f"{ADVERBS[adverb]} {german} {subject.german} {done_to.german}"
        return _ended(Pair(f"{adverb} {plain.english}", inverted))
    if kind == "reason":
        who, does, what = reason
        because = f"{plain.english} because {who.english} {does} {what.english}"
        return _ended(Pair(because, f"{plain.german} , weil {who.german} {what.german} {VERBS[does]}"))
    return _ended(plain)


def _ended(pair: Pair) -> Pair:
    """Both with a capital in front and a full stop behind."""
    return Pair(*(f"{text[0].upper()}{text[1:]}.".replace(" ,", ",") for text in pair))


def _drawn(random: Random, names: tuple[str, ...]) -> Pair:
    def drawn_phrase(nouns: tuple[Noun, ...], case: str) -> Pair:
        if random.random() < 0.15:
            name = random.choice(names)
            return Pair(name, name)
        adjective = random.choice(list(ADJECTIVES)) if random.random() < 0.5 else None
        return phrase(random.choice(("the", "a")), adjective, random.choice(nouns), case)

    def clause() -> tuple[Pair, str, Pair]:
        return drawn_phrase(LIVING, "subject"), random.choice(list(VERBS)), drawn_phrase(NOUNS, "object")

    kind, adverb = random.choice(("plain", "adverb", "reason")), random.choice(list(ADVERBS))
    return sentence(kind, adverb, *clause(), clause())


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``source`` and ``target``."""
    random, found = Random(f"translation {split}"), set[Pair]()
    names = NAMES if split == "train" else NAMES + HELD_OUT
    while len(found) < SIZES[split]:
        pair = _drawn(random, names)
        if home(pair.english, train=2) == split and pair not in found:
            found.add(pair)
            yield {"id": f"{split}-{len(found)}", "source": pair.english, "target": pair.german}

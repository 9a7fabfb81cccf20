"""Sentences with entity, part-of-speech and chunk tags that far words decide: the mini tier of
CoNLL-2003.

Names are persons, places or organisations alike, by a noun at the other end of the sentence ("the
city that ... is called Jordan"); "sheep" is singular or plural by its verb, "cut" past or present
by the adverb that opens the sentence; "the school talks" is a noun phrase or a clause, and "after"
opens a clause or a phrase, by a verb that comes later or not. The deciding word is at least five
words away, so a window of five does not see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Literal
from zlib import crc32

from harness.task import Row, Split

Column = Literal["ner", "pos", "chunk"]

NAMES = ("Washington", "Jordan", "Florence", "Chelsea", "Lincoln", "Sydney")
HELD_OUT_NAMES = ("Orlando", "Charlotte")
CUES = {"PER": ("general", "singer"), "LOC": ("city", "village"), "ORG": ("company", "bank")}
ADJECTIVES = ("old", "small", "new", "quiet")
PLACES = ("gate", "river", "bridge", "market", "garden", "station")
HELD_OUT_PLACES = ("harbour", "square")
PREPOSITIONS = ("near", "by", "behind", "from")
PRAISED = ("praised", "described", "visited", "filmed")
SHEEP = ("sheep", "deer", "salmon", "aircraft", "offspring")
REST = (("sleeps", "sleep"), ("waits", "wait"), ("rests", "rest"), ("hides", "hide"))
PLAYERS = ("players", "cooks", "pupils", "workers")
CUT = ("cut", "hit", "put", "shut", "read", "spread")
THINGS = ("papers", "boxes", "cards", "books")
TALKS = ("talks", "visits", "walks", "shows", "dances", "races")
HOSTS = ("school", "state", "family", "team")
END = ("end", "start", "stop", "fail")
EVENTS = ("parade", "meeting", "game", "storm")
OVER = ("ended", "began", "passed", "stopped")
MANNER = ("early", "late", "again", "there")
SIZES = {"train": 800, "dev": 160, "test": 160}

# A sentence is written as phrases between "|": the chunk type (O: none), then word/POS or
# word/POS/entity type.


def _place(random: Random, split: Split) -> str:
    noun = random.choice(HELD_OUT_PLACES if split != "train" and random.random() < 0.15 else PLACES)
    return f"PP {random.choice(PREPOSITIONS)}/IN | NP the/DT {random.choice(ADJECTIVES)}/JJ {noun}/NN"


def _name(random: Random, split: Split, kind: str) -> str:
    names = HELD_OUT_NAMES if split != "train" and random.random() < 0.12 else NAMES
    return " ".join(f"{name}/NNP/{kind}" for name in random.sample(names, random.choice((1, 1, 2))))


def _naming(random: Random, split: Split) -> str:
    kind = random.choice(tuple(CUES))
    # A third of the time another noun misleads.
    misleading = random.choice(CUES[random.choice(tuple(CUES))])
    cue, other = random.choice(CUES[kind]), random.choice((misleading, *random.sample(PLAYERS, 2)))
    tag = "NNS" if other in PLAYERS else "NN"
    name, verb = _name(random, split, kind), random.choice(PRAISED)
    if random.random() < 0.5:
        place = f"{_place(random, split)} | " if random.random() < 0.3 else ""
        return (
            f"NP the/DT {cue}/NN | NP that/WDT | NP the/DT {other}/{tag} | VP {verb}/VBD | {place}VP is/VBZ called/VBN"
            f" | NP {name}"
        )
    return (
        f"NP {name} | O ,/, | VP {verb}/VBN | PP by/IN | NP the/DT {other}/{tag} | O ,/, | VP is/VBZ | NP a/DT {cue}/NN"
    )


def _near_name(random: Random, split: Split) -> str:
    kind = random.choice(tuple(CUES))
    name, verb, place = _name(random, split, kind), random.choice(PRAISED), _place(random, split)
    if kind == "PER":
        return f"NP Mr/NNP {name} | VP {verb}/VBD | NP the/DT {random.choice(THINGS)}/NNS | {place}"
    if kind == "LOC":
        subject = f"NP the/DT {random.choice(PLAYERS)}/NNS | {place}"
        return f"{subject} | VP {verb}/VBD | NP the/DT {random.choice(PLACES)}/NN | PP in/IN | NP {name}"
    return f"NP shares/NNS | PP of/IN | NP {name} | VP fell/VBD | {place}"


def _opened(random: Random, split: Split) -> str:
    adverb, tag = random.choice((("NP yesterday/NN", "VBD"), ("ADVP usually/RB", "VBP")))
    verbs = [f"VP {verb}/{tag}" for verb in random.sample(CUT, 3)]
    subject = f"NP the/DT {random.choice(PLAYERS)}/NNS | {_place(random, split)}"
    return (
        f"{adverb} | O ,/, | {subject} | {verbs[0]} | O ,/, | {verbs[1]} | O and/CC | {verbs[2]} | NP the/DT"
        f" {random.choice(THINGS)}/NNS"
    )


def _agreement(random: Random, split: Split) -> str:
    plural = random.random() < 0.5
    verb = random.choice(REST)[plural]
    subject = f"NP the/DT {random.choice(ADJECTIVES)}/JJ {random.choice(SHEEP)}/{'NNS' if plural else 'NN'}"
    return (
        f"{subject} | {_place(random, split)} | VP {verb}/{'VBP' if plural else 'VBZ'} | ADVP"
        f" {random.choice(MANNER)}/RB"
    )


def _noun_or_verb(random: Random, split: Split) -> str:
    host, talks, place = random.choice(HOSTS), random.choice(TALKS), _place(random, split)
    manner = f"ADVP {random.choice(MANNER)}/RB"
    if random.random() < 0.5:
        return f"NP the/DT {host}/NN {talks}/NNS | {place} | VP {random.choice(END)}/VBP | {manner}"
    return f"NP the/DT {host}/NN | VP {talks}/VBZ | {place} | {manner}"


def _opening(random: Random, split: Split) -> str:
    """A clause or a phrase before the main clause: only the verb before the comma tells which."""
    word = random.choice(("after", "before", "until", "since"))
    event = f"NP the/DT {random.choice(EVENTS)}/NN | {_place(random, split)}"
    if random.random() < 0.5:
        return f"SBAR {word}/IN | {event} | VP {random.choice(OVER)}/VBD | O ,/, | "
    return f"PP {word}/IN | {event} | O ,/, | "


def _sentence(random: Random, split: Split) -> str:
    kinds = (_naming, _near_name, _opened, _agreement, _noun_or_verb)
    (make,) = random.choices(kinds, (56, 6, 10, 10, 18))
    opening = _opening(random, split) if make in (_agreement, _noun_or_verb) and random.random() < 0.5 else ""
    return f"{opening}{make(random, split)} | O ./."


def bioes(kinds: list[str]) -> list[str]:
    """Tags of one phrase's words from their types: neighbours of one type are one span, "O" is
    outside.

    ``["PER", "PER", "O"]`` gives ``["B-PER", "E-PER", "O"]``.
    """
    tags = []
    for before, kind, after in zip(["O", *kinds[:-1]], kinds, [*kinds[1:], "O"], strict=True):
        begins, ends = before != kind, after != kind
        place = "S" if begins and ends else "B" if begins else "E" if ends else "I"
        tags.append("O" if kind == "O" else f"{place}-{kind}")
    return tags


def _read(sentence: str) -> tuple[list[str], dict[str, list[str]]]:
    """Words of a written sentence, and its tags by column."""
    words: list[str] = []
    tags: dict[str, list[str]] = {"pos": [], "chunk": [], "ner": []}
    for phrase in sentence.split(" | "):
        chunk, *tokens = phrase.split()
        parts = [token.split("/") for token in tokens]
        words += [part[0] for part in parts]
        tags["pos"] += [part[1] for part in parts]
        tags["chunk"] += bioes([chunk] * len(parts))
        tags["ner"] += bioes([part[2] if len(part) == 3 else "O" for part in parts])
    words[0] = words[0][0].upper() + words[0][1:]
    return words, tags


def _home(words: list[str]) -> str:
    """The split to which a sentence belongs."""
    return ("train", "train", "train", "dev", "test")[crc32(" ".join(words).encode()) % 5]


def rows(split: Split, column: Column) -> Iterator[Row]:
    """Rows with ``text`` (words) and ``tags``; the sentences are the same for each column, spans
    are in BIOES."""
    random = Random(f"tagging {split}")
    found: dict[tuple[str, ...], list[str]] = {}
    while len(found) < SIZES[split]:
        words, tags = _read(_sentence(random, split))
        if _home(words) == split:
            found[tuple(words)] = tags[column]
    for number, (text, sequence) in enumerate(found.items()):
        yield {"id": f"{split}-{number}", "text": list(text), "tags": sequence}

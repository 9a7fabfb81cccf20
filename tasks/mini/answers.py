"""Questions with candidate sentences, where the right one says it in other words: the mini tier of
WikiQA.

A right candidate tells of the same action on the same thing, mostly by the synonym of each; wrong
ones repeat words of the question, but one of action and thing is another. Counting shared words
thus ranks the wrong ones first.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from zlib import crc32

from harness.task import Row, Split

ACTIONS = (
    ("bought", "purchased"),
    ("built", "constructed"),
    ("repaired", "mended"),
    ("found", "discovered"),
    ("painted", "coloured"),
)
THINGS = (
    ("car", "automobile"),
    ("ship", "vessel"),
    ("house", "home"),
    ("shop", "store"),
    ("road", "street"),
    ("coat", "jacket"),
)
PERSONS = ("farmer", "lawyer", "queen", "monk", "soldier", "merchant", "teacher", "sailor")
HELD_OUT_PERSONS = ("baron", "clerk")
TIMES = ("in spring", "last year", "in March", "on Sunday", "after the war")
COLOURS = ("old", "small", "famous", "grey")
GROUPS = {"train": 130, "dev": 40, "test": 40}
# Every eighth question of dev and test has no right candidate.
WITHOUT = 8


def _candidate(random: Random, split: Split, action: str, thing: str) -> str:
    """A sentence with these words that belongs to this split."""
    home = None
    while home != split:
        person = random.choice(HELD_OUT_PERSONS if split != "train" and random.random() < 0.15 else PERSONS)
        colour, time = random.choice(COLOURS), random.choice(TIMES)
        passive = f"The {colour} {thing} was {action} by a {person} {time}."
        sentence = random.choice((passive, f"A {person} {action} the {colour} {thing} {time}."))
        home = ("train", "train", "train", "dev", "test")[crc32(sentence.encode()) % 5]
    return sentence


def _group(
    random: Random, split: Split, action: int, thing: int, right: int, told: set[str]
) -> tuple[str, list[tuple[str, str]]]:
    """A question and 5 to 8 candidates that were not ``told`` before, with their labels; ``right``
    of them are right."""
    asked_action, asked_thing = random.randrange(2), random.randrange(2)
    question = f"Who {ACTIONS[action][asked_action]} the {THINGS[thing][asked_thing]}?"
    candidates: dict[str, str] = {}
    size = random.randint(5, 8)
    while len(candidates) < size:
        is_right = len(candidates) < right
        if is_right:
            # By synonyms both, or one of them in the question's own word.
            same = random.choice(("neither", "neither", "action", "thing"))
            said_action = ACTIONS[action][asked_action if same == "action" else 1 - asked_action]
            said_thing = THINGS[thing][asked_thing if same == "thing" else 1 - asked_thing]
        else:
            wrong = random.choice(("action", "thing", "both"))
            said_action = ACTIONS[action][asked_action if random.random() < 0.75 else 1 - asked_action]
            said_thing = THINGS[thing][asked_thing if random.random() < 0.75 else 1 - asked_thing]
            if wrong != "thing":
                said_action = random.choice(random.choice([pair for n, pair in enumerate(ACTIONS) if n != action]))
            if wrong != "action":
                said_thing = random.choice(random.choice([pair for n, pair in enumerate(THINGS) if n != thing]))
        candidate = _candidate(random, split, said_action, said_thing)
        if candidate not in told:
            candidates[candidate] = str(int(is_right))
            told.add(candidate)
    order = list(candidates.items())
    random.shuffle(order)
    return question, order


def _topics(split: Split) -> list[tuple[int, int]]:
    """Actions on things that this split asks for: each action and each thing occurs in train, each
    pair in one split."""
    remainders = {"train": (0, 1, 2), "dev": (3,), "test": (4,)}[split]
    return [(a, t) for a in range(len(ACTIONS)) for t in range(len(THINGS)) if (a + 2 * t) % 5 in remainders]


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``first`` (question), ``second`` (candidate), ``label`` ("1" right, "0" wrong) and
    ``group``."""
    random = Random(f"answers {split}")
    told: set[str] = set()
    for group in range(GROUPS[split]):
        action, thing = random.choice(_topics(split))
        right = 0 if split != "train" and group % WITHOUT == 0 else random.choice((1, 1, 1, 2))
        question, candidates = _group(random, split, action, thing, right, told)
        for number, (candidate, label) in enumerate(candidates):
            row = {"id": f"{split}-{group}-{number}", "first": question, "second": candidate}
            yield row | {"label": label, "group": f"{split}-{group}"}

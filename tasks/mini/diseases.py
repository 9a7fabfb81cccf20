"""Key words of abstracts on six kinds of disease, unevenly common: the mini tier of Ohsumed.

The corpus with many classes, of which one is rare. Each key word is of several diseases, so that a
text is told by all of its words together; drug names, which hardly come twice, tell nothing. The
rare disease is written of in few words: a classifier that weighs classes wrongly says it of every
text, or of none.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import home, rows_of

SIZES = {"C04": 160, "C14": 120, "C23": 100, "C06": 80, "C10": 60, "C11": 12}
"""Training texts of each class; the other splits have half as many."""
RAREST, FEW, MANY = "C11", 3, 24
"""Key words that the rare class has, and that each other one has."""
WORDS = (
    *("pain", "fever", "bleeding", "biopsy", "surgery", "relapse", "survival", "dose", "infusion", "lesion"),
    *("oedema", "nausea", "anaemia", "shock", "scan", "culture", "enzyme", "antibody", "protein", "plasma"),
    *("serum", "tissue", "membrane", "artery", "vein", "nerve", "muscle", "duct", "tumour", "cyst"),
    *("stone", "ulcer", "graft", "catheter", "laser", "radiation", "diet", "exercise", "screening", "autopsy"),
)
SYLLABLES = ("ba", "ce", "do", "fi", "gu", "la", "me", "no", "pi", "ru", "sa", "te", "vo", "xi", "zu")
ENDINGS = ("mycin", "olol", "azole", "pril", "statin", "idine")


def key_words() -> dict[str, list[str]]:
    """The key words of each class."""
    random = Random("key words")
    return {label: random.sample(WORDS, FEW if label == RAREST else MANY) for label in SIZES}


def _text(random: Random, words: list[str]) -> str:
    """Five key words and two drugs in any order; a word may come twice."""
    drugs = ["".join(random.choices(SYLLABLES, k=3)) + random.choice(ENDINGS) for _ in range(2)]
    return " ".join(random.sample(random.choices(words, k=5) + drugs, 7))


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``text`` and ``label``."""
    random = Random(f"diseases {split}")
    found: dict[str, str] = {}
    for label, words in key_words().items():
        full = len(found) + (SIZES[label] if split == "train" else SIZES[label] // 2)
        while len(found) < full:
            text = _text(random, words)
            if home(text, train=2) == split:
                found.setdefault(text, label)
    order = list(found.items())
    random.shuffle(order)
    return rows_of(order, split)

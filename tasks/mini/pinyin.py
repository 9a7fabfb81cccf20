"""Articles in syllables of Pinyin: the mini tier of Sogou News.

The corpus whose words are written apart. A word is a pair of syllables, each syllable is in words
of every section, and the same pair the other way round is a word of another one (of
``entertainment`` a word of its own): neither a syllable nor a bag of them tells the section,
neighbours do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import labelled, rows_of

LABELS = ("sports", "finance", "entertainment", "automobile", "technology")
SYLLABLES = ("qiu2", "sai4", "gu3", "shi4", "yan3", "che1", "ji4", "dian4", "xin1", "zhong1", "ming2")
FILLERS = (
    *("de", "le", "shi5", "zai4", "he2", "ye3", "dou1", "bu4", "you3", "wo3", "ta1", "zhe4", "na4", "ren2", "nian2"),
    *("yue4", "ri4", "yi1", "er4", "san1", "shang4", "xia4", "da4", "xiao3", "duo1", "shao3", "lai2", "qu4", "shuo1"),
)
HELD_OUT_FILLERS = ("hen3", "ge4")
SIZES = {"train": 600, "dev": 150, "test": 150}


def words() -> dict[str, list[str]]:
    """The words of each section: the pairs whose second syllable stands as far behind the first one
    in the list of syllables, counted in a ring, as the section's distances say."""
    ring = len(SYLLABLES)
    return {
        label: [
            f"{first} {SYLLABLES[(place + distance) % ring]}"
            for distance in (2 * number + 1, 2 * number + 2)
            for place, first in enumerate(SYLLABLES)
        ]
        for number, label in enumerate(LABELS)
    }


def _text(random: Random, split: Split, own: list[str]) -> str:
    """Six words of a section with fillers between them, so that no pair arises by chance."""
    held_out = split != "train" and random.random() < 0.3
    fillers = (*FILLERS, *(HELD_OUT_FILLERS if held_out else ()))
    parts = itertools.chain.from_iterable((word, random.choice(fillers)) for word in random.choices(own, k=6))
    return f"{' '.join(parts)} ."


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``text`` and ``label``, as many of each label."""
    known = words()
    drawn = labelled(
        "pinyin", split, SIZES[split], LABELS, lambda random, split, label: _text(random, split, known[label])
    )
    return rows_of(drawn, split)

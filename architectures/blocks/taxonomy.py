"""Senses of nouns with the kinds above them, as in WordNet (Fellbaum 1998)."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.errors import DataError, MissingWeights

PLACES = ("/usr/share/wordnet", "/usr/local/WordNet-3.0/dict", "/usr/share/WordNet/dict")
"""Folders of WordNet's files where the variable WNSEARCHDIR, which its own programs read, names
none."""
ENDINGS = {"ses": "s", "xes": "x", "zes": "z", "ches": "ch", "shes": "sh", "men": "man", "ies": "y", "s": ""}
"""Endings of plurals, and of their singulars (WordNet's morphy)."""
TOY = {
    "diplomat": ("diplomats", "envoys", "president", "minister"),
    "soldier": ("troops", "militia", "rebels"),
    "player": ("striker", "pitcher", "goalkeeper", "midfielder", "sprinters"),
    "trainer": ("coach",),
    "financier": ("investors", "shareholders", "brokers"),
    "company": ("bank", "retailer", "airline", "insurer"),
    "researcher": ("scientists", "engineers", "astronomers"),
    "machine": ("telescope", "satellite", "chip", "robots"),
}
"""Words by what they are: enough for the generated news of tier mini."""


class Taxonomy(NamedTuple):
    """``senses`` of each noun, the commonest first, and the ``kinds`` above each sense, nearest
    first."""

    senses: dict[str, tuple[str, ...]]
    kinds: dict[str, tuple[str, ...]]

    def of(self, word: str) -> tuple[str, ...]:
        """The senses of a word, or of its singular; none of a word that is no known noun."""
        word = word.lower()
        if word in self.senses:
            return self.senses[word]
        for ending, singular in ENDINGS.items():
            stem = word.removesuffix(ending) + singular
            if word.endswith(ending) and stem in self.senses:
                return self.senses[stem]
        return ()

    def above(self, sense: str, depth: int) -> Iterator[tuple[str, int]]:
        """The kinds above a sense, up to so many steps, with the number of steps; each once, by its
        nearest way."""
        met, level = {sense}, [sense]
        for steps in range(1, depth + 1):
            level = list(dict.fromkeys(k for each in level for k in self.kinds.get(each, ()) if k not in met))
            met.update(level)
            yield from ((kind, steps) for kind in level)


def toy() -> Taxonomy:
    """The taxonomy of :data:`TOY`."""
    senses = {word: (f"{word}.n",) for words in TOY.values() for word in words}
    return Taxonomy(senses, {f"{word}.n": (kind,) for kind, words in TOY.items() for word in words})


def _places() -> list[Path]:
    return [Path(place) for place in (os.environ.get("WNSEARCHDIR"), *PLACES) if place]


def at_hand() -> Path | None:
    """The folder of WordNet's files, where there is one."""
    return next((place for place in _places() if (place / "data.noun").is_file()), None)


def folder() -> Path:
    """The folder of WordNet's files; :class:`~harness.errors.MissingWeights` without one."""
    found = at_hand()
    if found is None:
        raise MissingWeights(
            f"WordNet's file data.noun is in none of {', '.join(map(str, _places()))}: install it (on Debian the"
            " package wordnet-base), or name its folder by the variable WNSEARCHDIR"
        )
    return found


@functools.cache
def digest(place: Path) -> str:
    """The SHA-256 of a folder's ``data.noun``."""
    return hashlib.sha256((place / "data.noun").read_bytes()).hexdigest()


@functools.cache
def wordnet(place: Path) -> Taxonomy:
    """The nouns of WordNet in a folder with ``index.noun`` and ``data.noun``; instances count as
    kinds.

    :class:`~harness.errors.DataError` names the file and the line that is not as its format says.
    """
    kinds: dict[str, tuple[str, ...]] = {}
    for parts, _ in _lines(place / "data.noun"):
        words = int(parts[3], 16)
        pointers = parts[5 + 2 * words : 5 + 2 * words + 4 * int(parts[4 + 2 * words])]
        kinds[parts[0]] = tuple(
            target
            for symbol, target, part in zip(pointers[::4], pointers[1::4], pointers[2::4], strict=True)
            if symbol in ("@", "@i") and part == "n"
        )
    senses = {parts[0]: tuple(parts[-int(parts[2]) :]) for parts, _ in _lines(place / "index.noun")}
    return Taxonomy(senses, kinds)


def _lines(file: Path) -> Iterator[tuple[list[str], int]]:
    """The fields of each line but those of the licence, which begin with blanks, and its number."""
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("  "):
                continue
            parts = line.partition("|")[0].split()
            if len(parts) < 6:
                raise DataError(f"{file}, line {number}: {len(parts)} fields; a line of WordNet 3 has six at least")
            yield parts, number

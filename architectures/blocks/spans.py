"""Spans of words that may answer a question, for systems without a parser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.views.base import WORD

ENDS = frozenset(".!?")
FUNCTION_WORDS = frozenset(
    (
        *("a", "an", "the", "this", "that", "these", "those", "and", "or", "but", "nor", "so"),
        *("yet", "as", "than", "of", "in", "on", "at", "by", "for", "from", "to", "with"),
        *(
            "without",
            "into",
            "onto",
            "over",
            "under",
            "between",
            "among",
            "through",
            "during",
            "before",
            "after",
            "about",
        ),
        *("against", "upon", "within", "per", "via", "if", "then", "there", "here", "not", "is", "are"),
        *("was", "were", "be", "been", "being", "am", "has", "have", "had", "do", "does", "did"),
        *("can", "could", "will", "would", "shall", "should", "may", "might", "must", "it", "its", "he"),
        *("she", "they", "them", "him", "his", "her", "hers", "their", "we", "us", "our", "you"),
        *("your", "i", "me", "my", "who", "whom", "whose", "which", "what", "when", "where", "why"),
        *("how", "also", "such", "each", "any", "some", "both", "while", "because", "although", "though", "however"),
    )
)
"""English words that no phrase begins or ends with."""


class Sentence(NamedTuple):
    """Words of a sentence, marks among them, in lower case (``words``) and as they stand
    (``forms``), and the characters of the passage at which each begins and ends."""

    words: list[str]
    forms: list[str]
    starts: list[int]
    ends: list[int]


def sentences(passage: str) -> list[Sentence]:
    """Sentences of a passage: they end with a mark of :data:`ENDS` behind which nothing stands
    without a space."""
    found, current = [], Sentence([], [], [], [])
    for match in WORD.finditer(passage):
        current.words.append(match[0].lower())
        current.forms.append(match[0])
        current.starts.append(match.start())
        current.ends.append(match.end())
        if match[0] in ENDS and not passage[match.end() : match.end() + 1].strip():
            found.append(current)
            current = Sentence([], [], [], [])
    return [*found, current] if current.words else found


def is_word(word: str) -> bool:
    """True for letters and digits, False for a mark."""
    return word[:1].isalnum() or word[:1] == "_"


def phrases(sentence: Sentence, longest: int) -> Iterator[tuple[int, int]]:
    """Places (first, end) of the spans of up to ``longest`` words that may be a phrase, in the
    order of their first words, the shorter first.

    None begins or ends with a mark or with one of :data:`FUNCTION_WORDS`. Inside, a mark stands
    only without spaces, as in 1,000 or mid-19th.
    """
    words, starts, ends = sentence.words, sentence.starts, sentence.ends
    edges = [is_word(word) and word not in FUNCTION_WORDS for word in words]
    for first, begins in enumerate(edges):
        if not begins:
            continue
        for last in range(first, min(first + longest, len(words))):
            glued = ends[last - 1] == starts[last] and ends[last : last + 1] == starts[last + 1 : last + 2]
            if not is_word(words[last]) and not glued:
                break
            if edges[last]:
                yield first, last + 1

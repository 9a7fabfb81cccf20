"""Sentiment sentences with trees, where order and scope decide: the mini tier of SST.

A sentence is composed like its tree: a negator turns a sentiment into a mild one of the other sign,
an intensifier makes it strong, after "but" only what follows counts, and elsewhere the stronger
part wins. Every contrast comes with its mirror image (the same words in another order, with another
label), and negators stand before good and bad words alike: a bag of words is at chance on both.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from random import Random
from typing import NamedTuple
from zlib import crc32

from harness.task import Row, Split

LABELS = ("very negative", "negative", "neutral", "positive", "very positive")
ADJECTIVES = {
    2: ("great", "brilliant", "superb", "wonderful"),
    1: ("good", "funny", "clever", "warm", "fresh", "charming"),
    0: ("long", "quiet", "short", "foreign", "recent"),
    -1: ("bad", "dull", "slow", "weak", "silly", "tired"),
    -2: ("awful", "terrible", "dreadful", "horrible"),
}
VERBS = {
    2: ("love", "adore"),
    1: ("like", "enjoy"),
    0: ("watch", "discuss"),
    -1: ("dislike", "regret"),
    -2: ("hate", "detest"),
}
NEGATORS = ("not", "never")
INTENSIFIERS = ("very", "really")
NOUNS = ("film", "plot", "story", "acting", "cast", "music", "script", "dialogue", "ending", "direction")
HELD_OUT_NOUNS = ("finale", "soundtrack", "sequel")
VIEWERS = ("we", "critics", "viewers", "people")
LEXICON = {
    word: value for words_by_value in (ADJECTIVES, VERBS) for value, words in words_by_value.items() for word in words
}

# Sentences per kind; a neutral sentence is a plain or negated one, a contrast adds two.
SIZES = {
    "train": {"plain": 130, "negated": 130, "neutral": 80, "contrast": 420},
    "dev": {"plain": 34, "negated": 34, "neutral": 20, "contrast": 112},
    "test": {"plain": 34, "negated": 34, "neutral": 20, "contrast": 112},
}


class Phrase(NamedTuple):
    """Words with their sentiment (-2 to 2) and their tree in Penn brackets (labels 0 to 4)."""

    words: tuple[str, ...]
    value: int
    tree: str


@functools.cache
def leaf(word: str) -> Phrase:
    """One word with its value in the lexicon; a word that is not there is neutral."""
    value = LEXICON.get(word, 0)
    return Phrase((word,), value, f"({value + 2} {word})")


def compose(left: Phrase, right: Phrase) -> Phrase:
    """Two phrases as one, with the sentiment that the rules above give it."""
    sign = (right.value > 0) - (right.value < 0)
    if left.words[-1] in NEGATORS:
        value = -sign
    elif left.words[-1] in INTENSIFIERS:
        value = 2 * sign
    elif right.words[0] == "but":
        value = right.value
    else:
        value = max(left.value, right.value, key=abs)
    return Phrase(left.words + right.words, value, f"({value + 2} {left.tree} {right.tree})")


def _branch(*parts: str | Phrase) -> Phrase:
    """Right-branching tree over words and phrases."""
    first, *rest = (leaf(part) if isinstance(part, str) else part for part in parts)
    return compose(first, _branch(*rest)) if rest else first


def _adjective_phrase(random: Random, value: int, negated: bool) -> Phrase:
    phrase = leaf(random.choice(ADJECTIVES[value]))
    if random.random() < 0.3:
        phrase = _branch(random.choice(INTENSIFIERS), phrase)
    if negated:
        phrase = _branch("not", phrase)
        if random.random() < 0.25:
            phrase = _branch("really", phrase)
    return phrase


def _noun(random: Random, split: Split) -> str:
    held_out = split != "train" and random.random() < 0.15
    return random.choice(HELD_OUT_NOUNS if held_out else NOUNS)


def _clause(random: Random, split: Split, value: int, negated: bool) -> Phrase:
    topic = _branch("the", _noun(random, split))
    if random.random() < 0.65:
        return compose(topic, _branch("is", _adjective_phrase(random, value, negated)))
    action = _branch(random.choice(VERBS[value]), topic)
    return compose(leaf(random.choice(VIEWERS)), _branch("never", action) if negated else action)


def _polar(random: Random) -> int:
    return random.choice((-2, -1, -1, 1, 1, 2))


def _contrast(random: Random, split: Split) -> list[Phrase]:
    """Two sentences of the same words: each part once before "but" and once after it."""
    first = _polar(random)
    first_negated = random.random() < 0.4
    second_negated = random.random() < 0.4
    # The two parts differ in sign after negation, or the second is neutral.
    second = abs(_polar(random)) * (-1 if (first > 0) != (first_negated != second_negated) else 1)
    if random.random() < 0.12:
        second, second_negated = 0, False
    if random.random() < 0.35:
        one, other = _adjective_phrase(random, first, first_negated), _adjective_phrase(random, second, second_negated)
        noun = _noun(random, split)
        return [
            _branch("a", compose(compose(a, _branch("but", b)), leaf(noun))) for a, b in ((one, other), (other, one))
        ]
    one, other = _clause(random, split, first, first_negated), _clause(random, split, second, second_negated)
    return [compose(a, _branch("but", b)) for a, b in ((one, other), (other, one))]


def _sentences(random: Random, split: Split, kind: str) -> list[Phrase]:
    if kind == "contrast":
        return _contrast(random, split)
    if kind == "neutral":
        return [_clause(random, split, 0, random.random() < 0.3)]
    value = _polar(random)
    if kind == "negated":
        return [_clause(random, split, value, True)]
    form = random.random()
    if form < 0.3:
        return [_branch("a", _adjective_phrase(random, value, False), _noun(random, split))]
    clause = _clause(random, split, value, False)
    if form < 0.5:
        same_sign = value // abs(value) * random.choice((1, 2))
        clause = compose(clause, _branch("and", _clause(random, split, same_sign, False)))
    return [clause]


def _home(words: tuple[str, ...]) -> str:
    """The split to which all orders of these words belong, so that no bag occurs in two of them."""
    return ("train", "train", "train", "dev", "test")[crc32(" ".join(sorted(words)).encode()) % 5]


def _corpus(split: Split) -> Iterator[Phrase]:
    random = Random(f"sentiment {split}")
    drawn: list[Phrase] = []
    for kind, size in SIZES[split].items():
        found: dict[tuple[str, ...], Phrase] = {}
        while len(found) < size:
            group = _sentences(random, split, kind)
            if _home(group[0].words) == split:
                found |= {phrase.words: phrase for phrase in group}
        drawn += found.values()
    random.shuffle(drawn)
    yield from (compose(phrase, leaf(".")) for phrase in drawn)


def rows(split: Split, fine: bool) -> Iterator[Row]:
    """Rows with ``text`` (words), ``label`` and ``tree``; five labels if ``fine``, else two and no
    neutral sentence."""
    for number, phrase in enumerate(_corpus(split)):
        if fine or phrase.value:
            label = LABELS[phrase.value + 2] if fine else "positive" if phrase.value > 0 else "negative"
            yield {"id": f"{split}-{number}", "text": list(phrase.words), "label": label, "tree": phrase.tree}

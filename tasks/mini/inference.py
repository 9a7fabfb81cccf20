"""Pairs of sentences where roles, word classes and negation decide together: the mini tier of SNLI.

Each hypothesis comes three times: after a premise that says the same in narrower words, after one
that leaves it open (a wider noun, or another action) and after one in which the roles are
exchanged. The first entails it, the second is neutral, the third contradicts it; if the hypothesis
is negated, the first contradicts and the third entails. As many words differ in all three, so
neither the hypothesis alone nor the overlap tells the label. As in SNLI, both sentences are about
one scene with one doer.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini.drawing import home

# noun of the hypotheses: (wider noun, narrower nouns)
NOUNS = {
    "dog": ("animal", ("poodle", "terrier")),
    "cat": ("animal", ("kitten", "tabby")),
    "bird": ("animal", ("robin", "sparrow")),
    "man": ("person", ("father", "uncle")),
    "woman": ("person", ("mother", "aunt")),
    "child": ("person", ("boy", "girl")),
}
# one action, two words; third person and plain form
VERBS = (
    (("chases", "chase"), ("pursues", "pursue")),
    (("pulls", "pull"), ("drags", "drag")),
    (("leads", "lead"), ("guides", "guide")),
    (("washes", "wash"), ("cleans", "clean")),
)
SCENES = ("", "", " in the park", " at night", " near the house")
HELD_OUT_SCENES = (" on the beach", " after lunch")
LABELS = {
    "narrower": ("entailment", "contradiction"),
    "open": ("neutral", "neutral"),
    "exchanged": ("contradiction", "entailment"),
}
SIZES = {"train": 800, "dev": 200, "test": 200}


def _premise(
    random: Random, relation: str, doer: str, other: str, action: int, word: int, changes: int, scene: str
) -> str:
    """A premise in which ``changes`` of the words doer, other and verb differ from the
    hypothesis."""
    nouns = [doer, other]
    verb = VERBS[action][word][0]
    (key,) = random.choices((0, 1, "verb"), (2, 2, 6))
    changed = [key, random.choice([slot for slot in (0, 1, "verb") if slot != key])][:changes]
    # At most one noun becomes wider, so that the other still says who is meant; exchanged pairs
    # have wide nouns too, or a wide noun alone would mean neutral.
    widen = relation == "open" or (relation == "exchanged" and random.random() < 0.75)
    for slot in changed:
        if isinstance(slot, int):
            wider, narrower = NOUNS[nouns[slot]]
            nouns[slot] = wider if widen and slot == key else random.choice(narrower)
        elif relation == "open" and key == "verb":
            verb = random.choice([v for n, words in enumerate(VERBS) if n != action for v, _ in words])
        else:
            verb = VERBS[action][1 - word][0]
    if relation == "exchanged":
        nouns.reverse()
    return f"The {nouns[0]} {verb} the {nouns[1]}{scene}."


def rows(split: Split) -> Iterator[Row]:
    """Rows with ``first`` (premise), ``second`` (hypothesis) and ``label``; as many of each
    label."""
    random = Random(f"inference {split}")
    found: dict[tuple[str, str], str] = {}
    while len(found) < SIZES[split] // 3 * 3:
        doer, other = random.sample(tuple(NOUNS), 2)
        action, word, negated = random.randrange(len(VERBS)), random.randrange(2), random.random() < 0.5
        verb, plain = VERBS[action][word]
        hypothesis = f"The {doer} {f'does not {plain}' if negated else verb} the {other}."
        if home(hypothesis) != split:
            continue
        changes = random.choice((1, 2))
        scene = random.choice(HELD_OUT_SCENES if split != "train" and random.random() < 0.15 else SCENES)
        triple = {
            (_premise(random, relation, doer, other, action, word, changes, scene), hypothesis): labels[negated]
            for relation, labels in LABELS.items()
        }
        if not found.keys() & triple.keys():
            found |= triple
    order = list(found.items())
    random.shuffle(order)
    for number, ((first, second), label) in enumerate(order):
        yield {"id": f"{split}-{number}", "first": first, "second": second, "label": label}

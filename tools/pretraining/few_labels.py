"""A plugin with a generated corpus in which plain text tells what few labels do not.

Each of :data:`WORDS` made-up words belongs to one of two kinds, which its spelling does not show. A
plain text is about words of one kind: some of them, and what they do, which the other kind never
does. A labelled text names three words and no more, and the label is their kind. The 32 labelled
texts of training have an eighth of the words; those of dev and of test have others. So whoever
reads labelled texts alone can do no better than chance.

In the second plain text the words of the first are shuffled among all texts: the same words, as
often, and nothing to learn about kinds.

Whoever knows nothing of kinds still has some opinion of each word, which agrees with the kinds of
56 words now better and now worse than chance. Such a network is asked for two further divisions of
the words too, of which no text tells, and its scores are averaged.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from random import Random

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Task

WORDS = 128
SHOWN = WORDS // 8
"""Words of labelled training texts."""
TEXTS: dict[Split, int] = {"train": 600, "dev": 100, "test": 100}
"""Numbers of plain texts."""
LABELLED: dict[Split, int] = {"train": 32, "dev": 56, "test": 56}
"""Numbers of labelled texts."""
DEEDS = {
    "animal": ("sleeps", "barks", "eats", "runs", "drinks", "hides"),
    "tool": ("breaks", "cuts", "turns", "bends", "rusts", "drills"),
}
"""The use of the words of each kind."""


def kinds(division: int = 0) -> dict[str, str]:
    """The made-up words, each with its kind, in a random order; plain texts are of division 0."""
    random = Random("few labels")
    syllables = ["".join(pair) for pair in product("bdfgklmnprstvz", "aeiou")]
    words = random.sample(["".join(pair) for pair in product(syllables, syllables)], WORDS)
    if division:
        Random(f"division {division}").shuffle(words)
    return {word: list(DEEDS)[number % 2] for number, word in enumerate(words)}


def alternately(of: Mapping[str, str], number: int) -> Iterator[tuple[str, list[str]]]:
    """A kind, and the words that are of it, so many times."""
    by_kind = {kind: [word for word in of if of[word] == kind] for kind in DEEDS}
    return itertools.islice(itertools.cycle(by_kind.items()), number)


def plain(split: Split) -> list[str]:
    """Plain texts, of one to four clauses about one to four words each: where all are equally long,
    a model tells a place by its distance from the end, and learns from that instead."""
    random = Random(f"plain {split}")
    texts = [
        " while ".join(
            f"{' and '.join(random.sample(of, random.randint(1, 4)))} {random.choice(DEEDS[kind])}"
            for _ in range(random.randint(1, 4))
        )
        for kind, of in alternately(kinds(), TEXTS[split])
    ]
    random.shuffle(texts)
    return texts


def shuffled(split: Split) -> list[str]:
    """The plain texts with their words in random places, as many in each text."""
    texts = [text.split() for text in plain(split)]
    words = [word for text in texts for word in text]
    Random(f"shuffled {split}").shuffle(words)
    rest = iter(words)
    return [" ".join(next(rest) for _ in text) for text in texts]


def labelled(split: Split, division: int = 0) -> Iterator[tuple[str, str]]:
    """Labelled texts, each with its kind, of words that no other split has."""
    random, words = Random(f"labelled {split}"), list(kinds(division).items())
    half = SHOWN + (WORDS - SHOWN) // 2
    asked = {"train": words[:SHOWN], "dev": words[SHOWN:half], "test": words[half:]}[split]
    for kind, of in alternately(dict(asked), LABELLED[split]):
        yield " and ".join(random.sample(of, 3)), kind


class Plain(Task):
    """Plain texts."""

    def mini(self, split: Split) -> Iterable[Row]:
        return ({"id": f"{split}-{number}", "text": text} for number, text in enumerate(self.texts(split)))

    def texts(self, split: Split) -> list[str]:
        raise NotImplementedError


@register_task(
    "few_labels_text",
    name="Words of a kind",
    type="text",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 600, "dev": 100, "test": 100},
    budgets={"full": Budget(60, min_steps=6000, batch_size=16, reason="until masked words of two segments are learnt")},
    protocol="Generated.",
)
class Words(Plain):
    """Words of a kind, and what they do."""

    def texts(self, split: Split) -> list[str]:
        return plain(split)


@register_task(
    "few_labels_shuffled",
    name="The same words shuffled",
    type="text",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 600, "dev": 100, "test": 100},
    budgets={"full": Budget(60, min_steps=6000, batch_size=16, reason="as the text that is not shuffled")},
    protocol="Generated.",
)
class Shuffled(Plain):
    """The same words anywhere."""

    def texts(self, split: Split) -> list[str]:
        return shuffled(split)


@register_task(
    "few_labels",
    name="The kinds of words, by 32 labels",
    type="classify",
    metrics=("accuracy",),
    main_metric="accuracy",
    sizes={"train": 32, "dev": 56, "test": 56},
    budgets={"full": Budget(40, min_steps=160, batch_size=8, reason="until the 32 texts are known by heart")},
    protocol="Generated; dev and test ask for words that no labelled text of training has.",
)
class FewLabels(Task):
    """Words whose kind is asked for."""

    division = 0

    def mini(self, split: Split) -> Iterable[Row]:
        for number, (text, label) in enumerate(labelled(split, self.division)):
            yield {"id": f"{split}-{number}", "text": text, "label": label}


@register_task(
    "few_labels_second",
    name="Another division of the words, by 32 labels",
    type="classify",
    metrics=("accuracy",),
    main_metric="accuracy",
    sizes={"train": 32, "dev": 56, "test": 56},
    budgets={"full": Budget(40, min_steps=160, batch_size=8, reason="as the first")},
    protocol="Generated; dev and test ask for words that no labelled text of training has, and no text tells.",
)
class SecondDivision(FewLabels):
    """Words of two groups that no text tells of."""

    division = 1


@register_task(
    "few_labels_third",
    name="A third division of the words, by 32 labels",
    type="classify",
    metrics=("accuracy",),
    main_metric="accuracy",
    sizes={"train": 32, "dev": 56, "test": 56},
    budgets={"full": Budget(40, min_steps=160, batch_size=8, reason="as the first")},
    protocol="Generated; dev and test ask for words that no labelled text of training has, and no text tells.",
)
class ThirdDivision(FewLabels):
    """Words of two groups that no text tells of."""

    division = 2

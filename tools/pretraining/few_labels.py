"""A plugin with a generated corpus in which plain text tells what few labels do not.

Each of :data:`WORDS` made-up words belongs to one of two kinds, which its spelling does not show.
In plain text a word stands between other words of its kind's surroundings. A labelled text has one
such word in a sentence that is the same for both kinds, and the label is the kind; plain texts
begin with such a sentence. Training has 32 labelled texts with an eighth of the words; dev and test
ask for the others alone. So whoever reads labelled texts alone can do no better than chance.

In the second plain text the words of the first are shuffled among all texts: the same words, as
often, and nothing to learn about kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from random import Random

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Task

WORDS = 128
SHOWN = WORDS // 8
"""Words that labelled training texts show, twice each."""
TEXTS: dict[Split, int] = {"train": 1500, "dev": 100, "test": 100}
"""Numbers of plain texts."""
SURROUNDINGS = {
    "animal": (("hungry", "tame", "young", "shy"), ("sleeps", "barks", "eats", "runs"), ("grass", "meat", "fur")),
    "tool": (("rusty", "heavy", "sharp", "electric"), ("breaks", "cuts", "turns", "bends"), ("steel", "wood", "oil")),
}
"""Words before a word of a kind, behind it, and at the end of a text."""
NEUTRAL = ("i saw a {} today", "this is a {}", "here comes the {} again", "there was one {} left")


def kinds() -> list[tuple[str, str]]:
    """The made-up words, each with its kind, in a random order."""
    random = Random("few labels")
    syllables = ["".join(pair) for pair in product("bdfgklmnprstvz", "aeiou")]
    words = random.sample(["".join(pair) for pair in product(syllables, syllables)], WORDS)
    return [(word, list(SURROUNDINGS)[number % 2]) for number, word in enumerate(words)]


def plain(split: Split) -> list[str]:
    """Plain texts; those of a split have each word about as often."""
    random, words, texts = Random(f"plain {split}"), kinds(), []
    for number in range(TEXTS[split]):
        word, kind = words[number % WORDS]
        before, behind, last = (random.choice(part) for part in SURROUNDINGS[kind])
        seen = random.choice(NEUTRAL).format(word)
        texts.append(f"{seen} and the {before} {word} {behind} near the {last}")
    random.shuffle(texts)
    return texts


def shuffled(split: Split) -> list[str]:
    """The plain texts with their words in random places, as many in each text."""
    texts = [text.split() for text in plain(split)]
    words = [word for text in texts for word in text]
    Random(f"shuffled {split}").shuffle(words)
    rest = iter(words)
    return [" ".join(next(rest) for _ in text) for text in texts]


def labelled(split: Split) -> Iterator[tuple[str, str]]:
    """Labelled texts: of training two of each word that it shows, of dev and test one of each other
    word."""
    random, words = Random(f"labelled {split}"), kinds()
    half = SHOWN + (WORDS - SHOWN) // 2
    asked = {"train": 2 * words[:SHOWN], "dev": words[SHOWN:half], "test": words[half:]}[split]
    for word, kind in asked:
        yield random.choice(NEUTRAL).format(word), kind


class Plain(Task):
    """Plain texts."""

    def mini(self, split: Split) -> Iterable[Row]:
        return ({"id": f"{split}-{number}", "text": text} for number, text in enumerate(self.texts(split)))

    def texts(self, split: Split) -> list[str]:
        raise NotImplementedError


@register_task(
    "few_labels_text",
    name="Words in their surroundings",
    type="text",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 1500, "dev": 100, "test": 100},
    budgets={"full": Budget(60, min_steps=2500, batch_size=4, reason="until the loss of masked words falls no more")},
    protocol="Generated.",
)
class Words(Plain):
    """Words in their surroundings."""

    def texts(self, split: Split) -> list[str]:
        return plain(split)


@register_task(
    "few_labels_shuffled",
    name="The same words shuffled",
    type="text",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 1500, "dev": 100, "test": 100},
    budgets={"full": Budget(60, min_steps=2500, batch_size=4, reason="as the text that is not shuffled")},
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
    """Sentences with one word whose kind is asked for."""

    def mini(self, split: Split) -> Iterable[Row]:
        for number, (text, label) in enumerate(labelled(split)):
            yield {"id": f"{split}-{number}", "text": text, "label": label}

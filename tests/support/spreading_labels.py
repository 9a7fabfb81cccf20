"""A plugin with a generated corpus whose labels reach most words by texts without labels alone.

Each of two classes has words that labelled texts show and words that they do not; texts without
labels have both sorts side by side. Dev and test ask for texts with words of the second sort alone,
of which labelled texts say nothing: who learns from these alone answers by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from random import Random

from datasets import Dataset

from architectures.pretrained.bert import BERT
from architectures.recurrent.bilstm import BidirectionalLSTM
from architectures.recurrent.lstm import LSTM
from harness.data.loaded_rows import chosen
from harness.registry import register, register_task
from harness.settings import Budget
from harness.task import Row, Split, Task

LABELS = 32
"""Texts that keep their labels, by ``--labels``."""
TEXTS: dict[Split, int] = {"train": 600, "dev": 200, "test": 400}
CLASSES = ("day", "night")
SHOWN, HIDDEN, NEUTRAL = 6, 24, 30
"""Words of a class that labelled texts show, those that they do not, and words of no class."""


def words() -> list[str]:
    """Made-up words, whose spelling does not show their class: those of each class, then those of
    none."""
    syllables = ["".join(pair) for pair in product("bdfgklmnprstvz", "aeiou")]
    pairs = ["".join(pair) for pair in product(syllables, syllables)]
    return Random("spreading labels").sample(pairs, 2 * (SHOWN + HIDDEN) + NEUTRAL)


WORDS = words()


def words_of(label: str, shown: bool) -> list[str]:
    """The words of a class that labelled texts show, or those that they do not."""
    begin = CLASSES.index(label) * (SHOWN + HIDDEN)
    return WORDS[begin : begin + SHOWN] if shown else WORDS[begin + SHOWN : begin + SHOWN + HIDDEN]


def text(label: str, shown: int, hidden: int, random: Random) -> str:
    """A text of eight words, so many of them of each sort of a class's words, in any order."""
    made = random.sample(words_of(label, True), shown) + random.sample(words_of(label, False), hidden)
    made += random.sample(WORDS[-NEUTRAL:], 8 - len(made))
    return " ".join(random.sample(made, len(made)))


def rows(split: Split) -> Iterator[Row]:
    """The rows of a split; those of training whose labels are kept show the words of one sort
    alone."""
    random = Random(f"spreading {split}")
    labels = [CLASSES[number % 2] for number in range(TEXTS[split])]
    kept = chosen(Dataset.from_dict({"label": labels}), LABELS, 0, "label") if split == "train" else ()
    for number, label in enumerate(labels):
        shown, hidden = (2, 2) if split == "train" else (0, 3)
        if number in kept:
            shown, hidden = 3, 0
        yield {"id": f"{split}-{number}", "text": text(label, shown, hidden, random), "label": label}


@register_task(
    "spreading_labels",
    name="Words beside those of labelled texts",
    type="classify",
    metrics=("accuracy",),
    main_metric="accuracy",
    sizes={"train": 600, "dev": 200, "test": 400},
    budgets={"full": Budget(20, min_steps=300, batch_size=16, reason="until guessed labels change no more")},
    protocol="Generated; dev and test ask for words that no labelled text has.",
)
class SpreadingLabels(Task):
    """Two kinds of texts."""

    def mini(self, split: Split) -> Iterable[Row]:
        return rows(split)


@register(
    "small_lstm",
    name="LSTM, narrow",
    kind="seq",
    paper="none",
    source="tests",
    year=1997,
    hyperparameters={"hidden": 100},
)
class SmallLSTM(LSTM):
    """An LSTM at a size that a test can train."""


@register(
    "small_bilstm",
    name="BiLSTM, narrow",
    kind="seq",
    paper="none",
    source="tests",
    year=1997,
    hyperparameters={"hidden": 100},
)
class SmallBiLSTM(BidirectionalLSTM):
    """A BiLSTM at a size that a test can train."""


@register(
    "small_bert",
    name="BERT, two narrow layers",
    kind="plm",
    paper="none",
    source="tests",
    year=2018,
    hyperparameters={"layers": 2, "hidden": 32, "heads": 2, "vocabulary": 1000},
)
class SmallBERT(BERT):
    """BERT from random weights, at a size that a test can train."""

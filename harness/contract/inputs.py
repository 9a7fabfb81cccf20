"""The checks of an input source: those of an architecture that takes the mean of what it reads of
each word, where there is nothing to read beside the source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from harness import registry
from harness.contract.base import Check, Result, require, run
from harness.contract.imports import changes_nothing
from harness.contract.trained import FIRST, TrainedCase
from harness.registry import InputEntry, TaskEntry
from harness.running import fitting, grid
from harness.views.words import UNKNOWN
from harness.views.words_and_characters import WordsAndCharacters

CARRIER = Path(__file__).resolve().with_name("mean_of_words.py")
LONG = "x" * 60
"""A word that is longer than any view reads."""


def check(entry: InputEntry, learning: bool = True) -> list[Result]:
    """Run every check of an input source, with or without those that need a training; after the
    first one that all others would repeat, no other."""
    results = [run("import changes no global state", lambda: changes_nothing(entry))]
    if not results[0].passed:
        return results
    with case_of(entry) as case:
        for name, body in case.checks(learning=learning):
            results.append(run(name, body))
            if name == FIRST and not results[-1].passed:
                break
    return results


@contextmanager
def case_of(entry: InputEntry) -> Iterator[InputCase]:
    """The source under the carrier, which is registered meanwhile, on the first task that fits."""
    registry.add_plugin(CARRIER)
    try:
        carrier = registry.entry("architectures", "mean_of_words")
        tasks = registry.tasks_to_check_on()
        yield InputCase(entry, carrier, next(t for t in tasks if fitting.reason_to_skip(carrier, t, {}) is None))
    finally:
        registry.remove_plugin(CARRIER)


class InputCase(TrainedCase):
    """An input source under the carrier on one mini task, in the place of word vectors."""

    dims = 0

    def __init__(self, entry: InputEntry, carrier: registry.ArchitectureEntry, task: TaskEntry):
        self.source, self.inputs = entry.id, {entry.id: grid.input_settings(entry) | entry.tiny}
        self.spells = getattr(registry.load(entry), "spells", True)
        super().__init__(carrier, task, {})

    def of_the_system(self, learning: bool) -> Iterator[tuple[str, Check]]:
        yield from super().of_the_system(learning)
        yield "a longer word in another text changes nothing", self.longer_word
        if self.spells:
            yield "unknown words differ by their spelling", self.unknown_words

    def shape(self) -> None:
        model, batch = self.model(), self.corpus.train.collate(self.eight())
        words, source = batch.inputs["text"], model.sources[self.source]
        found, wanted = tuple(source(words).shape), (*words.ids.shape, source.size)
        require(found == wanted, f"forward returned {found}; (texts, words, self.size) is wanted, here {wanted}")
        super().shape()

    def longer_word(self) -> None:
        [row, *_], model = self.some_rows(), self.model()
        alone, beside = (self.asked({"text": rows}) for rows in ([row], [row, row | {"text": LONG}]))
        one, two = (self.evidence(model, np.arange(1 + n), split)[0] for n, split in enumerate((alone, beside)))
        self._same(one, two, "beside a text with a longer word")

    def unknown_words(self) -> None:
        view = self.corpus.view
        assert isinstance(view, WordsAndCharacters)  # as every source reads
        letters = [one for one in view.characters.words if one.isalpha()][:6]
        words = ["".join(letters[:3] * 3), "".join(letters[3:] * 3)]
        require(set(view.vocabulary.ids(words)) == {UNKNOWN}, f"{words[0]} or {words[1]} is a word of the corpus")
        rows = [row | {"text": word} for row, word in zip(self.some_rows(), words, strict=False)]
        one, two = self.evidence(self.model(), np.arange(2), self.asked({"text": rows}))
        require(not torch.allclose(one, two), f"it gives the same for {words[0]} and {words[1]}")

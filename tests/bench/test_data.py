"""What becomes of texts before a model sees them: how little of a batch is padding, and how long
encoding takes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from harness import registry
from harness.data.batches import Batches
from harness.data.corpus import Corpus
from harness.running import grid
from harness.views.words import Words
from tools.speed.goals import Row

BATCH = 64
WORD = re.compile(r"\w+(?:['’]\w+)?|[^\w\s]")


def corpus(task: str, folder: Path, cache: Path | None = None) -> Corpus:
    """A task's real data as a BiLSTM reads it."""
    architecture, entry = registry.entry("architectures", "bilstm"), registry.entry("tasks", task)
    view = registry.load(architecture).view_for(entry, grid.hyperparameters(architecture))
    gives = registry.load(architecture).output_form()
    return Corpus(registry.load(entry)(entry), "local", folder, view, gives, cache=cache)


@pytest.mark.parametrize("task", ["sst2", "snli", "squad1", "conll2003_ner"])
def test_padding_of_an_epoch(benchmark, enter, corpora: Path, task: str) -> None:
    """Both sides of a pair count, each padded for itself."""
    split = corpus(task, corpora).train
    batches = Batches(split.padded_lengths, BATCH, split.collate, seed=0)
    places = real = 0
    for batch in batches:
        places += sum(words.mask.numel() for words in batch.inputs.values())
        real += sum(int(words.mask.sum()) for words in batch.inputs.values())
    assert real == split.lengths.sum(), "an epoch has every word once"
    benchmark.pedantic(lambda: sum(batch.units for batch in batches), rounds=1)
    enter(
        Row(
            f"share of an epoch's batches of {BATCH} that is no padding, {task}",
            "all places",
            ">=",
            0.92,
            real / places,
            unit="",
        )
    )


def test_encoding(beside, corpora: Path) -> None:
    """The plain loop keeps less: no spellings, no arrays."""
    texts = list(corpus("ag_news", corpora).train.rows["text"])
    view = Words()
    view.fit(texts)

    def plain() -> list[list[int]]:
        ids = {word: number for number, word in enumerate(view.vocabulary.words, start=2)}
        return [[ids.get(word.lower(), 1) for word in WORD.findall(text)[: view.max_length]] for text in texts]

    encoded = view.encode(texts)["ids"]
    assert all(np.array_equal(encoded[row], ids) for row, ids in enumerate(plain()))
    beside(
        f"encoding ag_news ({len(texts):,} texts)",
        "a plain regex loop",
        1.0,
        lambda: view.encode(texts),
        plain,
        rounds=5,
    )


def test_encoding_for_the_second_time(benchmark, enter, corpora: Path, tmp_path: Path) -> None:
    """What was encoded before is read from the cache, vocabulary and checksums included; reading
    the rows themselves is not counted."""
    first = corpus("ag_news", corpora, cache=tmp_path)
    rows = first.train.rows.to_list()

    def again() -> None:
        first._fit(rows)
        first.train = first._encode("train", first.train.rows, rows)

    before = first.train.inputs["text"]["ids"].values.copy()
    benchmark.pedantic(again, rounds=5, warmup_rounds=1)
    assert np.array_equal(first.train.inputs["text"]["ids"].values, before)
    enter(
        Row(
            f"ag_news from the cache ({len(rows):,} texts)",
            "the clock",
            "<=",
            0.1,
            benchmark.stats.stats.median,
            unit="s",
        )
    )

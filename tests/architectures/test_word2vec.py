"""Skip-gram and CBOW: their examples by a loop, planted topics, and the way from nothing to a child
that starts from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from architectures.blocks.negative_sampling import Examples, NegativeSampling, Places
from architectures.vectors.cbow import ContinuousBagOfWords
from architectures.vectors.skipgram import SkipGram
from harness.kept import shelf
from harness.kept.model import load
from tests.support import planted_topics
from tests.support.sessions import carried_out, session

WORDS = np.array([7, 8, 9, 7])
PLACES = Places(np.array([0, 1, 1, 3]), np.array([1, 0, 2, 2]))
"""The second word has one on each side, the third is alone, first and last have one beside them."""


def listed(examples: Examples) -> list[tuple[list[int], int]]:
    parts = np.split(examples.rows, examples.starts[1:])
    return [(part.tolist(), word) for part, word in zip(parts, examples.words.tolist(), strict=True)]


def test_skip_gram_foretells_each_word_beside_a_word_from_that_word():
    assert listed(SkipGram().examples(WORDS, PLACES)) == [([7], 8), ([8], 7), ([8], 9), ([7], 9)]


def test_cbow_foretells_a_word_from_all_beside_it():
    assert listed(ContinuousBagOfWords().examples(WORDS, PLACES)) == [([8], 7), ([7, 9], 8), ([9], 7)]


@pytest.mark.parametrize("cls", [SkipGram, ContinuousBagOfWords])
def test_words_of_a_planted_topic_are_neighbours(cls):
    """The first thing that anyone looks at."""
    system = cls(dims=12, threshold=1.0, rate=0.1, epochs=2)
    system.fit(planted_topics.rows(600), planted_topics.rows(40, seed=1))
    vectors = system.word_vectors()
    assert planted_topics.share_of_neighbours(list(vectors), np.array(list(vectors.values()))) > 0.95
    assert all(vector.shape == (12,) for vector in vectors.values())


def test_steps_are_small_where_words_are_few(monkeypatch):
    """Else a user's first hundred sentences would end in NaN."""
    sizes: list[int] = []
    learn = NegativeSampling.learn
    monkeypatch.setattr(
        NegativeSampling, "learn", lambda self, batch, rate: (sizes.append(len(batch.words)), learn(self, batch, rate))
    )
    SkipGram(dims=4, threshold=1.0, epochs=1).fit(planted_topics.rows(60), planted_topics.rows(10))
    assert {*sizes[:-1]} == {3}


def test_vectors_that_are_no_numbers_end_the_cell(monkeypatch):
    """Thirty words in steps of a thousand pairs at a high rate: a child would start from NaN."""
    monkeypatch.setattr("architectures.blocks.negative_sampling.SPREAD", 0.01)
    system = SkipGram(dims=4, threshold=1.0, rate=5.0, epochs=3, batch_size=1000)
    with pytest.raises(ValueError, match="vectors that are no finite numbers; a lower rate"):
        system.fit(planted_topics.rows(100), planted_topics.rows(10))


def test_a_child_starts_from_skip_gram_from_nothing(tmp_path: Path):
    """`archbench run -a kim_cnn_static -t sst2 --parent vectors=skipgram`: the parent is planned
    first, on plain text, once for all children, and its vectors are theirs."""
    small = ("skipgram.dims=8", "skipgram.threshold=0.01", "skipgram.epochs=1", "*_static.maps=4")
    wanted = "kim_cnn_static,avg_vectors"
    planned = session(tmp_path, wanted, "vectors=skipgram", max_train=200, max_epochs=1, overrides=small)
    parent, *children = sorted(planned.pending.run, key=lambda cell: bool(cell.parents))
    assert (parent.architecture, parent.task) == ("skipgram", "text_mix") and planned.settings.keeps(parent)
    assert {cell.architecture for cell in children} == {"kim_cnn_static", "avg_vectors"}
    records = carried_out(planned)
    assert {record.status for record in records.values()} == {"ok"}, [record.error for record in records.values()]
    child = records["kim_cnn_static"]
    kept = load(shelf.place(tmp_path, parent.key))
    assert child.lineage[0]["key"] == parent.key and child.vectors["name"] == "skipgram"
    assert child.vectors["dims"] == 8 and 0 < child.vectors["words"] <= len(kept.word_vectors())
    assert records["skipgram"].tokens["symbols"] == len(kept.word_vectors()) + 1

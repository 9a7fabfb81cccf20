"""Skip-gram and CBOW: planted topics, threads, and the way from nothing to a child that starts from
them. tests/blocks/test_negative_sampling.py has their steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from architectures.vectors.cbow import ContinuousBagOfWords
from architectures.vectors.skipgram import SkipGram
from harness.saved_models import storage
from harness.saved_models.model import load
from tests.support import planted_topics
from tests.support.sessions import carried_out, session


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cls", [SkipGram, ContinuousBagOfWords])
def test_words_of_a_planted_topic_are_neighbours(cls, threads):
    """The first thing that anyone looks at, whatever threads write over."""
    system = cls(dims=12, threshold=1.0, epochs=2, threads=threads)
    system.fit(planted_topics.rows(600), planted_topics.rows(40, seed=1))
    vectors = system.word_vectors()
    assert planted_topics.share_of_neighbours(list(vectors), np.array(list(vectors.values()))) > 0.95
    assert all(vector.shape == (12,) for vector in vectors.values())


def test_vectors_that_are_no_numbers_end_the_cell():
    """A rate beyond all reason: a child would start from NaN."""
    system = SkipGram(dims=4, threshold=1.0, rate=1e30, epochs=1)
    with pytest.raises(ValueError, match="vectors that are no finite numbers; a lower rate"):
        system.fit(planted_topics.rows(100), planted_topics.rows(10))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_record_says_whether_equal_seeds_give_equal_bits(tmp_path: Path, threads: int):
    """Who compares two records of several threads would take the difference for one of the code."""
    small = ("skipgram.dims=8", "skipgram.epochs=1", f"skipgram.threads={threads}")
    [record] = carried_out(
        session(tmp_path, "skipgram", tasks="text_mix", max_train=200, max_epochs=None, overrides=small)
    ).values()
    assert record.status == "ok" and record.deterministic is (threads == 1)
    assert record.hyperparameters["threads"] == threads


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
    kept = load(storage.place(tmp_path, parent.key))
    assert child.lineage[0]["key"] == parent.key and child.vectors["name"] == "skipgram"
    assert child.vectors["dims"] == 8 and 0 < child.vectors["words"] <= len(kept.word_vectors())
    assert records["skipgram"].tokens["symbols"] == len(kept.word_vectors()) + 1

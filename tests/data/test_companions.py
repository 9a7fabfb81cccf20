"""Rows of further tasks: what a view learns of them, and which of them are never read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import registry
from harness.data.companions import Companion, judged
from harness.data.corpus import Corpus
from harness.data.overlap import WORDS
from harness.errors import DataError
from harness.settings import Limits
from harness.task import Row, Task
from harness.views.words import Words
from tests.support.toy_corpus import ToyTask, toy_task

LONG = " ".join(f"w{number}" for number in range(WORDS + 4))


def of_words(*texts: str) -> list[Row]:
    return [{"id": f"other-{n}", "text": text, "label": "ab"[n % 2]} for n, text in enumerate(texts)]


def companion(own: Task, other: Task, most: int | None = None) -> Companion:
    return Companion(other, "mini", None, most, "vector", judged(own, "mini", None))


def test_rows_whose_text_is_in_dev_or_test_are_left_out_and_counted():
    """Someone who compares two divisions of one corpus, such as sst2 and sst5: else training would
    have read what is scored."""
    own = toy_task(dev=of_words("Seen in dev", "x"), test=of_words("seen in test", LONG))
    part = LONG.split(" ", 3)[-1] + " and more"
    other = ToyTask({"train": of_words("seen IN test", "free", "seen in dev", f"so {part}", "seen in dev too")})
    found = companion(own, other)
    assert found.rows["text"] == ["free", "seen in dev too"]
    assert found.left_out == 3
    assert found.digest != found.identity, "one of the task's rows, one of those that are read"
    assert companion(toy_task(), other).digest == found.digest
    assert companion(toy_task(), other).identity == found.digest and companion(toy_task(), other).left_out == 0


def test_a_companion_of_which_no_row_stays_is_refused_by_name():
    own = toy_task(test=of_words("one", "two"))
    with pytest.raises(DataError, match="toy: a text of each of its 2 training rows stands in dev or test"):
        companion(own, ToyTask({"train": of_words("One", "two")}))


def test_every_text_of_a_pair_counts():
    pairs = [{"id": "p", "first": "alone", "second": "in test", "label": "a"}]
    pairs.append({"id": "q", "first": "alone", "second": "free", "label": "b"})
    found = companion(toy_task(test=of_words("in test", "x")), ToyTask({"train": pairs}, type="match"))
    assert found.rows["id"] == ["q"]


def test_the_cells_limit_of_rows_is_the_companions_too():
    rows = of_words(*(f"row {number}" for number in range(40)))
    assert len(companion(toy_task(), ToyTask({"train": rows}), Limits(20, labels=8).labelled).rows) == 8


def test_a_view_knows_the_training_words_of_all_members_and_none_of_dev_or_test(tmp_path: Path):
    """A word that only a companion's train has would else be unknown in half of the batches; one
    of dev or test, of whomever, would tell of them."""
    splits = {"dev": of_words("owndev"), "test": of_words("owntest")}
    own = toy_task(train=of_words("own shared", "own"), **splits)
    other = ToyTask({"train": of_words("theirs shared"), "dev": of_words("theirdev"), "test": of_words("theirtest")})
    others = [companion(own, other)]
    corpus = Corpus(own, "mini", None, Words(min_count=1), "vector", cache=tmp_path, companions=others)
    assert set(corpus.view.vocabulary.words) == {"own", "shared", "theirs"}
    assert dict(zip(corpus.view.vocabulary.words, corpus.view.vocabulary.counts, strict=True))["shared"] == 2
    assert "test" not in other.asked and "dev" not in other.asked
    [split] = corpus.companion_splits.values()
    assert split.collate(np.arange(1)).inputs["text"].ids[0].tolist() == corpus.view.vocabulary.ids(
        ["theirs", "shared"]
    )


def test_a_text_of_two_tasks_is_counted_once():
    """SST-5 has the sentences of SST-2: with each counted twice no word would be one that training
    saw once, and the vector of unknown words would never be learnt."""
    own = toy_task(train=of_words("seen by both", "own"))
    others = [companion(own, ToyTask({"train": of_words("seen by both", "theirs both")}))]
    corpus = Corpus(own, "mini", None, Words(min_count=1), "vector", companions=others)
    counts = dict(zip(corpus.view.vocabulary.words, corpus.view.vocabulary.counts, strict=True))
    assert counts == {"both": 2, "seen": 1, "by": 1, "own": 1, "theirs": 1}


def test_what_was_encoded_without_companions_is_not_read_with_them(tmp_path: Path):
    """The cache is shared by all systems: another vocabulary gives other numbers."""
    own, other = toy_task(train=of_words("own", "own")), ToyTask({"train": of_words("other", "own")})
    views = []
    for others in ([], [companion(own, other)], []):
        corpus = Corpus(own, "mini", None, Words(min_count=1), "vector", cache=tmp_path, companions=others)
        views.append(set(corpus.view.vocabulary.words))
    assert views == [{"own"}, {"own", "other"}, {"own"}]


def test_the_shipped_divisions_of_one_corpus_share_no_text_across_splits():
    """What the mini corpora of sst2 and sst5 promise, so that little is left out there."""
    entries = [registry.entry("tasks", name) for name in ("sst2", "sst5")]
    one, other = (registry.load(each)(each) for each in entries)
    assert companion(one, other).left_out == 0 == companion(other, one).left_out

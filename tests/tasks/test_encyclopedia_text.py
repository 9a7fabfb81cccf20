"""Encyclopaedic text: the generated one answers the generated questions, and none of it is
asked."""

from __future__ import annotations

import functools
from collections import Counter

import pytest

from harness.task import fingerprint
from harness.views.base import words_of
from tasks import encyclopedia_text, text_mix
from tasks.mini import school
from tests.support.sequences import assert_apart, sequences


def test_the_generated_corpus_states_the_facts_and_shares_nothing_with_a_test(task):
    """A system that reads it in the first run must find the answers there."""
    texts = [row["text"] for row in task("encyclopedia_text").read("train", "mini")]
    for animal, facts in school.EVERY.items():
        assert all(any({animal, fact} <= {*words_of(text.lower())} for text in texts) for fact in facts)
    assert_apart(texts, "mini", None)


def test_no_real_question_of_dev_or_test_is_read(task, monkeypatch):
    """A text that quotes one is left out, as one that quotes another task's test."""
    asked = "one two three four five six seven eight nine ten eleven twelve thirteen"
    quoted = {"wikiqa": [f"It asks: {asked} and so on", "something else"], "ai2_questions": [asked]}
    monkeypatch.setattr(encyclopedia_text, "texts_of", lambda id, *_: iter(quoted.get(id, [])))
    monkeypatch.setattr(encyclopedia_text, "guarded", lambda *_: iter(()))
    rows = task("encyclopedia_text").read("train", "local", "unread")
    assert [(row["id"], row["text"]) for row in rows] == [("wikiqa-1", "something else")]


@pytest.mark.minutes
def test_the_corpus_is_the_one_that_the_protocol_describes(task, corpora, monkeypatch):
    """Sizes, digests, words and shares; a fiftieth of the texts is compared with all that they must
    not share."""
    once = functools.cache(lambda *asked: list(TEXTS_OF(*asked)))  # read once
    monkeypatch.setattr(text_mix, "texts_of", once)
    monkeypatch.setattr(encyclopedia_text, "texts_of", once)
    adapter = task("encyclopedia_text")
    rows = {split: adapter.read(split, "local", corpora) for split in ("train", "dev", "test")}
    assert {split: len(each) for split, each in rows.items()} == dict(adapter.entry.sizes)
    assert {split: fingerprint(each) for split, each in rows.items()} == encyclopedia_text.DIGESTS
    assert adapter.notes() == []
    counts: Counter[str] = Counter()
    for row in rows["train"]:
        counts[row["id"].rpartition("-")[0]] += len(words_of(row["text"]))
    total = sum(counts.values())
    assert f"{total / 1e6:.2f} million words" in adapter.entry.protocol
    for share in (f"{100 * count / total:.1f} %" for count in counts.values()):
        assert f"({share}" in adapter.entry.protocol
    texts = [row["text"] for row in rows["train"][::50]]
    assert_apart(texts, "local", corpora)
    own = {sequence for text in texts for sequence in sequences(text)}
    for split in ("dev", "test"):
        assert all(own.isdisjoint(sequences(text)) for text in once("ai2_questions", split, "local", corpora))


TEXTS_OF = text_mix.texts_of

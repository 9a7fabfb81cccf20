"""Plain text of one domain: news and everything else, as many words of each, and nothing that a
test asks."""

from __future__ import annotations

import functools
from collections import Counter

import pytest

from harness import registry
from harness.task import fingerprint
from harness.views.base import words_of
from tasks import text_by_domain, text_mix
from tasks.text_by_domain import SOURCES, WORDS, cut
from tests.support.sequences import assert_apart

BOTH = ("news_text", "general_text")


def words(rows: list[dict[str, str]]) -> int:
    return sum(len(words_of(row["text"])) for row in rows)


def source(row: dict[str, str]) -> str:
    return row["id"].rpartition("-")[0]


def test_a_source_is_news_or_not_and_medicine_is_neither():
    """The paper's domain is medicine: a part of it among the general texts would be a domain."""
    news, general = ({*SOURCES[id]} for id in BOTH)
    assert not news & general and news | general | {"ohsumed"} == {*text_mix.SOURCES}
    assert news == {"ag_news", "reuters21578", "conll2003_ner", "conll2000_chunk"}


def test_a_corpus_is_cut_to_a_number_of_words():
    rows = [{"id": f"a-{n}", "text": f"text {n} " + "of words " * (n % 7)} for n in range(400)]
    kept = cut(rows, 1500)
    assert 1500 - 14 < words(kept) <= 1500 and len({row["id"] for row in kept}) == len(kept)
    assert cut(reversed(rows), 1500) == kept, "whatever the order"
    assert cut(rows, 10**6) == cut(rows, words(rows)) and len(cut(rows, words(rows))) == 400
    assert cut(rows, 700) == kept[: len(cut(rows, 700))], "fewer words are some of more"
    halves = Counter(int(row["id"][2:]) < 200 for row in kept)
    assert abs(halves[True] - halves[False]) < 50, "of all parts of the corpus"


@pytest.fixture(scope="module")
def mini(task) -> dict[str, list[dict[str, str]]]:
    return {id: task(id).read("train", "mini") for id in BOTH}


def test_the_mini_corpora_have_equally_many_words(mini):
    """Within one percent; what is learnt would else be a matter of amount."""
    counts = [words(mini[id]) for id in BOTH]
    assert max(counts) < 1.01 * min(counts) and max(counts) <= WORDS["mini"] < 1.01 * max(counts)
    for id in BOTH:
        assert {source(row) for row in mini[id]} <= {*SOURCES[id]} and len({source(row) for row in mini[id]}) >= 3


def test_the_mini_corpora_share_no_sequence_with_dev_or_test_of_any_task(task, mini):
    for id in BOTH:
        assert_apart([row["text"] for row in mini[id]], "mini", None)
        held = {row["text"] for split in ("dev", "test") for row in task(id).read(split, "mini")}
        assert len(held) >= 40 and not held & {row["text"] for row in mini[id]}


def test_they_are_parts_of_the_text_mix():
    """Where any plain text will do, an architecture is trained or checked on the whole of it."""
    parts = {entry.id: entry.part_of for entry in registry.entries("tasks").values() if entry.part_of}
    made_of_others = {"squad_sentences": "squad1", "neighbours": "wikitext2", "multi30k_both": "multi30k"}
    assert parts == dict.fromkeys((*BOTH, "encyclopedia_text"), "text_mix") | made_of_others
    order = [entry.id for entry in registry.tasks_to_check_on()]
    assert {*order[-6:]} == {*parts} and order.index("text_mix") < len(order) - 6


@pytest.mark.minutes
def test_the_corpora_are_those_that_the_protocol_describes(task, corpora, monkeypatch):
    """Sizes, digests, words and shares; a fiftieth of the texts is compared with all that they must
    not share."""
    monkeypatch.setattr(text_mix, "texts_of", functools.cache(lambda *asked: list(TEXTS_OF(*asked))))  # read once
    for id in BOTH:
        adapter = task(id)
        rows = {split: adapter.read(split, "local", corpora) for split in ("train", "dev", "test")}
        assert {split: len(each) for split, each in rows.items()} == dict(adapter.entry.sizes)
        assert {split: fingerprint(each) for split, each in rows.items()} == text_by_domain.DIGESTS[id]
        assert adapter.notes() == []
        counts: Counter[str] = Counter()
        for row in rows["train"]:
            counts[source(row)] += len(words_of(row["text"]))
        total = sum(counts.values())
        assert 0.99 * WORDS["local"] < total <= WORDS["local"]
        assert {*counts} == {*SOURCES[id]}
        for share in (f"{100 * count / total:.1f} %" for count in counts.values()):
            assert f" {share}" in adapter.entry.protocol
        assert_apart([row["text"] for row in rows["train"][::50]], "local", corpora)


TEXTS_OF = text_mix.texts_of

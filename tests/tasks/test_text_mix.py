"""The mix of plain texts: no text of dev or test of a task is learnt from, and nothing else is
left out."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import pytest

from harness import registry
from harness.errors import DataError
from harness.task import fingerprint
from harness.views.base import words_of
from tasks import text_mix
from tasks.text_mix import GUARDED, JOINED_LATER, NOT_AT_HAND, SOURCES, mixed, texts_of
from tests.support.sequences import assert_apart

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"


def train_of(*texts: str, others: Iterable[str] = ()) -> list[str]:
    """The texts of train among enough others that none of them is held out."""
    numbered = [(f"mine-{number}", text) for number, text in enumerate(texts)]
    kept = {row["text"]: row["id"] for row in mixed("train", numbered, others)}
    assert all(id.startswith("mine-") for id in kept.values())
    return list(kept)


def test_thirteen_words_of_another_tasks_test_are_left_out_and_twelve_are_not():
    """Whoever starts from these vectors would have read the test."""
    words = LONG.split()
    near, far = f"It said: {' '.join(words[1:14]).upper()}!", f"It said: {' '.join(words[1:13])}!"
    assert train_of(LONG, near, far, "something else", others=[LONG]) == [far, "something else"]


def test_a_short_text_is_left_out_where_the_same_is_there_alone():
    """A caption of SNLI is part of many a longer text."""
    texts = ("A man sleeps.", "a man sleeps .", "a man sleeps", "I saw that a man sleeps.")
    assert train_of(*texts, others=["A man sleeps ."]) == ["a man sleeps", "I saw that a man sleeps."]


def test_equal_texts_are_one_and_none_is_empty():
    assert list(mixed("train", [("a-0", "x y"), ("b-0", "x y"), ("b-1", "")], [])) == [{"id": "a-0", "text": "x y"}]


def test_a_hundredth_is_dev_a_hundredth_test_and_train_has_none_of_their_sequences():
    """The score would be one of texts known by heart."""
    texts = [(f"a-{n}", " ".join(f"word{n}of{k}" for k in range(15))) for n in range(400)]
    dev, test = (list(mixed(split, texts, [])) for split in ("dev", "test"))
    assert len(dev) == len(test) == 4
    copies = [(f"b-{row['id']}", f"{row['text']} and more") for row in (*dev, *test)]
    train = list(mixed("train", [*texts, *copies], []))
    held = {row["id"] for split in ("dev", "test") for row in mixed(split, [*texts, *copies], [])}
    ids = {row["id"] for row in train}
    both = {id for id, _ in copies if id.removeprefix("b-") in held or id in held}
    assert both and not ids & (held | both), "a copy of what is held out"
    assert len(ids) == 408 - len(held | both | {id.removeprefix("b-") for id in both})


def test_every_task_with_texts_is_looked_at():
    """A new task is named here: its test may stand in the mix, whose version then goes up."""
    types = registry.entries("problems")
    entries = [entry for entry in registry.entries("tasks").values() if entry.shipped and types[entry.type].texts]
    readable = {entry.id for entry in entries if "text" in registry.load(entry).inputs}
    plain = {entry.id for entry in entries if entry.type == "text"}
    same_texts = {"newsgroups20_levels", "squad_sentences", "neighbours"}  # of newsgroups20, squad1, wikitext2
    assert readable - plain - same_texts == {*GUARDED} | {*NOT_AT_HAND} | {*JOINED_LATER}
    assert {*SOURCES} <= {*GUARDED}


def test_the_mini_corpus_shares_no_sequence_with_dev_or_test_of_any_task(task):
    assert_apart([row["text"] for row in task("text_mix").load("train", "mini")], "mini", None)


@pytest.mark.minutes
def test_the_corpus_is_the_one_that_the_protocol_describes(task, corpora, monkeypatch):
    """Sizes, digests and shares; a fiftieth of the texts is compared with all that they must not
    share. A digest that differs is told to the user."""
    monkeypatch.setattr(text_mix, "texts_of", functools.cache(lambda *asked: list(texts_of(*asked))))  # read once
    mix = task("text_mix")
    rows = {split: mix.read(split, "local", corpora) for split in ("train", "dev", "test")}
    assert {split: len(each) for split, each in rows.items()} == dict(mix.entry.sizes)
    assert {split: fingerprint(each) for split, each in rows.items()} == text_mix.DIGESTS
    assert mix.notes() == []
    words = dict.fromkeys(SOURCES, 0)
    for row in rows["train"]:
        words[row["id"].rpartition("-")[0]] += len(words_of(row["text"]))
    total = sum(words.values())
    assert f"{total / 1e6:.1f} million words" in mix.entry.protocol
    shares = [f"{100 * count / total:.1f} %" for count in sorted(words.values(), reverse=True)]
    places = [mix.entry.protocol.index(f" {share}", mix.entry.protocol.index("IMDB")) for share in shares]
    assert places[:7] == sorted(places[:7])
    assert_apart([row["text"] for row in rows["train"][::50]], "local", corpora)
    monkeypatch.setattr(mix, "_rows", lambda *_: rows["test"])
    mix.read("dev", "local", corpora)
    assert mix.notes() == ["text_mix: dev: other rows than those of version 2, whose files were others"]


@pytest.mark.parametrize(("id", "split"), [(id, split) for id, splits in NOT_AT_HAND.items() for split in splits])
def test_what_is_not_looked_at_is_not_at_hand(corpora, id, split):
    """Else it could be, and must be."""
    with pytest.raises(DataError, match="no such file"):
        list(texts_of(id, split, "local", corpora))

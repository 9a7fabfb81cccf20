"""IMDB and 20 Newsgroups from hand-made archives in the official layouts, and from parquet files
with the hub's features."""

from __future__ import annotations

import pytest
from datasets import ClassLabel, Value

from harness.errors import DataError

# --- IMDB ---


def review(number: int) -> bytes:
    return f"Review {number}.<br /><br />So caf\u00e9.\n".encode()


IMDB = {
    "aclImdb/test/pos/3_9.txt": review(3),
    "aclImdb/test/neg/12_1.txt": review(12),
    "aclImdb/train/unsup/1_0.txt": b"No label.",
    "aclImdb/train/labeledBow.feat": b"9 0:1",
    "aclImdb/train/urls_pos.txt": b"a film",
} | {f"aclImdb/train/{('neg', 'pos')[n % 2]}/{n}_5.txt": review(n) for n in range(40)}


@pytest.mark.parametrize("name", ["aclImdb_v1.tar.gz", "aclImdb_labelled.tar.gz"])
def test_imdb_is_read_from_either_archive_in_one_order(name, write_tar, tmp_path, task):
    """The archives order their files differently, and the order is part of the data's digest."""
    write_tar(f"imdb/{name}", dict(reversed(IMDB.items())))
    assert task("imdb").load("test", "local", tmp_path).to_list() == [
        {"id": "test-neg-12_1", "text": "Review 12. So caf\u00e9.", "label": "negative"},
        {"id": "test-pos-3_9", "text": "Review 3. So caf\u00e9.", "label": "positive"},
    ]


def test_imdb_dev_is_held_out_of_the_labelled_reviews(write_tar, tmp_path, task):
    """Reviews without a label, lists of features and lists of films are no examples."""
    write_tar("imdb/aclImdb_v1.tar.gz", IMDB)
    train, dev = (task("imdb").load(split, "local", tmp_path).to_list() for split in ("train", "dev"))
    assert (len(train), len(dev)) == (36, 4)
    assert sorted(row["id"] for row in train + dev) == sorted(f"train-{('neg', 'pos')[n % 2]}-{n}_5" for n in range(40))


def test_imdb_from_the_hub(task, from_parquet):
    features = {"text": Value("string"), "label": ClassLabel(names=["neg", "pos"])}
    columns = {"text": [f"a<br />{n}" for n in range(20)], "label": [n % 2 for n in range(20)]}
    parts = {split: from_parquet(task("imdb"), split, columns, features) for split in ("train", "dev", "test")}
    assert {split: len(rows) for split, rows in parts.items()} == {"train": 18, "dev": 2, "test": 20}
    assert parts["test"][1] == {"id": "test-2", "text": "a 1", "label": "positive"}


# --- 20 Newsgroups ---


def message(text: str) -> bytes:
    return f"From: a\nSubject: b\n\n{text}\n".encode("latin-1")


def test_a_message_keeps_its_header_its_lines_and_its_letters(write_tar, tmp_path, task):
    """73 posts are no UTF-8; a reader that refused them would refuse the corpus."""
    files = {f"20news-bydate-train/sci.med/{n}": message(str(n)) for n in range(20)}
    files |= {"20news-bydate-test/sci.space/60": message("> Gr\u00fc\u00dfe\nyes")}
    write_tar("newsgroups20/20news-bydate.tar.gz", files)
    assert task("newsgroups20").load("test", "local", tmp_path).to_list() == [
        {"id": "sci.space-60", "text": "From: a\nSubject: b\n\n> Gr\u00fc\u00dfe\nyes", "label": "sci.space"}
    ]
    assert [len(task("newsgroups20").load(split, "local", tmp_path)) for split in ("train", "dev")] == [18, 2]


def test_a_group_that_is_none_of_the_twenty_is_refused(write_tar, tmp_path, task):
    """Another collection of messages would train without an error."""
    write_tar("newsgroups20/20news-bydate.tar.gz", {"20news-bydate-test/sci.maths/1": message("x")})
    with pytest.raises(DataError, match=r"20news-bydate-test/sci\.maths/1: group 'sci\.maths', expected one of alt"):
        task("newsgroups20").load("test", "local", tmp_path)

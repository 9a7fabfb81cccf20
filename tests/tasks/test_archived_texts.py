"""IMDB, 20 Newsgroups and Reuters-21578 from hand-made archives in the official layouts, and from
parquet files with the hub's features."""

from __future__ import annotations

import tarfile

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


def test_a_link_in_an_archive_is_not_followed(tmp_path, task):
    """An archive from elsewhere could name any file of the reader's machine as a review."""
    (tmp_path / "imdb").mkdir()
    with tarfile.open(tmp_path / "imdb" / "aclImdb_v1.tar.gz", "w:gz") as archive:
        for name, type in (("1_9", tarfile.SYMTYPE), ("2_9", tarfile.LNKTYPE)):
            link = tarfile.TarInfo(f"aclImdb/test/pos/{name}.txt")
            link.type, link.linkname = type, "/etc/passwd"
            archive.addfile(link)
    with pytest.raises(DataError, match="imdb: split test has no rows"):
        task("imdb").load("test", "local", tmp_path)


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


# --- Reuters-21578 ---


def document(id: int, part: str, topics: str, text: str = "<BODY>x</BODY>", indexed: str = "YES") -> str:
    listed = "".join(f"<D>{topic}</D>" for topic in topics.split())
    attributes = f'TOPICS="{indexed}" LEWISSPLIT="{part}" CGISPLIT="TRAINING-SET" OLDID="7" NEWID="{id}"'
    places = "<PLACES><D>usa</D></PLACES>"
    return f"<REUTERS {attributes}>\n<TOPICS>{listed}</TOPICS>\n{places}\n<TEXT>&#2;\n{text}</TEXT>\n</REUTERS>\n"


@pytest.fixture
def wire(write_tar, tmp_path, task):
    """Rows of a split of an archive with these documents."""

    def rows(split: str, *documents: str):
        files = {"README.txt": ("<REUTERS",), "reut2-000.sgm": documents[:2], "reut2-001.sgm": documents[2:]}
        members = {f"./{name}": "".join(part).encode("latin-1") for name, part in files.items()}
        write_tar("reuters21578/reuters21578.tar.gz", members)
        return task("reuters21578").load(split, "local", tmp_path).to_list()

    return rows


def test_a_topic_counts_that_train_and_test_both_have(wire):
    """That is how the ninety of ModApte are found; what nobody indexed, and what Lewis left out, is
    in neither part."""
    documents = [
        document(
            1, "TRAIN", "corn tea", "<TITLE>A &lt;B></TITLE><DATELINE> S\u00e3o - </DATELINE><BODY>It\nis.&#3;</BODY>"
        ),
        document(2, "TRAIN", "tea"),
        document(3, "TEST", "corn jute"),
        document(4, "TEST", "jute"),
        document(5, "TEST", "corn", indexed="NO"),
        document(6, "NOT-USED", "tea corn"),
        document(7, "TEST", ""),
    ]
    assert wire("train", *documents) == [{"id": "1", "text": "A <B> S\u00e3o - It is.", "labels": ["corn"]}]
    assert wire("test", *documents) == [{"id": "3", "text": "x", "labels": ["corn"]}]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (' NEWID="3"', "", r"reut2-001\.sgm, document 1: no NEWID"),
        ("</TEXT>", "", r"reut2-001\.sgm, document 1: no <TEXT>"),
        ("</REUTERS>", "", r"reut2-001\.sgm: 1 documents begin, but 0 end with </REUTERS>"),
    ],
)
def test_a_document_that_lacks_something_is_named(old, new, message, wire):
    with pytest.raises(DataError, match=message):
        wire(
            "test",
            document(1, "TRAIN", "corn"),
            document(2, "TRAIN", "corn"),
            document(3, "TEST", "corn").replace(old, new),
        )

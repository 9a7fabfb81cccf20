"""Files that unpack to gigabytes: refused at a stated limit, with no more memory than that limit
takes."""

from __future__ import annotations

import gzip
import io
import lzma
import tracemalloc
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from harness.data import word_vectors
from harness.errors import DataError, RecordError
from harness.files import MAX_UNPACKED_BYTES
from harness.records import Store
from harness.views.words import Vocabulary
from tasks.readers.archives import LARGEST_MEMBER, Archive
from tasks.readers.lines import LONGEST_LINE, lines
from tasks.readers.zhang import quoted
from tests.support.made_records import record

MIB = 1 << 20


def peak(read: Callable[[], object], error: type[Exception], message: str) -> int:
    """Bytes that ``read`` held at most before it refused its input."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=message):
            read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def gzip_bomb(path: Path, block: bytes, blocks: int) -> Path:
    """A gzip file of equal members, which readers take for one text; made without holding that
    text."""
    path.write_bytes(gzip.compress(block) * blocks)
    return path


@pytest.mark.parametrize("line", [b"\0" * 16 * MIB, (b"a" * 1023 + b"\n") * 16 * 1024], ids=["one line", "many lines"])
def test_a_text_of_gigabytes(tmp_path, line):
    """A corpus file of some kB that unpacks to 256 MiB, or terabytes, would have filled the memory
    of every worker."""
    path = gzip_bomb(tmp_path / "train.txt.gz", line, 16)
    used = peak(
        lambda: [None for _ in lines(path)],
        DataError,
        r"train\.txt\.gz, line \d+: more than [\d,]+ bytes in a line|may unpack to",
    )
    assert used < 3 * LONGEST_LINE


@pytest.mark.parametrize(
    "line", [b"\0" * 16 * MIB, (b'"1","' + b"a" * 1017 + b'"\n') * 16 * 1024], ids=["one line", "many lines"]
)
def test_a_table_of_gigabytes(tmp_path, line):
    """The tables of Amazon may be larger than other texts, but not by what a small file unpacks
    to."""
    path = gzip_bomb(tmp_path / "train.csv.gz", line, 16)
    used = peak(
        lambda: [None for _ in quoted(path, columns=2)],
        DataError,
        r"train\.csv\.gz, line \d+: more than [\d,]+ bytes in a line or [\d,]+ in all",
    )
    assert used < 3 * LONGEST_LINE


def test_vectors_of_gigabytes(tmp_path):
    path = gzip_bomb(tmp_path / "glove.txt.gz", b"9" * 16 * MIB, 128)
    used = peak(
        lambda: word_vectors.read_vectors(path, Vocabulary(["a"], [1])), DataError, r"glove\.txt\.gz:1: more than"
    )
    assert used < 32 * MIB


@pytest.fixture
def zip_bomb(tmp_path: Path) -> Path:
    """An archive of 1 MB with a member of 256 MiB."""
    path = tmp_path / "an4.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.wav", "w") as member,
    ):
        for _ in range(16):
            member.write(bytes(16 * MIB))
    return path


@pytest.mark.parametrize("stated", [None, 10], ids=["honest", "lying"])
def test_a_member_of_gigabytes(zip_bomb, stated):
    """The size that an archive states may be a lie: what is unpacked counts."""
    if stated:
        content = zip_bomb.read_bytes()
        zip_bomb.write_bytes(content.replace((256 * MIB).to_bytes(4, "little"), stated.to_bytes(4, "little")))
    with Archive(zip_bomb) as archive:
        assert peak(lambda: archive.read("x.wav"), DataError, "unpacks to more than|is damaged") < 3 * LARGEST_MEMBER


def test_many_members_are_counted_together(tmp_path, monkeypatch):
    """An archive whose members overlap unpacks to far more than any one of them."""
    monkeypatch.setattr("tasks.readers.archives.LARGEST_ARCHIVE", 2500)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(3):
            archive.writestr(str(number), bytes(1000))
    with Archive(path) as archive:
        archive.read("0"), archive.read("1")
        with pytest.raises(DataError, match=r"the member 2 unpacks to more than 500 bytes"):
            archive.read("2")


def test_links_strange_methods_and_doubled_names_are_refused_and_nothing_is_unpacked(tmp_path):
    """Members are read in place: an archive leaves no file behind, whatever its members are
    called."""
    link = zipfile.ZipInfo("recordings/7_a_0.wav")
    link.external_attr = 0o120777 << 16
    for member, method, complaint in (
        (link, zipfile.ZIP_STORED, "is a link"),
        (zipfile.ZipInfo("a"), zipfile.ZIP_LZMA, "compressed by method 14"),
        (zipfile.ZipInfo("..\\x"), zipfile.ZIP_STORED, "points outside"),
        (zipfile.ZipInfo("C:x"), zipfile.ZIP_STORED, "points outside"),
    ):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(member, b"/etc/passwd", method)
        path = tmp_path / "x.zip"
        path.write_bytes(buffer.getvalue())
        with pytest.raises(DataError, match=rf"x\.zip: .*{complaint}"):
            Archive(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"2")
    with pytest.raises(DataError, match="two members have one name"):
        Archive(path)
    assert list(tmp_path.iterdir()) == [path]


def test_predictions_and_outcomes_of_gigabytes(tmp_path):
    """A record from elsewhere comes with files of its own."""
    store, made = Store(tmp_path), record(score=0.5)
    zeros = bytes(MAX_UNPACKED_BYTES + MIB)
    for suffix, content, read in (
        (".predictions.json.xz", lzma.compress(zeros, preset=0), store.load_predictions),
        (".outcomes.json.gz", gzip.compress(zeros, 1), store.load_outcomes),
    ):
        path = store.path(made).with_suffix(suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        made.predictions = {"path": "x", "sha256": sha256(content).hexdigest()}
        assert peak(lambda read=read: read(made), RecordError, "unpacks to more than") < 3 * MAX_UNPACKED_BYTES

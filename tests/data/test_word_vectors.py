"""Word vectors from files, in the two text formats that people download."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import torch

from harness.data.word_vectors import read_vectors
from harness.errors import DataError
from harness.running import grid
from harness.views.words import Vocabulary

GLOVE = "the 0.1 0.2 0.3\nfilm -1 2e-1 3.5\n, 1 1 1\n"


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary(["film", "zyzzyva", "the"], [3, 2, 1])


def write(folder: Path, text: str, name: str = "vectors.txt") -> Path:
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return file


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (GLOVE, "glove.txt"),
        ("3 3\n" + GLOVE, "word2vec.txt"),
        (GLOVE, "glove.txt.gz"),
        (GLOVE.replace("\n", " \n"), "trailing_space.txt"),
    ],
)
def test_known_words_get_the_files_vectors(tmp_path, vocabulary, text, name):
    """Row 0 is padding, row 1 unknown, then the vocabulary in its own order, whatever the
    file's."""
    table, known = read_vectors(write(tmp_path, text, name), vocabulary)
    assert (tuple(table.shape), known, table.dtype) == ((5, 3), 2, torch.float32)
    assert torch.equal(table[2], torch.tensor([-1, 0.2, 3.5])) and torch.equal(table[4], torch.tensor([0.1, 0.2, 0.3]))
    assert torch.equal(table[0], torch.zeros(3))


def test_a_word_may_have_blanks_in_it(tmp_path, vocabulary):
    """GloVe's file of 840 billion words has a few: it is the one that most papers name."""
    text = GLOVE + ". . . 7 7 7\nat name@domain.com 8 8 8\nzyzzyva 4 5 6\n"
    table, known = read_vectors(write(tmp_path, text), vocabulary)
    assert known == 3 and table[3].tolist() == [4, 5, 6]
    table, known = read_vectors(write(tmp_path, text), Vocabulary(["at", "name@domain.com", ". . ."], [1] * 3))
    assert known == 1 and table[4].tolist() == [7, 7, 7], "a part of a word has not its vector"


def test_unknown_words_are_uniform_as_kim_has_them(tmp_path):
    """Vectors of another scale than the known ones would tell the model which words the file
    lacks."""
    table, known = read_vectors(write(tmp_path, "the 1 2 3 4\n"), Vocabulary([f"w{i}" for i in range(500)], [1] * 500))
    unknown = table[1:]
    assert known == 0
    assert 0.24 < unknown.abs().max() <= 0.25
    assert abs(unknown.mean()) < 0.02 and abs(unknown.std() - 0.5 / 12**0.5) < 0.01


def test_vectors_that_are_missing_follow_the_seed(tmp_path, vocabulary):
    file = write(tmp_path, GLOVE)
    tables = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        tables.append(read_vectors(file, vocabulary)[0])
    assert torch.equal(tables[0], tables[1]) and not torch.equal(tables[0], tables[2])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("the 1 2 3\nfilm 1 2\n", 2, "2 values, .* 3"),
        ("2 3\nthe 1 2 3\nfilm 1 2 3 4\n", 3, "4 values, .* 3"),
        ("the 1 2 3\nfilm 1 x 3\n", 2, "x"),
        ("the 1 2 3\nno film 0 1 2 3\n", 2, "5 values, .* 3"),
        ("the 1 2 3\nfilm  1 2 3\n", 2, "4 values, .* 3"),
    ],
)
def test_a_line_that_is_not_like_the_others_is_named(tmp_path, vocabulary, text, line, message):
    file = write(tmp_path, text)
    with pytest.raises(DataError, match=message) as error:
        read_vectors(file, vocabulary)
    assert f"{file}:{line}" in str(error.value)


@pytest.mark.parametrize("content", [b"", b"3 3\n"])
def test_a_file_without_vectors_is_named(tmp_path, vocabulary, content):
    file = tmp_path / "empty.txt"
    file.write_bytes(content)
    with pytest.raises(DataError, match=str(file)):
        read_vectors(file, vocabulary)


def test_another_encoding_is_named(tmp_path, vocabulary):
    """word2vec files of other languages come in their own encodings."""
    file = tmp_path / "latin.txt"
    file.write_bytes("the 1 2 3\ncaf\xe9 1 2 3\n".encode("latin-1"))
    with pytest.raises(DataError, match=str(file)):
        read_vectors(file, vocabulary)


def test_an_archive_that_was_cut_off_is_named(tmp_path, vocabulary):
    file = tmp_path / "cut.txt.gz"
    file.write_bytes(gzip.compress((GLOVE * 1000).encode())[:-20])
    with pytest.raises(DataError, match=str(file)):
        read_vectors(file, vocabulary)


def test_a_compressed_file_can_be_given_on_the_command_line(tmp_path):
    """What the reader reads, --vectors must not refuse."""
    described = grid._described(write(tmp_path, GLOVE, "glove.txt.gz"))
    assert (described["file"], described["dims"]) == ("glove.txt.gz", 3)

"""The taxonomy of files as WordNet's."""

from __future__ import annotations

from pathlib import Path

import pytest

from architectures.blocks import taxonomy
from architectures.blocks.taxonomy import Taxonomy, digest, folder, toy, wordnet
from harness.errors import DataError, MissingWeights

DATA = """  1 This is a licence.
00000001 03 n 01 entity 0 001 ~ 00000002 n 0000 | all there is
00000002 05 n 02 animal 0 beast 0 002 @ 00000001 n 0000 ~ 00000003 n 0000 | it lives
00000003 05 n 01 dog 0 003 @ 00000002 n 0000 @ 00000004 n 0000 + 00000009 v 0101 | it barks
00000004 05 n 01 pet 0 001 @ 00000002 n 0000 | at home
00000005 18 n 01 Rex 0 001 @i 00000003 n 0000 | a dog | of ours
"""
INDEX = """  1 This is a licence.
animal n 1 2 @ ~ 1 0 00000002
dog n 2 1 @ 2 1 00000003 00000004
rex n 1 1 @i 1 0 00000005
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "data.noun").write_text(DATA)
    (tmp_path / "index.noun").write_text(INDEX)
    return tmp_path


@pytest.fixture
def known(files: Path) -> Taxonomy:
    return wordnet(files)


def test_senses_and_kinds_are_those_of_the_files(known):
    """Instances are kinds; what is derived from a verb is none, and a gloss is not read."""
    assert known.senses == {"animal": ("00000002",), "dog": ("00000003", "00000004"), "rex": ("00000005",)}
    assert known.kinds["00000003"] == ("00000002", "00000004")
    assert known.kinds["00000005"] == ("00000003",) and known.kinds["00000001"] == ()


@pytest.mark.parametrize(
    ("word", "senses"),
    [("dog", 2), ("Dogs", 2), ("animals", 1), ("cat", 0), ("s", 0), ("", 0)],
)
def test_a_plural_has_the_senses_of_its_singular(known, word, senses):
    assert len(known.of(word)) == senses


@pytest.mark.parametrize(
    ("plural", "singular"),
    [("classes", "class"), ("boxes", "box"), ("churches", "church"), ("women", "woman"), ("berries", "berry")],
)
def test_plurals_of_all_kinds_are_understood(plural, singular):
    assert Taxonomy({singular: ("a",)}, {}).of(plural) == ("a",)


def test_kinds_are_met_once_by_their_nearest_way(known):
    """A dog is an animal by itself and as a pet."""
    assert list(known.above("00000003", 1)) == [("00000002", 1), ("00000004", 1)]
    assert list(known.above("00000003", 5)) == [("00000002", 1), ("00000004", 1), ("00000001", 2)]
    assert list(known.above("00000005", 2)) == [("00000003", 1), ("00000002", 2), ("00000004", 2)]


def test_words_of_one_sort_in_the_toy_share_what_they_are():
    """Also those that generated training texts never show."""
    made = toy()
    (militia,), (troops,) = made.of("militia"), made.of("troops")
    assert list(made.above(militia, 3)) == list(made.above(troops, 3)) == [("soldier", 1)]


def test_the_folder_is_that_of_wordnets_own_variable(files, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(files))
    assert folder() == files and len(digest(files)) == 64
    monkeypatch.setenv("WNSEARCHDIR", str(files / "nowhere"))
    monkeypatch.setattr(taxonomy, "PLACES", ())
    with pytest.raises(MissingWeights, match=r"nowhere: install it \(on Debian .*wordnet-base\).*WNSEARCHDIR"):
        folder()


def test_a_file_of_another_form_is_told(tmp_path):
    (tmp_path / "data.noun").write_text(DATA + "oops\n")
    with pytest.raises(DataError, match=r"data\.noun, line 7: 1 fields"):
        wordnet(tmp_path)

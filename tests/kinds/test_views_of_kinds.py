"""Which view a class reads by: its own where it names one, or else the usual one of its kind."""

from __future__ import annotations

from typing import ClassVar

import pytest

from harness.kinds import CopyingGenerator, Generator, SequenceEncoder
from harness.views.frames import Frames
from harness.views.words import Words

KINDS = (SequenceEncoder, Generator, CopyingGenerator)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_names_no_view_reads_words_and_where_it_can_frames(kind):
    assert kind.reads("text", {}) == Words()
    assert kind.reads("audio", {}) == (None if kind is CopyingGenerator else Frames())
    assert kind.reads("tree", {}) is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_view_of_a_class_and_its_settings_are_read(kind):
    """An author who asks for capitals and long texts would train on others without a word."""

    class Mine(kind):
        view = Words(lower=False)
        view_settings: ClassVar = {"max_length": "longest"}

    assert Mine.reads("text", {"longest": 1000}) == Words(lower=False, max_length=1000)
    assert Mine.reads("text", {}) == Words(lower=False)
    assert Mine.reads("audio", {}) == kind.reads("audio", {})


@pytest.mark.parametrize("kind", [SequenceEncoder, Generator])
def test_a_view_of_recordings_is_none_of_texts(kind):
    """A class that only says how it hears reads texts as others do."""

    class Mine(kind):
        view = Frames(deltas=2)

    assert Mine.reads("audio", {}) == Frames(deltas=2) and Mine.reads("text", {}) == Words()

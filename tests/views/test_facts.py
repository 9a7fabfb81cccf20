"""What memory networks read: the newest facts, word by word, each in its own row."""

from __future__ import annotations

import numpy as np

from harness.views.facts import Facts
from harness.views.words import UNKNOWN

STORY = ["Joe went out.", "Joe slept."]


def fitted(**options) -> Facts:
    view = Facts(min_count=1, **options)
    view.fit([STORY, ["Who slept?"]])
    return view


def test_facts_of_a_batch_stand_in_rows_of_their_own():
    view = fitted()
    batch = view.collate(view.encode([STORY, ["Who?"]]), np.array([1, 0]))
    joe, went, out, slept, who, stop, asks = view.vocabulary.ids(["joe", "went", "out", "slept", "who", ".", "?"])
    assert batch.ids.tolist() == [[[who, asks, 0, 0], [0] * 4], [[joe, went, out, stop], [joe, slept, stop, 0]]]
    assert batch.mask.tolist() == (batch.ids > 0).tolist()
    assert batch.fact_mask.tolist() == [[True, False], [True, True]]


def test_the_newest_facts_are_kept():
    """The end of a long story is what most questions ask for."""
    view = fitted(most=1)
    assert view.read(STORY) == [["joe", "slept", "."]]
    assert view.lengths(view.encode([STORY])).tolist() == [3]


def test_a_story_without_facts_has_one_unknown_word():
    view = fitted()
    assert view.collate(view.encode([[], [""]]), np.array([0, 1])).ids.tolist() == [[[UNKNOWN]], [[UNKNOWN]]]


def test_a_view_restored_from_its_state_reads_alike():
    view, other = fitted(), Facts(min_count=1)
    other.restore(view.state())
    assert (
        other.encode([STORY])["ids"].values.tolist() == view.encode([STORY])["ids"].values.tolist()
        and other.width == view.width
    )

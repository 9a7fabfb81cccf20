"""The choice of training rows, which all architectures and seeds must have alike."""

from __future__ import annotations

import time

import datasets
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.data.loaded_rows import chosen


def by_plain_loops(groups: list[str], most: int, seed: int) -> list[int]:
    """Whole questions in a random order, as many as fit, at least one."""
    order = np.random.default_rng(seed).permutation(np.unique(groups)).tolist()
    taken = order[:1]
    for name in order[1:]:
        if sum(map([*taken, name].count, groups)) > most:
            break
        taken.append(name)
    return [place for place, group in enumerate(groups) if group in taken]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60), st.integers(1, 70), st.integers(0, 3))
def test_whole_questions_are_chosen(groups: list[str], most: int, seed: int):
    """Records of WikiQA hold the digest of the chosen rows: another choice would be other data."""
    found = chosen(datasets.Dataset.from_dict({"group": groups}), most, seed)
    assert found.tolist() == by_plain_loops(groups, most, seed)


def test_a_corpus_of_many_questions_is_chosen_from_in_no_time():
    """Each cell chooses anew: to compare every row with every question took ten seconds here."""
    rows = datasets.Dataset.from_dict({"group": [f"question {n // 3}" for n in range(60_000)]})
    begun = time.process_time()
    assert len(chosen(rows, 30_000, 0)) == 30_000
    assert time.process_time() - begun < 3

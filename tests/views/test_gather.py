"""The two gathers behind flat and nested batches, against plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ragged import Ragged, pad_nested, take

NESTED = st.lists(st.lists(st.lists(st.integers(1, 99), max_size=4), max_size=4), min_size=1, max_size=6)


@settings(max_examples=60)
@given(NESTED, st.data())
def test_nested_rows_are_padded_as_loops_would(texts, data):
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=5))
    units = Ragged.of([u for group in text for u in group] for text in texts)
    padded, mask, groups = pad_nested(
        units, Ragged.of([len(group) for group in text] for text in texts), np.array(rows)
    )
    most = max(1, max(len(texts[i]) for i in rows))
    largest = max(1, max((len(group) for i in rows for group in texts[i]), default=0))
    filled = [texts[i] + [[]] * (most - len(texts[i])) for i in rows]
    assert padded.tolist() == [[group + [0] * (largest - len(group)) for group in text] for text in filled]
    assert mask.tolist() == [[[t < len(group) for t in range(largest)] for group in text] for text in filled]
    assert groups.tolist() == [len(texts[i]) for i in rows]


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=8), st.data())
def test_taken_rows_follow_each_other(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=6))
    taken = take(Ragged.of(rows), np.array(chosen))
    assert [taken[i].tolist() for i in range(len(chosen))] == [rows[i] for i in chosen]
    assert len(taken.values) == sum(len(rows[i]) for i in chosen)

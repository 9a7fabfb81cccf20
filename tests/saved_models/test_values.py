"""What a fitted system learnt is the same after it was written as JSON and arrays."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from harness.saved_models.values import packed, unpacked

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=9)
KEYS = st.text() | st.integers() | st.tuples(st.booleans(), st.text())
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.frozensets(st.text(), max_size=4)
    ),
    max_leaves=12,
)


def again(value: Any) -> Any:
    """The value as a file gives it back."""
    arrays: dict[str, torch.Tensor] = {}
    return unpacked(json.loads(json.dumps(packed(value, arrays), allow_nan=False)), arrays)


@given(VALUES)
def test_plain_values_come_back(value: Any) -> None:
    assert again(value) == value


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.zeros((0, 4), np.int32), np.array(True), np.array(["a", "bb"]),
     np.array(["a", "bb"], dtype=object), np.float32([math.inf, 1])],
    ids=str,
)  # fmt: skip
def test_arrays_come_back(array: np.ndarray) -> None:
    found = again(array)
    assert found.dtype == array.dtype and found.shape == array.shape
    assert (found == array).all()


def test_types_that_a_system_relies_on_come_back() -> None:
    """A counter answers 0 for what it never saw, and knows its total."""
    counter = again({"pos": Counter(a=2, b=1)})["pos"]
    assert counter["never"] == 0 and counter.total() == 3
    assert again(defaultdict(list, {"a": [1]})) == {"a": [1]}
    assert math.isnan(again(math.nan)) and again(-math.inf) == -math.inf
    assert torch.equal(again(torch.arange(3)), torch.arange(3))
    matrix = sparse.csr_array(np.eye(3))
    assert (again(matrix) != matrix).nnz == 0


def test_many_like_arrays_are_one() -> None:
    """A tagger has an array for each word, and each name takes room in the file."""
    arrays: dict[str, torch.Tensor] = {}
    found = {f"word {n}": np.full(4, n) for n in range(100)}
    packed(found, arrays)
    assert len(arrays) == 1
    assert all((again(found)[word] == value).all() for word, value in found.items())


@pytest.mark.parametrize("value", [object(), len, {"a": [print]}, np.array([object()]), 1j], ids=range(5))
def test_what_cannot_be_kept_is_named(value: Any) -> None:
    with pytest.raises(TypeError, match="^what.*is an?"):
        packed(value, {}, "what")


@pytest.mark.parametrize("value", [{"array": "no such"}, {"tuple": 3}, {"dict": [1]}, {"texts": 3, "object": 0}, {}])
def test_what_was_never_written_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="kept value|not as it was written"):
        unpacked(value, {})

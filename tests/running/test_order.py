"""Shards: a grid on several machines is the grid."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.running.order import in_shard, parse_shard
from tests.support.made_records import record


def cells(count: int):
    return [record(seed=seed).cell for seed in range(count)]


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_shards_are_disjoint_and_complete(n):
    """A cell in no shard is never run; one in two is paid for twice."""
    for cell in cells(200):
        assert sum(in_shard(cell, (i, n)) for i in range(n)) == 1


def test_shards_are_of_similar_size_and_do_not_depend_on_other_cells():
    """A machine that starts later, when some cells are finished, must still take its own part."""
    many = cells(400)
    sizes = [sum(in_shard(cell, (i, 4)) for cell in many) for i in range(4)]
    assert min(sizes) > 70
    assert [in_shard(cell, (1, 4)) for cell in many[::2]] == [in_shard(cell, (1, 4)) for cell in many][::2]


@pytest.mark.parametrize("text", ["4/4", "0/0", "1", "-1/4", "a/b", "1/4/2", ""])
def test_a_shard_that_is_none_is_refused_with_what_is_right(text):
    with pytest.raises(UsageError, match=r"--shard .*expected i/n with i from 0 to n - 1"):
        parse_shard(text)
    assert parse_shard("3/4") == (3, 4)

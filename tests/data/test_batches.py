"""Wrong rows in a batch train a model on other texts' words without any error: these tests compare
with plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.data.batches import Batches, length_buckets
from harness.ragged import Ragged, mask_of

ROWS = st.lists(st.lists(st.integers(1, 99), max_size=7), min_size=1, max_size=9)


@settings(max_examples=60)
@given(ROWS, st.data())
def test_padding_is_what_a_loop_would_write(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=6))
    padded, lengths = Ragged.of(rows).pad(np.array(chosen), fill=-5)
    width = max(1, max(len(rows[i]) for i in chosen))
    assert padded.tolist() == [rows[i] + [-5] * (width - len(rows[i])) for i in chosen]
    assert lengths.tolist() == [len(rows[i]) for i in chosen]
    assert mask_of(lengths, width).tolist() == [[t < len(rows[i]) for t in range(width)] for i in chosen]


@settings(max_examples=30)
@given(ROWS)
def test_a_ragged_array_returns_the_rows_it_was_made_of(rows):
    ragged = Ragged.of(rows)
    assert len(ragged) == len(rows)
    assert [row.tolist() for row in map(ragged.__getitem__, range(len(rows)))] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]


def test_padding_keeps_further_dimensions():
    """A frame is a vector: padding must not flatten it."""
    frames = Ragged.of([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], np.float32)
    padded, _ = frames.pad(np.array([1, 0]))
    assert padded.tolist() == [[[3, 4], [5, 6]], [[1, 2], [0, 0]]]


def test_no_rows_and_a_least_width():
    assert len(Ragged.of([])) == 0
    padded, lengths = Ragged.of([[7]]).pad(np.array([0]), least=3)
    assert padded.tolist() == [[7, 0, 0]] and lengths.tolist() == [1]


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=200), st.integers(1, 17), st.one_of(st.none(), st.integers(0, 9))
)
def test_every_row_is_in_exactly_one_bucket(lengths, batch_size, seed):
    generator = None if seed is None else np.random.default_rng(seed)
    buckets = length_buckets(np.array(lengths), batch_size, generator)
    assert sorted(np.concatenate(buckets).tolist()) == list(range(len(lengths)))
    assert max(map(len, buckets)) <= batch_size


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=80), st.integers(1, 17), st.one_of(st.none(), st.integers(0, 9))
)
def test_groups_stay_whole(groups, batch_size, seed):
    """A listwise loss compares the candidates of one question: half of them would be another
    problem."""
    generator = None if seed is None else np.random.default_rng(seed)
    numbers = np.array(groups)
    buckets = length_buckets(np.ones(len(groups), dtype=int), batch_size, generator, numbers)
    assert sorted(np.concatenate(buckets).tolist()) == list(range(len(groups)))
    assert sum(len(set(numbers[b])) for b in buckets) == len(set(groups))
    assert all(len(b) <= batch_size or len(set(numbers[b])) == 1 for b in buckets)


def sst_like_lengths() -> np.ndarray:
    """Sentence lengths with SST's mean (19), spread (9) and long right tail."""
    return np.clip(np.random.default_rng(1).gamma(4.2, 4.6, size=6920).round(), 1, 52).astype(int)


@pytest.mark.parametrize("batch_size", [25, 64])
@pytest.mark.parametrize("seed", [None, 0])
def test_less_than_a_tenth_is_padding(batch_size, seed):
    lengths = sst_like_lengths()
    generator = None if seed is None else np.random.default_rng(seed)
    padded = sum(len(b) * lengths[b].max() for b in length_buckets(lengths, batch_size, generator))
    assert 1 - lengths.sum() / padded < 0.1


def pair_lengths(rows: int = 24000) -> np.ndarray:
    """Premises and hypotheses with SNLI's means (14 and 8 words), spreads and weak dependence."""
    generator = np.random.default_rng(2)
    premise = generator.gamma(5.5, 2.5, rows)
    return np.clip(np.stack([premise, generator.gamma(7, 1.1, rows) + 0.05 * premise], axis=1).round(), 1, 80).astype(
        int
    )


def test_less_than_8_percent_is_padding_in_pairs_whose_sides_are_padded_each_for_itself():
    """Sorted by the sum of both lengths, a third of SNLI's batches is padding: time that every
    matching architecture pays."""
    lengths = pair_lengths()

    def padding(batches: list[np.ndarray]) -> float:
        return 1 - lengths.sum() / sum(len(b) * lengths[b].max(0).sum() for b in batches)

    assert padding(length_buckets(lengths.sum(1), 64, np.random.default_rng(0))) > 0.25, "the corpus is too easy"
    assert padding(length_buckets(lengths, 64, np.random.default_rng(0))) < 0.08
    assert padding(length_buckets(lengths, 64, None)) < 0.08


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1000, 5000])
@pytest.mark.parametrize("seed", [None, 0])
def test_pairs_are_batched_once_each_and_only_as_many_batches_as_needed_are_short(rows, seed):
    generator = None if seed is None else np.random.default_rng(seed)
    batches = length_buckets(pair_lengths(rows), 64, generator)
    assert sorted(np.concatenate(batches).tolist()) == list(range(rows))
    assert max(map(len, batches)) <= 64 and sum(len(b) < 64 for b in batches) <= 1


@pytest.mark.parametrize("rows", [3000, 24000])
def test_pairs_meet_different_neighbours_in_each_epoch(rows):
    """Were a small corpus sorted as a whole, the same pairs would share a batch in nearly every
    epoch."""
    lengths = pair_lengths(rows)
    place = np.empty((2, rows), int)
    for epoch in range(2):
        for number, batch in enumerate(length_buckets(lengths, 64, np.random.default_rng(epoch))):
            place[epoch, batch] = number
    order = np.argsort(place[0] + np.random.default_rng(3).random(rows))
    left, right = order[:-1], order[1:]
    together = place[0, left] == place[0, right]
    assert (place[1, left] == place[1, right])[together].mean() < 0.35


def test_batches_are_not_always_in_the_order_of_length():
    """Short texts first in every epoch would be a curriculum nobody asked for."""
    lengths = sst_like_lengths()
    mean = [lengths[b].mean() for b in length_buckets(lengths, 64, np.random.default_rng(0))]
    assert abs(np.corrcoef(mean, np.arange(len(mean)))[0, 1]) < 0.3


def test_texts_meet_different_neighbours_in_each_epoch():
    """With the same texts in every batch, an epoch would only reorder the last one's gradients."""
    lengths = sst_like_lengths()
    together = [
        {frozenset(b.tolist()) for b in length_buckets(lengths, 64, np.random.default_rng(seed))} for seed in (0, 1)
    ]
    assert not together[0] & together[1]


def drawn(batches: Batches) -> list[list[int]]:
    return [rows.tolist() for rows in batches]


def test_a_resumed_epoch_sees_the_same_batches_and_the_next_epoch_others():
    lengths = sst_like_lengths()[:500]
    first, second = (Batches(lengths, 8, lambda rows: rows, seed=3) for _ in range(2))
    assert drawn(first) == drawn(second)
    before = drawn(first)
    first.epoch = 1
    assert drawn(first) != before
    second.epoch = 1
    assert drawn(first) == drawn(second)
    assert drawn(Batches(lengths, 8, lambda rows: rows, seed=4)) != before


def shared(world: int, seed: int, batch_size: int, groups: np.ndarray | None, rows: int) -> list[list[list[int]]]:
    """The batches of each process in one epoch."""
    shares = []
    for rank in range(world):
        batches = Batches(np.ones(rows, dtype=int), batch_size, lambda rows: rows, seed, groups)
        batches.rank, batches.world = rank, world
        shares.append(drawn(batches))
        assert len(batches) == len(shares[-1]) > 0
    return shares


@settings(max_examples=200)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=24), st.integers(1, 40), st.integers(2, 4), st.integers(0, 9))
def test_as_many_questions_as_processes_are_enough(sizes, batch_size, world, seed):
    """Which questions share a batch is chance: a training on two devices would end in one epoch of
    many, for want of examples that it has."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    if len(sizes) < world:
        with pytest.raises(ValueError, match=f"^{len(sizes)} training examples cannot be shared by {world} devices"):
            shared(world, seed, batch_size, groups, len(groups))
        return
    batches = [batch for share in shared(world, seed, batch_size, groups, len(groups)) for batch in share]
    assert sorted(row for batch in batches for row in batch) == list(range(len(groups)))
    assert sum(len(set(groups[batch])) for batch in batches) == len(sizes), "a question is in two batches"


def test_three_rows_in_batches_of_one_are_shared_by_two_processes():
    assert sorted(len(batch) for share in shared(2, 0, 1, None, 3) for batch in share) == [1, 2]


@pytest.mark.parametrize("world", [1, 2, 3])
def test_processes_share_the_batches_evenly(world):
    """Unequal counts would leave one process waiting for ever in the last all-reduce."""
    lengths = sst_like_lengths()[:100]
    shares = []
    for rank in range(world):
        batches = Batches(lengths, 8, lambda rows: rows, seed=0)
        batches.rank, batches.world = rank, world
        shares.append(drawn(batches))
        assert len(batches) == len(shares[-1]) == -(-13 // world)
    rows = [row for share in shares for batch in share for row in batch]
    assert len(rows) == len(set(rows))

"""Batches of texts of similar length, so that little of a batch is padding, while the order of the
batches and of the texts within a neighbourhood stays random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

NEIGHBOURHOOD = 50
"""Batches whose texts are sorted by length together: large enough that padding stays below 8 %,
small enough to stay random."""

PAIR_NEIGHBOURHOOD = 200
"""The same for pairs, which have two lengths to be alike in; at most half the corpus, or each epoch
would pair the same texts again."""


def length_buckets(
    lengths: np.ndarray, batch_size: int, generator: np.random.Generator | None, groups: np.ndarray | None = None
) -> list[np.ndarray]:
    """Row numbers of each batch. With a generator the order is random, otherwise by length (for
    prediction).

    ``lengths`` (rows,) are those of texts; (rows, 2) those of pairs whose sides are padded each for
    itself. ``groups`` (one number per row) keeps rows of one group in one batch: a listwise loss
    needs a question beside its candidates. The batch is then as many whole groups as fit, at least
    one.
    """
    if groups is not None:
        return _whole_groups(groups, batch_size, generator)
    if lengths.ndim == 1:
        alike, near = _alike, NEIGHBOURHOOD
    else:
        alike, near = _alike_pairs, min(PAIR_NEIGHBOURHOOD, -(-len(lengths) // (2 * batch_size)))
    if generator is None:
        return alike(np.arange(len(lengths)), lengths, batch_size)
    order, span = generator.permutation(len(lengths)), near * batch_size
    batches = []
    for start in range(0, len(order), span):
        batches += alike(order[start : start + span], lengths, batch_size)
    return [batches[i] for i in generator.permutation(len(batches))]


def _alike(rows: np.ndarray, lengths: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Batches of rows of similar length."""
    rows = rows[np.argsort(lengths[rows], kind="stable")]
    return [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]


def _alike_pairs(rows: np.ndarray, lengths: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Batches of rows that are similar in both lengths: halved again and again, between batches,
    where one length differs most."""
    if len(rows) <= batch_size:
        return [rows]
    side = np.ptp(lengths[rows], axis=0).argmax()
    rows = rows[np.argsort(lengths[rows, side], kind="stable")]
    half = -(-len(rows) // (2 * batch_size)) * batch_size
    return _alike_pairs(rows[:half], lengths, batch_size) + _alike_pairs(rows[half:], lengths, batch_size)


def _whole_groups(groups: np.ndarray, batch_size: int, generator: np.random.Generator | None) -> list[np.ndarray]:
    numbers, inverse = np.unique(groups, return_inverse=True)
    members = np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))[:-1])
    order = range(len(numbers)) if generator is None else generator.permutation(len(numbers))
    batches: list[list[np.ndarray]] = [[]]
    for group in order:
        if batches[-1] and sum(map(len, batches[-1])) + len(members[group]) > batch_size:
            batches.append([])
        batches[-1].append(members[group])
    return [np.concatenate(batch) for batch in batches]


def of_all_lengths(batches: Sequence[np.ndarray], lengths: np.ndarray, count: int) -> list[np.ndarray]:
    """``count`` of the batches, or all where there are fewer, in equal distances from the one with
    the shortest texts to that with the longest: what is measured on them stands for all."""
    longest = [lengths[rows].max(0).sum() for rows in batches]
    order = np.argsort(longest, kind="stable")
    count = min(count, len(batches))
    return [batches[order[(2 * part + 1) * len(batches) // (2 * count)]] for part in range(count)]


class Batches:
    """Collated batches of one epoch after another; ``collate(rows)`` makes a batch from row
    numbers.

    Each epoch is shuffled from (seed, epoch), so that a resumed epoch sees the same batches. In
    distributed training process ``rank`` of ``world`` takes every world-th batch. All get equally
    many, as each step waits for all of them; where the batches do not divide, the last ones are
    dealt out anew, in smaller parts wherever these go round: an epoch has every row once.
    """

    def __init__(
        self, lengths: np.ndarray, batch_size: int, collate, seed: int | list[int], groups: np.ndarray | None = None
    ):
        self.lengths, self.batch_size, self.collate, self.seed, self.groups = lengths, batch_size, collate, seed, groups
        self.epoch, self.rank, self.world = 0, 0, 1

    def rows(self) -> list[np.ndarray]:
        """Row numbers of this process's batches in this epoch."""
        return self._buckets()[self.rank :: self.world]

    def _buckets(self) -> list[np.ndarray]:
        generator = np.random.default_rng([*np.atleast_1d(self.seed), self.epoch])
        return _divisible(
            length_buckets(self.lengths, self.batch_size, generator, self.groups), self.world, self.groups
        )

    def __len__(self) -> int:
        return len(self._buckets()) // self.world

    def __iter__(self) -> Iterator:
        return map(self.collate, self.rows())


class Streams:
    """Rows in their order as parallel streams: batch t has row t of each stream, and every row is
    read once.

    The rows are cut into ``batch_size`` streams for each of ``world`` processes, whose lengths
    differ by one at most. Those that end a step earlier are the last ones of each batch, so that
    states carried from batch to batch stay in their place. ``ValueError`` where the last step would
    leave a process without a row.
    """

    def __init__(self, rows: int, batch_size: int, rank: int = 0, world: int = 1):
        self.count, self.rank, self.world = rows, rank, world
        self.epoch = 0  # all are alike
        streams = min(rows, batch_size * world)
        while streams >= world and 0 < rows % streams < world:
            streams -= 1
        if streams < world:
            raise ValueError(f"{rows} training rows cannot be shared by {world} devices: use fewer (--devices)")
        self.streams = np.array_split(np.arange(rows), streams)[rank::world]

    def rows(self) -> list[np.ndarray]:
        """Row numbers of this process's batches."""
        return [np.array([s[t] for s in self.streams if t < len(s)]) for t in range(len(self))]

    def __len__(self) -> int:
        return len(self.streams[0])


def _divisible(batches: list[np.ndarray], world: int, groups: np.ndarray | None) -> list[np.ndarray]:
    """The batches with the last ones dealt out anew, so that their number divides by ``world``;
    whole groups stay together.

    ``ValueError`` when there are fewer rows (or groups) than processes.
    """
    over = len(batches) % world
    if not over:
        return batches
    # The last round may have too few rows to go round. Then the round before is shared out with it;
    # where both are too few for two rounds, they become one.
    for rounds, parts in ((1, world), (2, 2 * world), (2, world)):
        kept = max(0, len(batches) - over - (rounds - 1) * world)
        rows = np.concatenate(batches[kept:])
        starts = (
            np.arange(len(rows))
            if groups is None
            else np.flatnonzero(np.diff(groups[rows], prepend=groups[rows[0]] - 1))
        )
        if len(starts) >= parts:
            cuts = [part[0] for part in np.array_split(starts, parts)]
            return batches[:kept] + np.split(rows, cuts[1:])
    raise ValueError(f"{len(starts)} training examples cannot be shared by {world} devices: use fewer (--devices)")


def in_turn(streams: Sequence[Sequence[np.ndarray]], seed: Sequence[int]) -> list[tuple[np.ndarray | None, ...]]:
    """All batches of several streams in a random order, which the seed alone decides: processes
    read the same stream at the same step. Of each tuple all but one are None."""
    order = np.repeat(np.arange(len(streams)), [len(rows) for rows in streams])
    np.random.default_rng(seed).shuffle(order)
    following = [iter(rows) for rows in streams]
    return [tuple(next(rows) if n == turn else None for n, rows in enumerate(following)) for turn in order]

"""CTC decoding against enumeration of all paths and a plain dictionary version of the prefix
beam."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import pytest
import torch
from torch import Tensor

from harness.layers.ctc import best_path, prefix_beam_search


def collapse(path: tuple[int, ...]) -> tuple[int, ...]:
    """Merge repeats, then drop blanks."""
    return tuple(label for label, _ in itertools.groupby(path) if label != 0)


def summed_over_paths(log_probs: Tensor) -> dict[tuple[int, ...], float]:
    """Probability of every label sequence of (T,L) frame scores, over all L ** T paths."""
    probabilities = log_probs.double().exp().tolist()
    total: dict[tuple[int, ...], float] = defaultdict(float)
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(probabilities)):
        total[collapse(path)] += math.prod(frame[label] for frame, label in zip(probabilities, path, strict=True))
    return total


def log_add(a: float, b: float) -> float:
    if a == b:
        return a + math.log(2)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def dictionary_beam_search(log_probs: list[list[float]], beam: int, prune: float | None = None) -> list[int]:
    """The textbook version, a dictionary from prefix to (p_blank, p_nonblank), in log space."""
    beams = {(): [0.0, -math.inf]}
    for frame in log_probs:
        following: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [-math.inf, -math.inf])

        def add(prefix, place, score, following=following):
            following[prefix][place] = log_add(following[prefix][place], score)

        for prefix, (p_blank, p_label) in beams.items():
            add(prefix, 0, log_add(p_blank, p_label) + frame[0])
            if prefix:
                add(prefix, 1, p_label + frame[prefix[-1]])
        for prefix, (p_blank, p_label) in beams.items():
            for label in range(1, len(frame)):
                if prune is None or frame[label] >= prune:
                    origin = p_blank if prefix[-1:] == (label,) else log_add(p_blank, p_label)
                    add((*prefix, label), 1, origin + frame[label])
        beams = dict(sorted(following.items(), key=lambda item: -log_add(*item[1]))[:beam])
    return list(next(iter(beams)))


def random_log_probs(rows: int, frames: int, labels: int, sharpness: float = 1.0, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(rows, frames, labels, generator=generator) * sharpness).log_softmax(2)


def log_probs_of(*paths: list[int], labels: int) -> Tensor:
    """Frame scores whose best path is the given one."""
    return (torch.nn.functional.one_hot(torch.tensor(paths), labels) * 9.0).log_softmax(2)


def test_best_path_merges_repeats_before_it_drops_blanks():
    """Dropping blanks first would turn every doubled letter or digit into one."""
    paths = log_probs_of([1, 1, 0, 1, 2, 2], [0, 2, 2, 0, 0, 2], [0, 0, 0, 0, 0, 0], [3, 1, 3, 3, 1, 0], labels=4)
    assert best_path(paths, torch.tensor([6, 6, 6, 6])) == [[1, 1, 2], [2, 2], [], [3, 1, 3, 1]]


def test_best_path_reads_only_the_frames_of_its_row():
    """Frames of padding would append labels to the shorter recordings of a batch."""
    paths = log_probs_of([1, 2, 3, 3], [1, 2, 3, 3], [1, 2, 3, 3], labels=4)
    assert best_path(paths, torch.tensor([2, 4, 0])) == [[1, 2], [1, 2, 3], []]


def test_best_path_equals_collapsing_frame_by_frame():
    """The vectorised merge must agree with the definition on arbitrary scores."""
    log_probs, lengths = random_log_probs(20, 12, 3), torch.arange(20) % 13
    expected = [list(collapse(tuple(row[:n].argmax(1).tolist()))) for row, n in zip(log_probs, lengths, strict=True)]
    assert best_path(log_probs, lengths) == expected


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
@pytest.mark.parametrize("sharpness", [0.3, 2.0])
def test_wide_prefix_beam_finds_the_most_probable_sequence_of_all(frames, sharpness):
    """Summing wrong paths (a repeat without a blank, a prefix counted twice) would rank another
    sequence first."""
    log_probs = random_log_probs(30, frames, 3, sharpness, seed=frames)
    decoded = prefix_beam_search(log_probs, torch.full((30,), frames), beam=200)
    for row, found in zip(log_probs, decoded, strict=True):
        probabilities = summed_over_paths(row)
        assert tuple(found) == max(probabilities, key=probabilities.__getitem__)


def test_prefix_beam_can_differ_from_the_best_path():
    """The reason to search: blank blank is the best path (.36), yet the paths 1 1, 1 blank and
    blank 1 sum to .64 (Graves 2012)."""
    log_probs = torch.tensor([[[0.6, 0.4], [0.6, 0.4]]]).log()
    assert best_path(log_probs, torch.tensor([2])) == [[]]
    assert prefix_beam_search(log_probs, torch.tensor([2])) == [[1]]


def test_a_label_is_doubled_only_through_a_blank():
    """`s s - s` is "ss" and `s s s` is "s": extending with the last symbol moves from p_blank
    alone."""
    doubled, single = log_probs_of([1, 1, 0, 1], labels=2), log_probs_of([1, 1, 1, 1], labels=2)
    assert prefix_beam_search(torch.cat([doubled, single]), torch.tensor([4, 4])) == [[1, 1], [1]]


@pytest.mark.parametrize("beam", [1, 2, 5, 16])
@pytest.mark.parametrize("prune", [None, -2.5])
@pytest.mark.parametrize("labels", [3, 12])
def test_prefix_beam_equals_the_dictionary_version(beam, prune, labels):
    """The arrays must keep exactly the prefixes that the textbook keeps, also those that leave the
    beam and come back."""
    log_probs = torch.cat([random_log_probs(6, 25, labels, sharpness) for sharpness in (0.2, 1.0, 4.0)])
    lengths = torch.tensor([25, 1, 0, 13, 25, 7] * 3)
    expected = [
        dictionary_beam_search(row[:n].double().tolist(), beam, prune)
        for row, n in zip(log_probs, lengths, strict=True)
    ]
    assert prefix_beam_search(log_probs, lengths, beam, prune) == expected


def test_a_row_decodes_alike_alone_and_in_a_batch():
    """A transcript must not depend on which recordings share its batch, pruned columns included."""
    log_probs, lengths = random_log_probs(5, 20, 6, sharpness=2.0), torch.tensor([9, 20, 4, 20, 1])
    together = prefix_beam_search(log_probs, lengths, beam=4, prune=-3.0)
    assert together == [prefix_beam_search(log_probs[i : i + 1], lengths[i : i + 1], 4, -3.0)[0] for i in range(5)]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_impossible_labels_keep_places_of_the_beam_unused(share):
    """Probability 0 leaves a beam with fewer prefixes than places: what stood in such a place must
    not come back or count twice."""
    log_probs = random_log_probs(40, 8, 4)
    impossible = torch.rand(log_probs.shape, generator=torch.Generator().manual_seed(1)) < share
    impossible.scatter_(2, log_probs.argmin(2, keepdim=True), False)
    log_probs[impossible] = -torch.inf
    expected = [dictionary_beam_search(row.double().tolist(), 16) for row in log_probs]
    assert prefix_beam_search(log_probs, torch.full((40,), 8)) == expected


def test_a_prefix_that_died_and_came_back_still_adds_to_its_extension():
    """1 2 dies in the third frame and comes back in the fourth; only with its paths added is 1 2 3
    (.25) the best of all."""
    log_probs = torch.tensor([[[0, 1, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 0.9, 0.1], [0, 0, 0, 1]]]).log()
    probabilities = summed_over_paths(log_probs[0])
    assert max(probabilities, key=probabilities.__getitem__) == (1, 2, 3)
    assert prefix_beam_search(log_probs, torch.tensor([5])) == [[1, 2, 3]]


@pytest.mark.filterwarnings("error")
def test_a_row_without_numbers_does_not_stop_the_batch():
    """A model that diverged to NaN on one recording must not spoil or end the decoding of the
    others."""
    log_probs, lengths = random_log_probs(2, 4, 3), torch.tensor([4, 4])
    log_probs[0] = torch.nan
    assert prefix_beam_search(log_probs, lengths) == [[], *prefix_beam_search(log_probs[1:], lengths[1:])]


def test_an_empty_batch_has_no_sequences():
    """The last batch of a filtered split may be empty."""
    nothing, lengths = torch.zeros(0, 5, 3), torch.zeros(0, dtype=torch.long)
    assert best_path(nothing, lengths) == prefix_beam_search(nothing, lengths) == []


def test_a_beam_of_none_is_refused():
    """`--beam 0` would otherwise fail deep inside numpy."""
    with pytest.raises(ValueError, match="beam is 0"):
        prefix_beam_search(torch.zeros(1, 2, 3), torch.tensor([2]), beam=0)

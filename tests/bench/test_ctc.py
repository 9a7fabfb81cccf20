"""CTC prefix beam search beside the textbook's, a dictionary from prefix to probabilities: 32
recordings, beam 16.

100 frames and 28 labels (letters) are what a few seconds of speech have behind an encoder that
joins three or four frames of 10 ms.
"""

from __future__ import annotations

import math
from collections import defaultdict

import torch

from harness.layers.ctc import BLANK, prefix_beam_search

BEAM = 16
NOTHING = -math.inf


def log_add(a: float, b: float) -> float:
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == NOTHING else a + math.log1p(math.exp(b - a))


def dictionary_beam_search(frames: list[list[float]]) -> list[int]:
    """Hannun et al. 2014, algorithm 1, without a language model: each prefix has a score that ends
    in a blank and one that does not."""
    beam = {(): (0.0, NOTHING)}
    for frame in frames:
        following: dict[tuple[int, ...], tuple[float, float]] = defaultdict(lambda: (NOTHING, NOTHING))
        for prefix, (by_blank, by_label) in beam.items():
            either = log_add(by_blank, by_label)
            for label, score in enumerate(frame):
                if label == BLANK:
                    before, after = following[prefix]
                    following[prefix] = log_add(before, either + score), after
                    continue
                extended, repeats = (*prefix, label), prefix[-1:] == (label,)
                before, after = following[extended]
                following[extended] = before, log_add(after, (by_blank if repeats else either) + score)
                if repeats:
                    before, after = following[prefix]
                    following[prefix] = before, log_add(after, by_label + score)
        beam = dict(sorted(following.items(), key=lambda item: log_add(*item[1]), reverse=True)[:BEAM])
    return list(max(beam, key=lambda prefix: log_add(*beam[prefix])))


def test_prefix_beam_search(beside) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    log_probs = (3 * torch.randn(32, 100, 29)).log_softmax(2)
    lengths = torch.randint(50, 101, (32,))

    def ours() -> list[list[int]]:
        return prefix_beam_search(log_probs, lengths, BEAM)

    def theirs() -> list[list[int]]:
        return [
            dictionary_beam_search(row[:length])
            for row, length in zip(log_probs.tolist(), lengths.tolist(), strict=True)
        ]

    assert ours() == theirs()
    beside("CTC prefix beam search, batch 32, beam 16", "a dictionary of prefixes", 3.0, ours, theirs, rounds=3)

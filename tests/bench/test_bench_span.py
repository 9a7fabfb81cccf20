"""The best answer spans of 32 passages of 150 to 400 words, as SQuAD has them, beside a loop over starts and ends in Python."""

from __future__ import annotations

import torch

from harness.heads import LONGEST_ANSWER, best_spans

Span = tuple[int, int]


def double_loop(start: list[float], end: list[float]) -> Span:
    """First and last word of the best span of one passage, none longer than LONGEST_ANSWER."""
    best, span = -float("inf"), (0, 0)
    for first in range(len(start)):
        for last in range(first, min(first + LONGEST_ANSWER, len(end))):
            if start[first] + end[last] > best:
                best, span = start[first] + end[last], (first, last)
    return span


def test_best_spans(beside) -> None:
    """Both read tensors of scores, -inf in padding, and give lists; the loop runs over Python's own numbers, its fastest way."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    lengths = torch.randint(150, 401, (32,))
    lengths[0] = 400
    padding = torch.arange(400) >= lengths[:, None]
    start, end = (torch.randn(32, 400).masked_fill(padding, -torch.inf) for _ in range(2))

    def ours() -> list[Span]:
        first, last, _ = best_spans(start, end)
        return list(zip(first.tolist(), last.tolist(), strict=True))

    def theirs() -> list[Span]:
        rows = zip(start.tolist(), end.tolist(), lengths.tolist(), strict=True)
        return [double_loop(starts[:length], ends[:length]) for starts, ends, length in rows]

    assert ours() == theirs()
    beside("best spans, 32 passages of 150 to 400 words", "a double loop in Python", 50.0, ours, theirs, rounds=100)

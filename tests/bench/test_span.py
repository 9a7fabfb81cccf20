"""The best answer spans of batches of 32 passages of 150 to 400 words, as SQuAD has them, beside a
loop over starts and ends in Python."""

from __future__ import annotations

import torch

from harness.problems.extract import LONGEST_ANSWER, best_spans

Span = tuple[int, int]


def double_loop(start: list[float], end: list[float]) -> Span:
    """First and last word of the best span of one passage, none longer than LONGEST_ANSWER."""
    best, span = -float("inf"), (0, 0)
    for first in range(len(start)):
        for last in range(first, min(first + LONGEST_ANSWER, len(end))):
            if start[first] + end[last] > best:
                best, span = start[first] + end[last], (first, last)
    return span


def scores() -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """Start and end scores of 32 passages, -inf in padding, and their lengths."""
    lengths = torch.randint(150, 401, (32,))
    lengths[0] = 400
    padding = torch.arange(400) >= lengths[:, None]
    start, end = (torch.randn(32, 400).masked_fill(padding, -torch.inf) for _ in range(2))
    return start, end, lengths.tolist()


def test_best_spans(beside) -> None:
    """Both read tensors and give lists; the loop runs over Python's own numbers, its fastest way.
    One round is ten batches."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    batches = [scores() for _ in range(10)]

    def ours() -> list[Span]:
        found = (best_spans(start, end)[:2] for start, end, _ in batches)
        return [span for first, last in found for span in zip(first.tolist(), last.tolist(), strict=True)]

    def theirs() -> list[Span]:
        rows = (
            row for start, end, lengths in batches for row in zip(start.tolist(), end.tolist(), lengths, strict=True)
        )
        return [double_loop(start[:length], end[:length]) for start, end, length in rows]

    assert ours() == theirs()
    beside("best spans, 32 passages of 150 to 400 words", "a double loop in Python", 50.0, ours, theirs, rounds=20)

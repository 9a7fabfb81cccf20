"""Start-end searcher against its equations, with torch's own bidirectional LSTM as reference."""

from __future__ import annotations

import torch
from torch import Tensor

from architectures.reading.span_search import StartEndSearcher
from harness.problems.extract import ExtractSpan, SpanTarget
from harness.views.words import WordBatch
from tests.support.batches import random_texts, rows_alone
from tests.support.models import small
from tests.support.oracles import additive, recurrent, softmax_mean


def reader_and_texts() -> tuple[StartEndSearcher, WordBatch, WordBatch]:
    """A small reader, two passages and their questions."""
    return small(StartEndSearcher, 5, hidden=3, attention=4), random_texts((6, 3), 1, 5), random_texts((2, 4), 2, 5)


def by_hand(reader: StartEndSearcher, passage: Tensor, question: Tensor) -> tuple[Tensor, Tensor]:
    """Start and end scores (T,) of one unpadded example, position by position."""
    context, asked = (recurrent(reader.reading, text) for text in (passage, question))
    u = [torch.cat([h, softmax_mean([additive(reader.attention, h, s) for s in asked], asked)]) for h in context]
    m_b, m_e = recurrent(reader.starts, u), recurrent(reader.ends, u)
    start = torch.stack([reader.start.weight[0] @ torch.cat([a, b]) for a, b in zip(u, m_b, strict=True)])
    end = torch.stack([reader.end.weight[0] @ torch.cat([a, b]) for a, b in zip(u, m_e, strict=True)])
    return start, end


def test_scores_are_those_of_the_equations_for_each_passage_of_a_padded_batch():
    """Wrong attention, one m for start and end, or u left out of the scores: each gives other
    numbers."""
    reader, passages, questions = reader_and_texts()
    scores = reader(passages, questions)
    for row, pair in enumerate(rows_alone(passages, questions)):
        start, end = by_hand(reader, *pair)
        torch.testing.assert_close(scores.start[row, : len(start)], start)
        torch.testing.assert_close(scores.end[row, : len(end)], end)
    assert torch.isneginf(scores.start[1, 3:]).all() and torch.isneginf(scores.end[1, 3:]).all()


def test_loss_is_minus_log_p_of_start_and_of_end():
    reader, passages, questions = reader_and_texts()
    target = SpanTarget()
    target.unanswerable = False
    head = ExtractSpan(reader, target)
    scores = head(reader, {"passage": passages, "question": questions})
    start, end = scores.start.softmax(1), scores.end.softmax(1)
    expected = -(start[0, 1] * end[0, 4] * start[1, 2] * end[1, 2]).log() / 2
    torch.testing.assert_close(head.loss(reader, scores, torch.tensor([[1, 4], [2, 2]])), expected)

"""Start-end searcher against its equations, with torch's own bidirectional LSTM as reference."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from architectures.reading.span_search import StartEndSearcher
from harness.problems.extract import ExtractSpan, SpanTarget
from harness.views.words import WordBatch


def batch(vectors: Tensor, lengths: list[int]) -> WordBatch:
    mask = torch.arange(vectors.shape[1]) < torch.tensor(lengths)[:, None]
    return WordBatch(torch.zeros(mask.shape, dtype=torch.long), mask, torch.tensor(lengths), vectors)


def reference(recurrence: Recurrent) -> nn.LSTM:
    """torch's bidirectional LSTM with the weights of a one-layer :class:`Recurrent`."""
    forwards, backwards = recurrence.forwards[0], recurrence.backwards[0]
    lstm = nn.LSTM(forwards.input_size, forwards.hidden_size, bidirectional=True)
    lstm.load_state_dict(
        forwards.state_dict() | {f"{name}_reverse": weight for name, weight in backwards.state_dict().items()}
    )
    return lstm


def by_hand(reader: StartEndSearcher, passage: Tensor, question: Tensor) -> tuple[Tensor, Tensor]:
    """Start and end scores (T,) of one unpadded example, position by position."""
    context, asked = (reference(reader.reading)(text)[0] for text in (passage, question))
    attention = reader.attention
    rows = []
    for h in context:
        energies = [attention.score(torch.tanh(attention.query(h) + attention.key(s))) for s in asked]
        weights = torch.softmax(torch.cat(energies), 0)
        rows.append(torch.cat([h, sum(weight * s for weight, s in zip(weights, asked, strict=True))]))
    u = torch.stack(rows)
    m_b, m_e = reference(reader.starts)(u)[0], reference(reader.ends)(u)[0]
    start = torch.stack([reader.start.weight[0] @ torch.cat([a, b]) for a, b in zip(u, m_b, strict=True)])
    end = torch.stack([reader.end.weight[0] @ torch.cat([a, b]) for a, b in zip(u, m_e, strict=True)])
    return start, end


def test_scores_are_those_of_the_equations_for_each_passage_of_a_padded_batch():
    """Wrong attention, one m for start and end, or u left out of the scores: each gives other
    numbers."""
    torch.manual_seed(0)
    reader = StartEndSearcher(width=5, hidden=3, attention=4).eval()
    passages, questions = torch.randn(2, 6, 5), torch.randn(2, 4, 5)
    scores = reader(batch(passages, [6, 3]), batch(questions, [2, 4]))
    for row, (words, asked) in enumerate(((6, 2), (3, 4))):
        start, end = by_hand(reader, passages[row, :words], questions[row, :asked])
        torch.testing.assert_close(scores.start[row, :words], start)
        torch.testing.assert_close(scores.end[row, :words], end)
    assert torch.isneginf(scores.start[1, 3:]).all() and torch.isneginf(scores.end[1, 3:]).all()


def test_loss_is_minus_log_p_of_start_and_of_end():
    torch.manual_seed(0)
    reader = StartEndSearcher(width=5, hidden=3, attention=4).eval()
    target = SpanTarget()
    target.unanswerable = False
    head = ExtractSpan(reader, target)
    inputs = {"passage": batch(torch.randn(2, 6, 5), [6, 3]), "question": batch(torch.randn(2, 4, 5), [2, 4])}
    scores = head(reader, inputs)
    start, end = scores.start.softmax(1), scores.end.softmax(1)
    expected = -(start[0, 1] * end[0, 4] * start[1, 2] * end[1, 2]).log() / 2
    torch.testing.assert_close(head.loss(reader, scores, torch.tensor([[1, 4], [2, 2]])), expected)

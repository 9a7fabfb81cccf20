"""Start-end searcher against its equations, with torch's own bidirectional LSTM as reference."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from architectures.reading.span_search import StartEndSearcher
from harness.problems.extract import ExtractSpan, SpanTarget
from harness.views.words import WordBatch
from tests.support.batches import random_texts, rows_alone
from tests.support.oracles import additive, softmax_mean
from tests.support.pairs import bilstm, dropped, inputs_of, shipped
from tests.support.reading import answered, squad
from tests.support.same import assert_same


def reader_and_texts(width: int = 5, **sizes: int) -> tuple[StartEndSearcher, WordBatch, WordBatch]:
    """A small reader, two passages and their questions."""
    reader = shipped("span_search", width, **({"hidden": 3, "attention": 4} | sizes))
    return reader, random_texts((6, 3), 1, width), random_texts((2, 4), 2, width)


def by_hand(reader: StartEndSearcher, passage: Tensor, question: Tensor) -> tuple[Tensor, Tensor]:
    """Start and end scores (T,) of one unpadded example, position by position."""
    context, asked = (bilstm(reader.reading, text) for text in (passage, question))
    u = [torch.cat([h, softmax_mean([additive(reader.attention, h, s) for s in asked], asked)]) for h in context]
    m_b, m_e = bilstm(reader.starts, u), bilstm(reader.ends, u)
    start = torch.stack([reader.start.weight[0] @ torch.cat([a, b]) for a, b in zip(u, m_b, strict=True)])
    end = torch.stack([reader.end.weight[0] @ torch.cat([a, b]) for a, b in zip(u, m_e, strict=True)])
    return start, end


def test_scores_are_those_of_the_equations_for_each_passage_of_a_padded_batch():
    """Wrong attention, another cell or direction, one m for start and end, or u left out of the
    scores: each gives other numbers."""
    reader, passages, questions = reader_and_texts()
    scores = reader(passages, questions)
    for row, pair in enumerate(rows_alone(passages, questions)):
        start, end = by_hand(reader, *pair)
        assert_same(scores.start[row, : len(start)], start)
        assert_same(scores.end[row, : len(end)], end)
    assert torch.isneginf(scores.start[1, 3:]).all() and torch.isneginf(scores.end[1, 3:]).all()


def test_loss_is_minus_log_p_of_start_and_of_end():
    reader, passages, questions = reader_and_texts()
    target = SpanTarget()
    target.unanswerable = False
    head = ExtractSpan(reader, target)
    scores = head(reader, {"passage": passages, "question": questions})
    start, end = scores.start.softmax(1), scores.end.softmax(1)
    expected = -(start[0, 1] * end[0, 4] * start[1, 2] * end[1, 2]).log() / 2
    assert_same(head.loss(reader, scores, torch.tensor([[1, 4], [2, 2]])), expected)


DROPPED = {
    "words": (lambda reader: reader.reading, slice(None)),
    "u before the start's LSTM": (lambda reader: reader.starts, slice(None)),
    "u before the end's LSTM": (lambda reader: reader.ends, slice(None)),
    "u in the score of the start": (lambda reader: reader.start, slice(0, 160)),
    "u in the score of the end": (lambda reader: reader.end, slice(0, 160)),
    "states in the score of the start": (lambda reader: reader.start, slice(160, 240)),
    "states in the score of the end": (lambda reader: reader.end, slice(160, 240)),
}
"""The layer that reads what dropout acts on, and the features."""


@pytest.mark.parametrize("place", DROPPED)
def test_a_fifth_of_what_each_layer_reads_is_dropped_in_training(place):
    """Both texts are dropped before they are read, and so is what stands below the last layers."""
    layer, features = DROPPED[place]
    reader, passages, questions = reader_and_texts(width=40, hidden=40)
    [seen] = inputs_of(layer(reader))
    reader(passages, questions)
    calls = len(seen)
    reader.train()(passages, questions)
    for given, read in zip(seen[:calls], seen[calls:], strict=True):
        assert 0.1 < dropped([given[..., features]], [read[..., features]]) < 0.3


def test_one_learned_number_stands_against_all_spans_on_mini_squad2():
    """The textbook has no score for "no answer"; that of the head is learnt and decides."""
    model, corpus = squad("squad2", "span_search")
    model.loss(corpus.train.collate(torch.arange(12).numpy())).backward()
    assert model.head.no_answer.grad.any()
    for number, expected in ((50.0, False), (-50.0, True)):
        nn.init.constant_(model.head.no_answer, number)
        assert answered(model, corpus) == [expected] * 12

"""BiDAF against its equations word by word, with torch's own bidirectional LSTMs as reference."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.blocks.bi_attention import BiAttention
from architectures.reading.bidaf import BiDAF
from harness import registry
from harness.views.words_and_characters import WordCharacterBatch
from tests.support.batches import mask_of
from tests.support.models import small
from tests.support.oracles import recurrent
from tests.support.pairs import bilstm, dropped, inputs_of
from tests.support.reading import answered, bi_attended, reader_and_texts, spelt, squad
from tests.support.same import assert_same

small_reader = partial(reader_and_texts, "bidaf", hidden=3, character_size=4, filters=3, window=3)


def highway(reader: BiDAF, x: Tensor) -> Tensor:
    """Two layers g * relu(W x) + (1 - g) * x."""
    for number in range(2):
        transform, gate = reader.highway.transforms[number], reader.highway.gates[number]
        g = torch.sigmoid(gate.weight @ x + gate.bias)
        x = g * torch.relu(transform.weight @ x + transform.bias) + (1 - g) * x
    return x


def by_hand(
    reader: BiDAF, passage: WordCharacterBatch, question: WordCharacterBatch, row: int
) -> tuple[Tensor, Tensor]:
    """Start and end scores (T,) of one example without its padding."""
    texts = []
    for text in (passage, question):
        from_characters = spelt(reader.spelling, text, row)
        words = [highway(reader, torch.cat([text.vectors[row, t], c])) for t, c in enumerate(from_characters)]
        texts.append(bilstm(reader.contextual, words))
    g = bi_attended(reader.attention, *texts)
    m = recurrent(reader.modelling, g)
    last = bilstm(reader.ending, m)
    start = torch.stack([reader.start.weight[0] @ torch.cat(pair) for pair in zip(g, m, strict=True)])
    end = torch.stack([reader.end.weight[0] @ torch.cat(pair) for pair in zip(g, last, strict=True)])
    return start, end


def test_a_padded_batch_is_each_example_written_out_word_by_word():
    """Another character network, highway, similarity or softmax axis, another cell or direction,
    one M for both scores, attention to padding: each gives other numbers."""
    reader, passages, questions = small_reader()
    scores = reader(passages, questions)
    for row, length in enumerate(passages.lengths.tolist()):
        start, end = by_hand(reader, passages, questions, row)
        assert_same(scores.start[row, :length], start, rtol=1e-4, atol=1e-5)
        assert_same(scores.end[row, :length], end, rtol=1e-4, atol=1e-5)
        assert scores.start[row, length:].isneginf().all() and scores.end[row, length:].isneginf().all()


def test_the_attended_passage_is_one_vector_for_all_positions():
    """Query-to-context attention asks which passage words matter to ANY question word: h * h~ has
    one h~ per example."""
    h, u = torch.randn(2, 7, 6), torch.randn(2, 4, 6)
    joined = small(BiAttention, 6)(h, mask_of([7, 7]), u, mask_of([4, 4]))
    attended = joined[..., 18:] / h
    assert_same(attended, attended[:, :1].expand_as(attended), rtol=1e-3, atol=1e-4)
    assert not torch.allclose(attended[0], attended[1], atol=0.1)


DROPPED = {
    "characters": lambda reader: reader.spelling.convolution,
    "words": lambda reader: reader.contextual.forwards[0],
    "G": lambda reader: reader.modelling.forwards[0],
    "between the modelling layers": lambda reader: reader.modelling.forwards[1],
    "M": lambda reader: reader.ending.forwards[0],
    "what start is scored by": lambda reader: reader.start,
    "what end is scored by": lambda reader: reader.end,
}
"""The layer that reads what dropout acts on."""


@pytest.mark.parametrize("place", DROPPED)
def test_a_fifth_of_what_each_layer_reads_is_dropped_in_training(place):
    """The paper drops before the character network, every LSTM layer and both scores; without it
    the reader over-fits."""
    reader, passages, questions = small_reader(hidden=40, character_size=40, filters=40)
    [seen] = inputs_of(DROPPED[place](reader))
    reader(passages, questions)
    calls = len(seen)
    reader.train()(passages, questions)
    assert 0.15 < dropped(seen[:calls], seen[calls:]) < 0.25


def test_given_word_vectors_stay_as_they_are_and_random_ones_are_trained():
    """The paper's GloVe vectors are not tuned; noise that is never tuned would tell nothing."""
    for vectors, trained in ((7.0, False), (None, True)):
        model, _ = squad("squad1", "bidaf", vectors)
        assert model.table.tuned.weight.requires_grad is trained


def test_a_word_has_sixteen_characters():
    """A longer word is read by its first ones alone."""
    view = registry.load(registry.entry("architectures", "bidaf")).view
    assert view.word_length == 16


def test_one_learned_number_stands_against_all_spans_on_mini_squad2():
    """The paper has no score for "no answer"; that of the head is learnt and decides."""
    model, corpus = squad("squad2", "bidaf")
    model.loss(corpus.train.collate(torch.arange(12).numpy())).backward()
    assert model.head.no_answer.grad.any()
    for number, expected in ((50.0, False), (-50.0, True)):
        nn.init.constant_(model.head.no_answer, number)
        assert answered(model, corpus) == [expected] * 12

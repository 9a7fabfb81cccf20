"""The mechanism of the paragraph reader: what each passage word sees of the question, and one
vector of the question that start and end are scored against."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from architectures.blocks.match_features import match_features
from architectures.reading.drqa_reader import ParagraphReader, StackedStates
from harness.views.words import WordBatch
from tests.support.batches import random_texts
from tests.support.models import small
from tests.support.oracles import Vectors, softmax_mean
from tests.support.pairs import bilstm, dense, inputs_of
from tests.support.reading import answered, squad
from tests.support.same import assert_same

WIDTH = 4
PASSAGES = (["the", "cat", "saw", "the", "the", "dog"], ["ben", "ran"], ["no"])
QUESTIONS = (["who", "saw", "the", "dog"], ["ran"], ["who", "is", "it"])


def batch_of(texts: tuple[list[str], ...], seed: int) -> WordBatch:
    """Texts with random vectors, one for each position, and spellings by their words."""
    words = sorted({word for text in (*PASSAGES, *QUESTIONS) for word in text})
    batch = random_texts([len(text) for text in texts], seed, WIDTH)
    spellings = torch.zeros_like(batch.ids)
    for row, text in zip(spellings, texts, strict=True):
        row[: len(text)] = torch.tensor([words.index(word) + 1 for word in text])
    return batch._replace(spellings=spellings)


def reader_of(**settings) -> ParagraphReader:
    return small(ParagraphReader, WIDTH, **{"hidden": 3, "layers": 2, "stretch": 2.0} | settings)


def stacked(layers: StackedStates, vectors: Vectors) -> Tensor:
    """States of all layers of one text, side by side."""
    states = [torch.stack(list(vectors))]
    for layer in layers.layers:
        states.append(bilstm(layer, states[-1]))
    return torch.cat(states[1:], dim=1)


def by_hand(reader: ParagraphReader, row: int, passage: Tensor, question: Tensor) -> tuple[Tensor, Tensor]:
    """Start and end scores of one example without its padding."""
    project = reader.align.projection
    words = []
    for word, vector in zip(PASSAGES[row], passage, strict=True):
        scores = [dense(project, vector).clamp(min=0) @ dense(project, asked).clamp(min=0) for asked in question]
        aligned = softmax_mean(scores, question)
        match = float(word in QUESTIONS[row])
        frequency = PASSAGES[row].count(word) / len(PASSAGES[row])
        words.append(torch.cat([vector, aligned, torch.tensor([match, frequency])]))
    states, asked = stacked(reader.passage, words), stacked(reader.question, question)
    summary = softmax_mean([dense(reader.importance, q)[0] for q in asked], asked)
    return states @ dense(reader.start, summary), states @ dense(reader.end, summary)


def test_each_example_of_a_batch_is_the_example_alone_by_the_papers_equations():
    """An alignment by other scores, a missing feature, states of the last layer alone, a mean for
    the weighted sum, or padding that is read would each give other scores."""
    reader, passages, questions = reader_of(), batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2)
    found = reader(passages, questions)
    for row, (passage, question) in enumerate(zip(PASSAGES, QUESTIONS, strict=True)):
        n, m = len(passage), len(question)
        expected = by_hand(reader, row, passages.vectors[row, :n], questions.vectors[row, :m])
        for scores, value in zip((found.start, found.end), expected, strict=True):
            assert_same(scores[row, :n], value, atol=1e-4, rtol=1e-4)
            assert (scores[row, n:] == -torch.inf).all()


def test_the_features_of_a_passage_by_hand():
    """The stands in three of six words, and in the question; cat in one, and not."""
    features = match_features(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    assert features[0].tolist() == [
        [1.0, 0.5], [0.0, pytest.approx(1 / 6)], [1.0, pytest.approx(1 / 6)],
        [1.0, 0.5], [1.0, 0.5], [1.0, pytest.approx(1 / 6)],
    ]  # fmt: skip
    assert not features[1, 2:].any(), "padding is no word of the passage"


def test_dropout_acts_on_vectors_on_what_each_layer_reads_and_on_the_states():
    reader = ParagraphReader(WIDTH, hidden=3, dropout=1.0).train()
    layers = [*reader.passage.layers, *reader.question.layers]
    scored = reader.importance, reader.start  # what the question is summed by, and what is asked with the sum
    seen = inputs_of(*(layer.forwards[0] for layer in layers), reader.align.projection, *scored)
    reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    assert len(layers) == 6 and not any(one.any() for inputs in seen for one in inputs)
    reader.passage.dropout.p = reader.question.dropout.p = 0.0
    reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    assert seen[1][1].any() and not seen[6][-1].any()


def test_vectors_stay_fixed_and_questions_without_an_answer_can_have_none():
    """With a high score of 'no answer' there is none, with a low one there is one."""
    assert ParagraphReader.vectors == "fixed"
    model, corpus = squad("squad2", "drqa_reader", vectors=0.5)
    assert not model.table.tuned.weight.requires_grad
    with torch.no_grad():
        model.head.no_answer.fill_(50.0)
        assert not any(answered(model, corpus))
        model.head.no_answer.fill_(-50.0)
        assert all(answered(model, corpus))
